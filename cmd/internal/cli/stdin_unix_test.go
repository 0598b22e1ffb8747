//go:build unix

package cli

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// blocking says whether reads of the open file behind f wait.
func blocking(t *testing.T, f *os.File) bool {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var flags uintptr
	var errno syscall.Errno
	if err := raw.Control(func(fd uintptr) { flags, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0) }); err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
	return flags&syscall.O_NONBLOCK == 0
}

// inherited is a descriptor as a process finds it at its start.
func inherited(t *testing.T, fd int) *os.File {
	t.Helper()
	if err := syscall.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "stdin")
	t.Cleanup(func() { f.Close() })
	return f
}

func stdinPipe(t *testing.T) (in, client *os.File) {
	t.Helper()
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	return inherited(t, p[0]), inherited(t, p[1])
}

func stdinSocket(t *testing.T) (in, client *os.File) {
	t.Helper()
	p, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	return inherited(t, p[0]), inherited(t, p[1])
}

// Whoever holds the same pipe or socket finds it as it was: a pipe at any
// time, a socket once we are done.
func TestPollableLeavesStdinAsItWas(t *testing.T) {
	for name, open := range map[string]func(*testing.T) (in, client *os.File){"pipe": stdinPipe, "socket": stdinSocket} {
		in, client := open(t)
		got, restore := pollable(in)
		if name == "pipe" && !blocking(t, in) {
			t.Error("the pipe's other readers do not wait any more")
		}
		if name == "socket" || runtime.GOOS == "linux" {
			f := got.(*os.File)
			if f == in {
				t.Fatalf("%s: is read as it came", name)
			}
			if err := f.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Errorf("%s: is not polled: %v", name, err)
			}
			f.SetReadDeadline(time.Time{})
		}
		if _, err := client.WriteString("all of it"); err != nil {
			t.Fatal(err)
		}
		client.Close()
		if b, err := io.ReadAll(got); err != nil || string(b) != "all of it" {
			t.Errorf("%s: read %q, %v", name, b, err)
		}
		restore()
		if !blocking(t, in) {
			t.Errorf("%s: not set back", name)
		}
	}
}

func TestPollableLeavesOthersAlone(t *testing.T) {
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	device, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	server, client := net.Pipe()
	defer server.Close()
	defer client.Close()
	for _, in := range []io.Reader{plain, device, server} {
		got, restore := pollable(in)
		restore()
		if got != in {
			t.Errorf("%T is read through %T", in, got)
		}
	}
}

// A socket that is stdin and stdout at once, as of inetd, stays as it is: a
// full one would fail our writes.
func TestPollableLeavesASharedSocketAlone(t *testing.T) {
	in, _ := stdinSocket(t)
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	other, _ := stdinSocket(t)
	if !shared(info, os.Stderr, in) || shared(info, other) {
		t.Error("one socket is not told from another")
	}
}

//go:build unix

package cli

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// pollable has the runtime's poller wait for the client where that harms
// nobody. A goroutine that waits in read(2) holds a thread and, until the
// runtime notices, a processor; Go 1.26 may even stop the world behind such a
// read for a minute, when it began as a collection did.
//
// O_NONBLOCK lies on the open file, which others may hold too: whoever gave us
// stdin, what runs after us in a script, our own stdout. So a pipe is opened
// anew where the system can do that, a socket that is stdin alone is set and
// set back by restore, and all else (a terminal, a plain file) stays as it is.
func pollable(in io.Reader) (_ io.Reader, restore func()) {
	restore = func() {}
	f, ok := in.(*os.File)
	if !ok {
		return in, restore
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.Mode()&fs.ModeNamedPipe != 0:
		if own := reopen(f); own != nil {
			return own, restore
		}
	case info.Mode()&fs.ModeSocket != 0 && !shared(info, os.Stdout, os.Stderr):
		if own := unblocked(f); own != nil {
			return own, func() { syscall.SetNonblock(int(f.Fd()), false) }
		}
	}
	return in, restore
}

// unblocked is f with O_NONBLOCK set, under a descriptor of its own; nil where
// that fails.
func unblocked(f *os.File) *os.File {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil
	}
	syscall.CloseOnExec(fd)
	if syscall.SetNonblock(fd, true) != nil {
		syscall.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// shared says whether one of the others is the same pipe or socket.
func shared(info fs.FileInfo, others ...*os.File) bool {
	for _, f := range others {
		if other, err := f.Stat(); err == nil && os.SameFile(info, other) {
			return true
		}
	}
	return false
}

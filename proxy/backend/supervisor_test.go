//go:build unix

package backend_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toolguardian/proxy/backend"
)

// running says whether a process lives; a zombie does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !os.IsNotExist(err) || !procfs()
	}
	after := bytes.TrimSpace(b[bytes.LastIndexByte(b, ')')+1:])
	return len(after) > 0 && after[0] != 'Z'
}

func procfs() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	var pid int
	eventually(t, "a pid in "+filepath.Base(file), func() bool {
		b, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(string(b))
		return err == nil
	})
	return pid
}

// router runs this test binary as a router with one backend and waits until the
// backend is up. It returns the router and the backend's pid.
func router(t *testing.T, spec backend.Spec) (*exec.Cmd, int) {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), routerEnv+"="+string(raw))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("the router did not come up: ", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "up ")))
	if err != nil {
		t.Fatal(err)
	}
	return cmd, pid
}

// R17, D3a: kill -9 of the router leaves neither the backend, nor what it
// started in its group, nor what went away into a session of its own.
func TestNoOrphanAfterKill(t *testing.T) {
	t.Parallel()
	for _, stubborn := range []bool{false, true} {
		t.Run("stubborn "+strconv.FormatBool(stubborn), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			child, far := filepath.Join(dir, "child"), filepath.Join(dir, "far")
			text := "start\nspawn " + child + "\n"
			if procfs() {
				text += "detach " + far + "\n"
			}
			cmd, pid := router(t, script(text, "-stubborn="+strconv.FormatBool(stubborn)))
			pids := []int{pid, pidIn(t, child)}
			if procfs() {
				pids = append(pids, pidIn(t, far))
			}
			for _, p := range pids {
				if !running(p) {
					t.Fatalf("%d does not run before the kill", p)
				}
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for _, p := range pids {
				eventually(t, "the end of "+strconv.Itoa(p), func() bool { return !running(p) })
			}
		})
	}
}

// A kill at any moment of a start leaves nothing either.
func TestNoOrphanAfterKillWhileStarting(t *testing.T) {
	t.Parallel()
	if !procfs() {
		t.Skip("needs /proc to find the processes of a router that never spoke")
	}
	mark := filepath.Join(t.TempDir(), "mark")
	raw, err := json.Marshal(script("start\nspawn "+mark+".pid\n", "-record", mark))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), routerEnv+"="+string(raw))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.NewTimer(time.Duration(i) * 2 * time.Millisecond)
		<-timer.C
		cmd.Process.Kill()
		cmd.Wait()
	}
	eventually(t, "the end of all", func() bool { return len(commandsWith(t, mark)) == 0 })
}

// commandsWith are the processes whose command line holds a text.
func commandsWith(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(text)) {
			out = append(out, f)
		}
	}
	return out
}

// R17: when a wrapper dies, what it started goes too, while the router lives.
func TestWrapperDies(t *testing.T) {
	t.Parallel()
	child := filepath.Join(t.TempDir(), "child")
	b := up(t, script("start\nspawn "+child+"\n"))
	pid := pidIn(t, child)
	_, err := call(b, "exit", `{"Code":0}`)
	callError(t, err, backend.ErrDied, true)
	eventually(t, "the end of the grandchild", func() bool { return !running(pid) })
}

// Close ends a server that ignores TERM, with its detached grandchild.
func TestCloseEndsAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child, far := filepath.Join(dir, "child"), filepath.Join(dir, "far")
	b := up(t, script("start\nspawn "+child+"\ndetach "+far+"\n", "-stubborn"))
	pids := []int{b.Status().PID, pidIn(t, child)}
	if procfs() {
		pids = append(pids, pidIn(t, far))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	b.Close(ctx)
	for _, p := range pids {
		eventually(t, "the end of "+strconv.Itoa(p), func() bool { return !running(p) })
	}
	_, err := call(b, "echo", `{}`)
	callError(t, err, backend.ErrDown, false)
}

// The supervisor itself may be killed: its backends go, and new ones come.
func TestSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	if !procfs() {
		t.Skip("needs /proc to find the supervisor")
	}
	b := up(t, script(""))
	pid := b.Status().PID
	if err := syscall.Kill(parent(t, pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the backend", func() bool { return !running(pid) })
	eventually(t, "a new one", func() bool { st := b.Status(); return st.State == backend.Up && st.PID != pid })
	if got := said(t, mustCall(t, b, "echo", `{"back":1}`)); got != `{"back":1}` {
		t.Errorf("got %q", got)
	}
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	ppid, err := strconv.Atoi(strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))[1])
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

// A Ctrl-C on the terminal reaches the router's whole group; the supervisor is
// not in it.
func TestSupervisorHasItsOwnGroup(t *testing.T) {
	if !procfs() {
		t.Skip("needs /proc to find the supervisor")
	}
	b := up(t, script(""))
	sup := parent(t, b.Status().PID)
	group, err := syscall.Getpgid(sup)
	if err != nil {
		t.Fatal(err)
	}
	own, err := syscall.Getpgid(b.Status().PID)
	if err != nil {
		t.Fatal(err)
	}
	if group == syscall.Getpgrp() || own != b.Status().PID {
		t.Errorf("groups: router %d, supervisor %d, backend %d of pid %d", syscall.Getpgrp(), group, own, b.Status().PID)
	}
}

// The backend gets exactly the environment, the folder and the descriptors it
// should.
func TestProcessSurroundings(t *testing.T) {
	spec := script("")
	spec.Env = []string{"A=1", "B=\xff", "HOME=/nowhere"}
	spec.Dir = t.TempDir()
	b := up(t, spec)
	if got := said(t, mustCall(t, b, "env", `{}`)); got != "A=1\nB=\ufffd\nHOME=/nowhere" {
		t.Errorf("environment %q", got)
	}
	real, err := filepath.EvalSymlinks(spec.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := said(t, mustCall(t, b, "cwd", `{}`)); got != real {
		t.Errorf("folder %q, want %q", got, real)
	}
	if !procfs() {
		return
	}
	links, err := os.ReadDir("/proc/" + strconv.Itoa(b.Status().PID) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	var pipes []string
	for _, l := range links {
		target, err := os.Readlink("/proc/" + strconv.Itoa(b.Status().PID) + "/fd/" + l.Name())
		if err == nil && (strings.HasPrefix(target, "pipe:") || strings.HasPrefix(target, "socket:")) {
			pipes = append(pipes, l.Name()+" "+target)
		}
	}
	if len(pipes) > 3 {
		t.Errorf("pipes and sockets open in the backend are %q, want its own three", pipes)
	}
}

// What the supervisor does with signals is not handed down.
func TestSignalsAreNotIgnored(t *testing.T) {
	if !procfs() {
		t.Skip("needs /proc")
	}
	spec := script("")
	spec.Command = "/bin/sh"
	spec.Args = []string{"-c", `exec "$0" -e "start
stderr $(grep SigIgn /proc/self/status)"`, hostile}
	spec.Env = []string{"PATH=/usr/bin:/bin"}
	b := up(t, spec)
	var line string
	eventually(t, "a line of /proc/self/status", func() bool {
		line = strings.Join(b.Status().StderrTail, "")
		return line != ""
	})
	ignored, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(line, "SigIgn:")), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGCHLD} {
		if ignored&(1<<(s-1)) != 0 && !signal.Ignored(s) { // nohup is the user's wish
			t.Errorf("%v is ignored in the backend", s)
		}
	}
}

// Commands are found the way the backend's environment says.
func TestCommandLookup(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(hostile, filepath.Join(dir, "my-server")); err != nil {
		t.Fatal(err)
	}
	for name, spec := range map[string]backend.Spec{
		"PATH":     {Command: "my-server", Env: []string{"PATH=/nowhere:" + dir}},
		"relative": {Command: "./my-server", Dir: dir},
	} {
		spec.Name = name
		ready(t, start(t, spec))
	}
}

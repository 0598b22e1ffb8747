//go:build unix

package backend

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	supervisorArg = "__supervise"
	grace         = 2 * time.Second // between TERM and KILL
	groupPoll     = 10 * time.Millisecond
)

// SupervisorMain must be the first call of main, and of TestMain. It returns
// true when this process was started to supervise and has now finished; main
// must return then.
func SupervisorMain() bool {
	if len(os.Args) != 2 || os.Args[1] != supervisorArg {
		return false
	}
	// The kernel ties the parent-death signal of a child to the thread that
	// forked it; this one lives as long as the process.
	runtime.LockOSThread()
	conn, err := unixConn(os.NewFile(3, "router"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "this command is started by the router itself and has no use by hand")
		return true
	}
	newWarden(conn).run()
	return true
}

// warden starts processes, reaps them and ends their groups.
type warden struct {
	conn *net.UnixConn

	// mu spans fork and registration, so the reaper cannot meet a pid that is
	// not registered yet. It guards the maps and the order of events.
	mu    sync.Mutex
	byPID map[int]int64
	byID  map[int64]int
	below map[int][]int // what was below a leader when its closing was announced

	ending sync.WaitGroup // groups being ended
}

func newWarden(c *net.UnixConn) *warden {
	return &warden{conn: c, byPID: map[int]int64{}, byID: map[int64]int{}, below: map[int][]int{}}
}

func (w *warden) run() {
	// Caught and dropped, not ignored: an ignored signal stays so in a backend.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP)
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGTERM)
	go func() {
		<-quit
		w.conn.CloseRead()
	}()
	child := make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	go func() {
		for range child {
			w.reap()
		}
	}()
	becomeReaper()
	w.serve()
	w.endAll()
}

// serve obeys until the router's end closes.
func (w *warden) serve() {
	for {
		var o order
		fds, err := readFrame(w.conn, &o)
		if err != nil {
			return
		}
		switch o.Op {
		case "start":
			w.start(o, fds)
		case "closing":
			w.closing(o.ID)
		case "stop":
			w.stop(o.ID)
		}
		closeAll(fds)
	}
}

func (w *warden) start(o order, fds []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pid, err := forkExec(o, fds)
	if err != nil {
		writeFrame(w.conn, event{ID: o.ID, Error: fmt.Sprintf("%s: %v", o.Path, err)})
		return
	}
	w.byPID[pid], w.byID[o.ID] = o.ID, pid
	writeFrame(w.conn, event{ID: o.ID, PID: pid})
}

func forkExec(o order, fds []int) (int, error) {
	if len(fds) != 3 {
		return 0, errors.New("three pipes are needed")
	}
	files := []uintptr{uintptr(fds[0]), uintptr(fds[1]), uintptr(fds[2])}
	attr := &syscall.ProcAttr{Dir: string(o.Dir), Env: toStrings(o.Env), Files: files, Sys: childAttr()}
	return syscall.ForkExec(string(o.Path), toStrings(o.Argv), attr)
}

func (w *warden) stop(id int64) {
	w.mu.Lock()
	pid := w.byID[id]
	w.mu.Unlock()
	if pid > 0 {
		w.ending.Go(func() { endGroup(pid, descendants(pid)) })
	}
}

// closing looks at what is below a leader while the leader still holds it
// together.
func (w *warden) closing(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pid := w.byID[id]; pid > 0 {
		w.below[pid] = descendants(pid)
	}
	writeFrame(w.conn, event{ID: id, Ready: true})
}

// reap collects every child that ended, ours and the adopted, and ends what a
// leader left behind in its group.
func (w *warden) reap() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		id, ok := w.byPID[pid]
		if !ok {
			continue
		}
		delete(w.byPID, pid)
		delete(w.byID, id)
		exit := exitOf(ws)
		writeFrame(w.conn, event{ID: id, Exit: &exit})
		strays := w.below[pid]
		delete(w.below, pid)
		w.ending.Go(func() { endGroup(pid, strays) })
	}
}

func exitOf(ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Code: -1, Signal: ws.Signal().String()}
	}
	return Exit{Code: ws.ExitStatus()}
}

// endAll is the router's end: every group, then whatever else descends from us.
func (w *warden) endAll() {
	w.mu.Lock()
	for pid := range w.byPID {
		w.ending.Go(func() { endGroup(pid, nil) })
	}
	w.mu.Unlock()
	w.ending.Wait()
	killDescendants()
}

// endGroup sends TERM, waits two seconds and sends KILL; strays were below the
// leader and may have left its group. A group's number is not given to another
// process while a member lives, so only an empty group could be mistaken, and
// that one is left at the first look.
func endGroup(pgid int, strays []int) {
	if syscall.Kill(-pgid, syscall.SIGTERM) == nil && !groupGone(pgid, grace) {
		syscall.Kill(-pgid, syscall.SIGKILL)
		groupGone(pgid, grace)
	}
	killOrphans(strays)
}

func groupGone(pgid int, within time.Duration) bool {
	deadline := time.Now().Add(within)
	for syscall.Kill(-pgid, 0) == nil {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(groupPoll)
	}
	return true
}

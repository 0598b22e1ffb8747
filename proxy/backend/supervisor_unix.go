//go:build unix

package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// Supervisor is the process that starts every backend of this router. It is
// launched with the first of them, and anew when it was lost.
type Supervisor struct {
	exe string
	log *slog.Logger

	mu     sync.Mutex // guards the two below
	link   *link      // nil before the first start
	closed bool
}

// NewSupervisor makes a supervisor of the binary exe, whose main must call
// SupervisorMain first. An empty exe is the running binary.
func NewSupervisor(exe string, l *slog.Logger) *Supervisor {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return &Supervisor{exe: exe, log: l}
}

// Close ends every backend that still runs and waits for the end.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	s.closed = true
	l := s.link
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	l.conn.CloseWrite()
	<-l.gone
	return nil
}

// start runs a process on pipes of ours. It waits for the supervisor's word, so
// a command that cannot be executed is an error here.
func (s *Supervisor) start(ctx context.Context, spec Spec) (*process, error) {
	if err := checkDir(spec.Dir); err != nil {
		return nil, err
	}
	path, err := lookPath(spec.Command, spec.Dir, spec.Env)
	if err != nil {
		return nil, err
	}
	l, err := s.connect()
	if err != nil {
		return nil, fmt.Errorf("the supervisor did not start: %w", err)
	}
	return l.start(ctx, startOrder(path, spec))
}

func (s *Supervisor) connect() (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("it was closed")
	}
	if s.link != nil && !s.link.lost() {
		return s.link, nil
	}
	l, err := launch(s.exe, s.log)
	if err != nil {
		return nil, err
	}
	s.link = l
	return l, nil
}

// link is one supervisor process and what it runs.
type link struct {
	conn *net.UnixConn
	cmd  *exec.Cmd
	log  *slog.Logger

	write sync.Mutex // one frame at a time

	mu    sync.Mutex // guards the two below
	next  int64
	procs map[int64]*pendingStart

	gone chan struct{} // closed when the supervisor has ended
}

// pendingStart is a process from the order to its exit.
type pendingStart struct {
	proc    *process
	started chan error    // one value
	ready   chan struct{} // one value an order "closing"
}

func launch(exe string, log *slog.Logger) (*link, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := supervisorCommand(exe)
	cmd.ExtraFiles = []*os.File{theirs}
	// A group of its own: a Ctrl-C meant for the router must not take away the
	// one process that cleans up after it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = []string{}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, err
	}
	l := &link{conn: ours, cmd: cmd, log: log, procs: map[int64]*pendingStart{}, gone: make(chan struct{})}
	go l.listen()
	return l, nil
}

func supervisorCommand(exe string) *exec.Cmd {
	name := exe
	if exe == "" {
		exe, name = selfExe()
	}
	return &exec.Cmd{Path: exe, Args: []string{name, supervisorArg}}
}

func socketPair() (*net.UnixConn, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	ours, err := unixConn(os.NewFile(uintptr(fds[0]), "supervisor"))
	if err != nil {
		syscall.Close(fds[1])
		return nil, nil, err
	}
	return ours, os.NewFile(uintptr(fds[1]), "router"), nil
}

// unixConn takes f over.
func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("%s is no unix socket", f.Name())
	}
	return u, nil
}

func (l *link) lost() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

func (l *link) start(ctx context.Context, o order) (*process, error) {
	p, theirs, err := newPipes()
	if err != nil {
		return nil, err
	}
	w := &pendingStart{proc: p, started: make(chan error, 1), ready: make(chan struct{}, 1)}
	l.mu.Lock()
	l.next++
	o.ID = l.next
	l.procs[o.ID] = w
	l.mu.Unlock()
	p.stop = func() { l.send(order{Op: "stop", ID: o.ID}) }
	p.closing = func() {
		if l.send(order{Op: "closing", ID: o.ID}) == nil {
			within(closePatience, w.ready)
		}
	}

	err = l.send(o, theirs...)
	for _, f := range theirs {
		f.Close()
	}
	if err == nil {
		err = w.wait(ctx, l.gone)
	}
	if err != nil {
		l.forget(o.ID)
		p.stop()
		p.closePipes()
		return nil, err
	}
	return p, nil
}

func (w *pendingStart) wait(ctx context.Context, gone <-chan struct{}) error {
	select {
	case err := <-w.started:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-gone:
		return errors.New("the supervisor ended")
	}
}

func (l *link) send(o order, files ...*os.File) error {
	l.write.Lock()
	defer l.write.Unlock()
	return writeFrame(l.conn, o, files...)
}

func (l *link) forget(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.procs, id)
}

// listen hands the supervisor's events out until it ends. Whatever still ran
// then has lost its keeper, so its group is killed from here.
func (l *link) listen() {
	for {
		var e event
		if _, err := readFrame(l.conn, &e); err != nil {
			break
		}
		l.handle(e)
	}
	l.conn.Close()
	l.cmd.Wait()
	l.mu.Lock()
	left := l.procs
	l.procs = map[int64]*pendingStart{}
	l.mu.Unlock()
	close(l.gone)
	for _, w := range left {
		if w.proc.pid > 0 {
			l.log.Warn("the supervisor ended before a server did", "pid", w.proc.pid)
			syscall.Kill(-w.proc.pid, syscall.SIGKILL)
		}
		w.proc.exit = Exit{Code: -1}
		close(w.proc.exited)
	}
}

func (l *link) handle(e event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.procs[e.ID]
	if w == nil {
		return
	}
	switch {
	case e.Exit != nil:
		delete(l.procs, e.ID)
		w.proc.exit = *e.Exit
		close(w.proc.exited)
	case e.Ready:
		select {
		case w.ready <- struct{}{}:
		default:
		}
	case e.Error != "":
		delete(l.procs, e.ID)
		w.started <- errors.New(e.Error)
	default:
		w.proc.pid = e.PID
		w.started <- nil
	}
}

// newPipes makes the process's pipes: our ends, and its stdin, stdout, stderr.
func newPipes() (*process, []*os.File, error) {
	var files []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, nil, err
		}
		files = append(files, r, w)
	}
	p := &process{stdin: files[1], stdout: files[2], stderr: files[4], exited: make(chan struct{})}
	return p, []*os.File{files[0], files[3], files[5]}, nil
}

package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toolguardian/proxy/wire"
)

const (
	pingLimit     = 5 * time.Second
	closePatience = 500 * time.Millisecond // from the end of its input to TERM
	rereadDelay   = 100 * time.Millisecond // gathers a burst of list_changed
)

var (
	errClosed       = errors.New("it was closed")
	errNoSupervisor = errors.New("no supervisor was given")
)

// run keeps the backend alive until Close. It is the only goroutine that starts
// processes and changes the state.
func (b *Backend) run() {
	defer close(b.done)
	var r restarts
	for {
		s, err := b.bringUp()
		up := err == nil
		if up {
			err = b.attend(s)
		}
		if b.ctx.Err() != nil {
			b.set(Down, errClosed)
			return
		}
		state, wait, again := r.after(b.opt.Now(), up)
		b.opt.Logger.Warn("a server failed", "server", b.spec.Name, "state", state, "err", err)
		b.set(state, err)
		if !again {
			<-b.ctx.Done()
			return
		}
		if within(wait, b.ctx.Done()) {
			b.set(Down, errClosed)
			return
		}
		b.again()
	}
}

// set changes the state and wakes who waits for it.
func (b *Backend) set(st State, err error) {
	b.mu.Lock()
	b.state, b.err = st, err
	close(b.changed)
	b.changed = make(chan struct{})
	b.mu.Unlock()
	b.opt.OnState(b)
}

func (b *Backend) again() {
	b.mu.Lock()
	b.respawns++
	err := b.err
	b.mu.Unlock()
	b.set(Starting, err)
}

// bringUp starts a process, shakes hands and reads the catalogue, all within
// the start timeout. On an error no process is left.
func (b *Backend) bringUp() (*session, error) {
	limit := fmt.Errorf("not up within %v (TOOL_GUARDIAN_START_TIMEOUT): %w", b.spec.StartTimeout, ErrTimeout)
	ctx, cancel := context.WithTimeoutCause(b.ctx, b.spec.StartTimeout, limit)
	defer cancel()
	s, err := b.handshake(ctx)
	if err != nil {
		return nil, err
	}
	list, err := readTools(ctx, s)
	if err == nil {
		err = b.restoreLevel(ctx, s)
	}
	if err != nil {
		s.shut(0)
		return nil, b.startError(s.conn, methodList, err)
	}
	b.mu.Lock()
	b.list, b.session, b.conn = list, s, s.conn
	b.mu.Unlock()
	b.opt.OnCatalogue(b) // before anyone who waits for UP looks
	b.set(Up, nil)
	return s, nil
}

// restoreLevel tells a respawned server the level that the last one was told. A
// server that wants no level is as good as one without logs.
func (b *Backend) restoreLevel(ctx context.Context, s *session) error {
	level := b.logLevel()
	if level == "" || s.stateless() {
		return nil
	}
	_, err := ask(ctx, s.conn, methodSetLevel, levelParams(level))
	var refused *wire.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// spawn starts a process of its own conversation.
func (b *Backend) spawn(ctx context.Context) (*conn, error) {
	if b.opt.Supervisor == nil {
		return nil, &StartError{Server: b.spec.Name, Step: "start", Err: errNoSupervisor}
	}
	p, err := b.opt.Supervisor.start(ctx, b.spec)
	if err != nil {
		return nil, &StartError{Server: b.spec.Name, Step: "start", Err: err, Hint: b.spec.Hint}
	}
	c := newConn(p)
	b.mu.Lock()
	b.conn = c
	b.mu.Unlock()
	return c, nil
}

func (b *Backend) startError(c *conn, step string, err error) error {
	e := &StartError{Server: b.spec.Name, Step: step, Err: err, Stderr: c.tail.snapshot(), Hint: b.spec.Hint}
	if errors.Is(err, errEnded) {
		e.Exit, _ = c.endState()
	}
	return e
}

// attend serves a session until its process ends or the backend is closed, and
// says how it ended.
func (b *Backend) attend(s *session) error {
	if s.stateless() {
		s.subscribe()
	}
	for {
		select {
		case <-s.done:
			return b.fail(s.conn, ErrDied, false, nil)
		case <-b.ctx.Done():
			s.shut(closePatience)
			return errClosed
		case <-s.listChanged:
			b.reread(s)
		}
	}
}

// reread replaces the catalogue; a failure keeps the old one.
func (b *Backend) reread(s *session) {
	if within(rereadDelay, s.done) {
		return
	}
	within(0, s.listChanged)
	ctx, cancel := context.WithTimeoutCause(b.ctx, b.spec.CallTimeout, ErrTimeout)
	defer cancel()
	list, err := readTools(ctx, s)
	if err != nil && b.ctx.Err() != nil {
		return // closing: nobody asks for these tools any more
	}
	if err != nil {
		b.opt.Logger.Warn("the changed tools could not be read", "server", b.spec.Name, "err", err)
		return
	}
	b.mu.Lock()
	b.list = list
	b.mu.Unlock()
	b.opt.OnCatalogue(b)
}

// checkAlive follows a call that got no answer: a server that neither answers a
// ping nor sends anything else for five seconds is ended, and so respawned.
func (b *Backend) checkAlive(s *session) {
	if !b.probing.CompareAndSwap(false, true) {
		return
	}
	defer b.probing.Store(false)
	before := s.heard.Load()
	ctx, cancel := context.WithTimeoutCause(b.ctx, pingLimit, ErrTimeout)
	defer cancel()
	method := methodPing
	if s.stateless() {
		method = methodDiscover
	}
	_, _, err := s.request(ctx, method, nil, &call{})
	if err == nil || b.ctx.Err() != nil || s.ended() || s.heard.Load() != before {
		return
	}
	b.opt.Logger.Warn("a server answers no ping and is ended", "server", b.spec.Name)
	s.proc.stop()
}

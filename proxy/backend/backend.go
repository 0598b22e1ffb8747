package backend

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"toolguardian/proxy/wire"
)

// Backend is one server. Its methods may be called from any goroutine.
type Backend struct {
	spec  Spec
	opt   Options
	slots chan struct{} // one token a call in flight; nil: no limit

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	done   chan struct{} // closed when nothing runs any more

	probing atomic.Bool // a liveness check is under way

	mu       sync.Mutex // guards the rest
	state    State
	err      error
	session  *session      // the newest; nil before the first came up
	conn     *conn         // the newest process, also while it starts
	list     *listing      // of the newest catalogue; never nil
	changed  chan struct{} // closed and replaced at every change of state
	respawns int
	level    string // of log messages, as last set; empty: never
}

// Start begins to run a backend and returns at once, in state STARTING. The
// backend ends with ctx or by Close.
func Start(ctx context.Context, s Spec, o Options) *Backend {
	b := &Backend{spec: s.withDefaults(), opt: o.withDefaults(), done: make(chan struct{}),
		state: Starting, changed: make(chan struct{}), list: newListing()}
	if s.MaxConcurrent > 0 {
		b.slots = make(chan struct{}, s.MaxConcurrent)
	}
	b.ctx, b.cancel = context.WithCancel(ctx)
	go b.run()
	return b
}

// Name is the configured name.
func (b *Backend) Name() string { return b.spec.Name }

// Status is a snapshot.
func (b *Backend) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := Status{State: b.state, Err: b.err, Respawns: b.respawns}
	if s := b.session; s != nil {
		st.Protocol, st.ServerInfo = s.protocol, s.serverInfo
		st.Flags = append(append(st.Flags, s.flags...), b.list.flags...)
		if s.bare.Load() {
			st.Flags = append(st.Flags, `it leaves "jsonrpc":"2.0" out of its messages`)
		}
	}
	if c := b.conn; c != nil {
		st.PID, st.StderrTail, st.Noise = c.proc.pid, c.tail.snapshot(), c.out.Noise()
		_, st.Stray = c.endState()
	}
	return st
}

// Tools are the definitions of all pages, in order, as they came. They are
// kept while the server is down.
func (b *Backend) Tools() []json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list.tools
}

// Ready waits while the backend is STARTING. It returns nil when it is UP, the
// context's cause, or a *CallError that says why it will not be.
func (b *Backend) Ready(ctx context.Context) error {
	_, err := b.current(ctx)
	return err
}

// current waits for a session that lives.
func (b *Backend) current(ctx context.Context) (*session, error) {
	for {
		b.mu.Lock()
		state, s, err, changed := b.state, b.session, b.err, b.changed
		b.mu.Unlock()
		switch {
		case state == Up && !s.ended():
			return s, nil
		case state != Up && state != Starting:
			return nil, b.fail(nil, ErrDown, false, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, b.fail(nil, reasonOf(context.Cause(ctx)), false, context.Cause(ctx))
		}
	}
}

// Request sends one request and waits for its answer; an error is a
// *CallError. Params are an object or nil. It waits while the backend is
// STARTING, and for a free place if their number is limited. logging/setLevel
// outlives a respawn, and becomes a member of each request where the revision
// has no such method.
func (b *Backend) Request(ctx context.Context, method string, params json.RawMessage, o Observer) (Reply, error) {
	s, err := b.current(ctx)
	if err != nil {
		return Reply{}, err
	}
	k := &call{obs: o, clock: startClock(b.spec.CallTimeout), level: b.logLevel()}
	defer k.clock.stop()
	if b.slots != nil {
		if s, err = b.enter(ctx, k.clock); err != nil {
			return Reply{}, err
		}
		defer b.leave()
	}
	if b.needsTask(method, params) {
		return Reply{}, b.fail(nil, ErrTaskOnly, false, nil)
	}
	if method == methodSetLevel {
		b.keepLevel(params)
		if s.stateless() {
			return Reply{Result: json.RawMessage(`{}`)}, nil
		}
	}
	r, sent, err := s.request(ctx, method, params, k)
	if err != nil {
		return Reply{}, b.failed(ctx, s, sent, err)
	}
	if s.stateless() {
		r = completeOnly(r)
	}
	return r, nil
}

// enter waits for a free place, and then for a session that lives: the one
// before may have ended meanwhile.
func (b *Backend) enter(ctx context.Context, k *clock) (*session, error) {
	ctx, stop := k.within(ctx)
	defer stop()
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, b.fail(nil, reasonOf(context.Cause(ctx)), false, context.Cause(ctx))
	}
	s, err := b.current(ctx)
	if err != nil {
		b.leave()
	}
	return s, err
}

func (b *Backend) leave() { <-b.slots }

// needsTask looks into the params only for servers that have such tools.
func (b *Backend) needsTask(method string, params json.RawMessage) bool {
	b.mu.Lock()
	taskOnly := b.list.taskOnly
	b.mu.Unlock()
	if len(taskOnly) == 0 || method != "tools/call" {
		return false
	}
	name, _ := wire.GetString(params, "name")
	return taskOnly[name]
}

func (b *Backend) keepLevel(params json.RawMessage) {
	level, _ := wire.GetString(params, "level")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.level = level
}

func (b *Backend) logLevel() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.level
}

func levelParams(level string) json.RawMessage {
	return append(append([]byte(`{"level":`), wire.Quote(level)...), '}')
}

// completeOnly marks a stateless result that is no final one. An absent
// resultType counts as complete (MCP 2026-07-28, basic).
func completeOnly(r Reply) Reply {
	kind := wire.Get(r.Result, "resultType")
	if name, _ := wire.GetString(r.Result, "resultType"); r.Err != nil || kind == nil || name == "complete" {
		return r
	}
	r.Err = &wire.Error{Code: wire.CodeInternal,
		Message: "the server did not finish: its resultType is " + string(kind) + ", which is not passed on"}
	return r
}

// failed tells the reasons of a request without a reply apart.
func (b *Backend) failed(ctx context.Context, s *session, sent bool, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errEnded):
		return b.fail(s.conn, ErrDied, sent, nil)
	case errors.Is(err, ErrTimeout):
		cause = err
	case cause == nil: // the params are no object
		return b.fail(nil, ErrNotSent, false, err)
	}
	reason := reasonOf(cause)
	if sent && reason == ErrTimeout {
		go b.checkAlive(s)
	}
	return b.fail(nil, reason, sent, cause)
}

// reasonOf is for a call that was ended: by a clock, or by the caller's word.
func reasonOf(cause error) error {
	if errors.Is(cause, ErrTimeout) || errors.Is(cause, context.DeadlineExceeded) {
		return ErrTimeout
	}
	return ErrCancelled
}

func (b *Backend) fail(c *conn, reason error, sent bool, cause error) *CallError {
	e := &CallError{Server: b.spec.Name, Reason: reason, Sent: sent, Cause: cause}
	if cause == reason {
		e.Cause = nil
	}
	if c != nil {
		e.Stderr = c.tail.snapshot()
		e.Exit, _ = c.endState()
	}
	return e
}

// Close ends the process and everything it started, and waits for that.
func (b *Backend) Close(ctx context.Context) {
	b.cancel()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

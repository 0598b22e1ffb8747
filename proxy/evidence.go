package proxy

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"toolguardian/proxy/front"
	"toolguardian/receipts"
)

// evidence turns what happens into receipts. A nil *evidence keeps none.
type evidence struct {
	rec       Recorder
	required  bool
	version   string
	policy    [32]byte
	heartbeat time.Duration
	notBefore func() *receipts.NotBefore
	logger    *slog.Logger

	mu      sync.Mutex
	changes []change // not told yet; under mu
	missed  missed   // under mu
}

// change is a digest that differs from the one before, of the last run mostly.
type change struct {
	what     string
	was, now [32]byte
	told     func() // hears that its receipt is durable; nil: nobody does
}

// missed is what could not be recorded and still has to be told.
type missed struct {
	from, to time.Time
	calls    int64
	reason   string
}

func newEvidence(o Options, config [32]byte) *evidence {
	if o.Evidence == EvidenceOff {
		return nil
	}
	e := &evidence{
		rec: o.Recorder, required: o.Evidence == EvidenceRequired, version: o.Version, policy: o.Policy.Digest(),
		heartbeat: o.Heartbeat, notBefore: o.NotBefore, logger: o.Logger,
	}
	if p := o.Previous.Config; p != nil && *p != config {
		e.changes = append(e.changes, change{what: receipts.ChangedConfig, was: *p, now: config})
	}
	if p := o.Previous.Policy; p != nil && *p != e.policy {
		e.changes = append(e.changes, change{what: receipts.ChangedPolicy, was: *p, now: e.policy})
	}
	return e
}

func (e *evidence) common(s *session, traceparent string) receipts.Common {
	return receipts.Common{
		Session: s.ID, Client: &receipts.Client{Name: s.Client.Name, Version: s.Client.Version},
		Traceparent: traceparent, Capture: receipts.CaptureProxy, Version: e.version,
		Time: s.clock.read(), NotBefore: e.notBefore(),
	}
}

// open writes the session's first receipt, off the client's path: no client
// waits for it but one that calls a tool.
func (e *evidence) open(ctx context.Context, s *session) {
	if e == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	s.work.Go(func() {
		if err := e.begin(ctx, s); err != nil {
			e.miss(s, 0, err)
		}
	})
	beats, stop := context.WithCancel(ctx)
	s.stop = stop
	s.work.Go(func() { e.beat(beats, s) })
}

// begin makes the session-open receipt durable, if it is not yet, then what
// changed since the last run.
func (e *evidence) begin(ctx context.Context, s *session) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.open.Load() {
		return nil
	}
	person, err := e.principal(ctx, s)
	if err != nil {
		return err
	}
	if _, err := e.rec.Append(ctx, receipts.NewSessionOpen(e.common(s, ""), s.Protocol, e.heartbeat, person)); err != nil {
		return err
	}
	s.open.Store(true)
	return e.tell(ctx, s)
}

// changed notes a change. It is told before the receipt that comes next.
func (e *evidence) changed(c change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changes = append(e.changes, c)
}

// principal commits to the person, under the salt that is theirs.
func (e *evidence) principal(ctx context.Context, s *session) (receipts.Committed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		salt, err := e.rec.PersonSalt(ctx, []byte(s.Principal))
		if err != nil {
			return receipts.Committed{}, err
		}
		s.person, s.known = receipts.Commit(receipts.FieldPrincipal, salt, []byte(s.Principal)), true
	}
	return s.person, nil
}

// beat gives signs of life while the session is open.
func (e *evidence) beat(ctx context.Context, s *session) {
	tick := time.NewTicker(e.heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !s.gate.enter() {
			return
		}
		if err := e.append(ctx, s, func() receipts.Receipt { return receipts.NewHeartbeat(e.common(s, "")) }); err != nil {
			e.miss(s, 0, err)
		}
		s.gate.leave()
	}
}

// closing bounds how long a session that ends waits for its last receipts.
const closing = 10 * time.Second

// close writes the session's last receipt, once no other can follow.
func (e *evidence) close(ctx context.Context, s *session, end front.End) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	first, err := s.gate.close(ctx)
	if !first || e == nil {
		return nil
	}
	s.stop()
	if err != nil {
		return err // a receipt is still on its way: the session's end stays unknown
	}
	s.work.Wait()
	return e.append(ctx, s, func() receipts.Receipt { return receipts.NewSessionClose(e.common(s, ""), string(end)) })
}

// append makes one receipt durable. What is owed is told first; as long as that
// fails, nothing else is tried. The receipt is formed last, so
// that its time is not before the gap's.
func (e *evidence) append(ctx context.Context, s *session, form func() receipts.Receipt) error {
	if !s.open.Load() {
		if err := e.begin(ctx, s); err != nil {
			return err
		}
	}
	if err := e.tell(ctx, s); err != nil {
		return err
	}
	_, err := e.rec.Append(ctx, form())
	return err
}

// tell writes what is owed: a receipt for each change, then the gap, if
// anything was missed.
func (e *evidence) tell(ctx context.Context, s *session) error {
	e.mu.Lock()
	m, changes := e.missed, e.changes
	e.missed, e.changes = missed{}, nil
	e.mu.Unlock()
	for i, c := range changes {
		if _, err := e.rec.Append(ctx, receipts.NewChanged(e.common(s, ""), c.what, c.was, c.now)); err != nil {
			e.mu.Lock()
			e.changes = append(changes[i:], e.changes...)
			e.mu.Unlock()
			e.putBack(m)
			return err
		}
		if c.told != nil {
			c.told()
		}
	}
	if m.from.IsZero() {
		return nil
	}
	g := receipts.Gap{From: m.from, To: m.to, Count: m.calls, Reason: m.reason}
	_, err := e.rec.Append(ctx, receipts.NewGap(e.common(s, ""), g))
	if err != nil {
		e.putBack(m)
	}
	return err
}

// miss remembers that something could not be recorded.
func (e *evidence) miss(s *session, calls int64, err error) {
	at := s.clock.read().Wall
	e.logger.Error("evidence not recorded", "error", err, "session", s.ID)
	e.putBack(missed{at, at, calls, err.Error()})
}

func (e *evidence) putBack(m missed) {
	if m.from.IsZero() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.missed.from.IsZero() {
		e.missed = m
		return
	}
	if m.from.Before(e.missed.from) {
		e.missed.from = m.from
	}
	if m.to.After(e.missed.to) {
		e.missed.to = m.to
	}
	if e.missed.calls == 0 && m.calls > 0 {
		e.missed.reason = m.reason // what concerns a call says more
	}
	e.missed.calls += m.calls
}

// commit commits to data under a new salt.
func commit(f receipts.FieldID, data []byte) receipts.Committed {
	var salt [32]byte
	rand.Read(salt[:])
	return receipts.Commit(f, salt, data)
}

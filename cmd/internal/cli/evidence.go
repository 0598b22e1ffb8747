package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/proxy"
	"toolguardian/proxy/journal"
	"toolguardian/proxy/wire"
	"toolguardian/receipts"
)

// heartbeat bounds the silence of an open session.
const heartbeat = 5 * time.Minute

// evidence is the chain and its streamer while the router runs. The chain is
// opened beside the first answers, so that its size delays none of them, and
// opened again when it ends, since a successor may then go on.
type evidence struct {
	a      *app
	dir    string
	ctx    context.Context // of every streamer
	cancel context.CancelFunc
	opened chan struct{} // closed after the first attempt to open the chain

	witnessed *witnessedBounds // nil: no call waits for a witness

	mu    sync.Mutex // held while opening
	open  *opened    // nil: none is open
	last  error      // of the last attempt
	tried time.Time  // when that was
}

// opened is one chain with the streamer that belongs to it.
type opened struct {
	*chain.Chain
	stop   context.CancelFunc
	stream sync.WaitGroup
}

// close ends the streamer, which sends the last head, and then the chain.
func (o *opened) close() error {
	o.stop()
	o.stream.Wait()
	return o.Chain.Close()
}

// attachEvidence puts a recorder into the router's options, unless evidence is
// off. The context it returns ends early when the chain needs a person first.
func (a *app) attachEvidence(ctx context.Context, o *proxy.Options, state *journal.State) (context.Context, *evidence, error) {
	bounds, err := witnessedMode(o)
	if err == nil {
		err = evidenceMode(o)
	}
	if err != nil {
		return ctx, nil, err
	}
	if o.Evidence == proxy.EvidenceOff {
		return ctx, nil, nil
	}
	if o.Previous, err = previous(state, o); err != nil {
		a.say("tool-guardian: %v; a change of configuration since the last run gets no receipt", err)
	}
	dir, err := a.evidenceDir()
	if err != nil {
		return ctx, nil, err
	}
	a.say("evidence: receipts go to %s (TOOL_GUARDIAN_EVIDENCE=off turns that off)", dir)
	routed, refuse := context.WithCancelCause(ctx)
	streamed, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &evidence{a: a, dir: dir, ctx: streamed, cancel: cancel, opened: make(chan struct{}), witnessed: bounds}
	o.Recorder, o.Heartbeat = e, heartbeat
	o.NotBefore = func() *receipts.NotBefore { return anchor.NewestBefore(dir) }
	go e.start(refuse)
	return routed, e, nil
}

// evidenceMode takes the mode from the config file where no variable set it.
func evidenceMode(o *proxy.Options) error {
	if o.Evidence == "" {
		if mode, ok := wire.GetString(o.Config.ToolGuardian, "evidence"); ok {
			o.Evidence = proxy.EvidenceMode(mode)
		} else {
			o.Evidence = proxy.EvidenceOn
		}
	}
	switch o.Evidence {
	case proxy.EvidenceOff, proxy.EvidenceOn, proxy.EvidenceRequired:
		return nil
	}
	return usagef("toolGuardian.evidence is %q in %s: use off, on, required or witnessed", o.Evidence, o.Config.File)
}

// start opens the chain. One that a person must look at first ends the router:
// it must not look configured while nothing is signed.
func (e *evidence) start(refuse context.CancelCauseFunc) {
	defer close(e.opened)
	_, err := e.get()
	switch {
	case err == nil:
	case isFatal(err):
		refuse(fmt.Errorf("the router does not start without its chain: %w", err))
	default:
		e.a.say("tool-guardian: no receipts for now: %v", err)
	}
}

// get returns the open chain; after a failure it tries again, at most once a second.
func (e *evidence) get() (*opened, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.open != nil:
		return e.open, nil
	case e.last != nil && e.a.Now().Sub(e.tried) < time.Second:
		return nil, e.last
	}
	e.tried = e.a.Now()
	c, err := chain.Open(e.ctx, e.a.chainOptions(e.dir))
	if e.last = err; err != nil {
		return nil, err
	}
	e.open = e.attach(c)
	return e.open, nil
}

// attach starts the streamer of a chain.
func (e *evidence) attach(c *chain.Chain) *opened {
	ctx, stop := context.WithCancel(e.ctx)
	o := &opened{Chain: c, stop: stop}
	s, err := e.a.streamer(c, e.dir, heartbeat, e.interval())
	if err != nil {
		e.a.say("tool-guardian: heads are not streamed: %v", err)
		return o
	}
	o.stream.Go(func() {
		if err := s.Run(ctx); err != nil {
			e.a.say("tool-guardian: heads are no longer streamed: %v", err)
		}
	})
	return o
}

// interval is the shortest time between two heads; 0 is the usual one.
func (e *evidence) interval() time.Duration {
	if e.witnessed != nil {
		return witnessedInterval
	}
	return 0
}

// drop lets go of a chain that has ended.
func (e *evidence) drop(o *opened) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open != o {
		return
	}
	e.open = nil
	if err := o.close(); err != nil {
		e.a.say("tool-guardian: the chain ended: %v", err)
	}
}

// with runs act on the chain, and once more on its successor where it has ended.
func (e *evidence) with(act func(*chain.Chain) error) error {
	for again := false; ; again = true {
		o, err := e.get()
		if err != nil {
			return err
		}
		if err = act(o.Chain); !errors.Is(err, chain.ErrEnded) || again {
			return err
		}
		e.drop(o)
	}
}

// Append implements proxy.Recorder.
func (e *evidence) Append(ctx context.Context, r receipts.Receipt) (p receipts.Position, err error) {
	err = e.with(func(c *chain.Chain) error {
		p, err = c.Append(ctx, r)
		return err
	})
	if err != nil {
		return p, err
	}
	return p, e.witnessed.await(ctx, e.dir, r, p)
}

// PersonSalt implements proxy.Recorder.
func (e *evidence) PersonSalt(ctx context.Context, person []byte) (salt [32]byte, err error) {
	err = e.with(func(c *chain.Chain) error {
		salt, err = c.PersonSalt(ctx, person)
		return err
	})
	return salt, err
}

// Close sends the last head, bounded by the streamer, and closes the chain.
func (e *evidence) Close() error {
	if e == nil {
		return nil
	}
	<-e.opened
	defer e.cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open == nil {
		return nil
	}
	return e.open.close()
}

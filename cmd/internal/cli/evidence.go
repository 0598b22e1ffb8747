package cli

import (
	"context"
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
// opened beside the first answers, so that its size delays none of them.
type evidence struct {
	a      *app
	dir    string
	cancel context.CancelFunc
	opened chan struct{} // closed after the first attempt to open the chain
	stream sync.WaitGroup

	mu    sync.Mutex // held while opening
	chain *chain.Chain
	last  error     // of the last attempt
	tried time.Time // when that was
}

// attachEvidence puts a recorder into the router's options, unless evidence is
// off. The context it returns ends early when the chain needs a person first.
func (a *app) attachEvidence(ctx context.Context, o *proxy.Options, state *journal.State) (context.Context, *evidence, error) {
	if err := evidenceMode(o); err != nil {
		return ctx, nil, err
	}
	if o.Evidence == proxy.EvidenceOff {
		return ctx, nil, nil
	}
	var err error
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
	e := &evidence{a: a, dir: dir, cancel: cancel, opened: make(chan struct{})}
	o.Recorder, o.Heartbeat = e, heartbeat
	o.NotBefore = func() *receipts.NotBefore { return anchor.NewestBefore(dir) }
	go e.start(streamed, refuse)
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
	return usagef("toolGuardian.evidence is %q in %s: use off, on or required", o.Evidence, o.Config.File)
}

// start opens the chain and streams its heads. A chain that a person must look
// at first ends the router: it must not look configured while nothing is signed.
func (e *evidence) start(ctx context.Context, refuse context.CancelCauseFunc) {
	defer close(e.opened)
	c, err := e.get(ctx)
	if err != nil {
		if isFatal(err) {
			refuse(fmt.Errorf("the router does not start without its chain: %w", err))
			return
		}
		e.a.say("tool-guardian: no receipts for now: %v", err)
		return
	}
	e.streamHeads(ctx, c)
}

func (e *evidence) streamHeads(ctx context.Context, c *chain.Chain) {
	s, err := e.a.streamer(c, e.dir)
	if err != nil {
		e.a.say("tool-guardian: heads are not streamed: %v", err)
		return
	}
	e.stream.Go(func() {
		if err := s.Run(ctx); err != nil {
			e.a.say("tool-guardian: heads are no longer streamed: %v", err)
		}
	})
}

// get returns the open chain; after a failure it tries again, at most once a second.
func (e *evidence) get(ctx context.Context) (*chain.Chain, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.chain != nil:
		return e.chain, nil
	case e.last != nil && e.a.Now().Sub(e.tried) < time.Second:
		return nil, e.last
	}
	e.chain, e.last = chain.Open(context.WithoutCancel(ctx), e.a.chainOptions(e.dir))
	e.tried = e.a.Now()
	return e.chain, e.last
}

// Append implements proxy.Recorder.
func (e *evidence) Append(ctx context.Context, r receipts.Receipt) (receipts.Position, error) {
	c, err := e.get(ctx)
	if err != nil {
		return receipts.Position{}, err
	}
	return c.Append(ctx, r)
}

// PersonSalt implements proxy.Recorder.
func (e *evidence) PersonSalt(ctx context.Context, person []byte) ([32]byte, error) {
	c, err := e.get(ctx)
	if err != nil {
		return [32]byte{}, err
	}
	return c.PersonSalt(ctx, person)
}

// Close sends the last head, bounded by the streamer, and closes the chain.
func (e *evidence) Close() error {
	if e == nil {
		return nil
	}
	<-e.opened
	e.cancel()
	e.stream.Wait()
	if e.chain == nil {
		return nil
	}
	return e.chain.Close()
}

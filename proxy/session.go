package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"toolguardian/proxy/front"
	"toolguardian/proxy/guard"
	"toolguardian/receipts"
)

// session is one client's connection as its receipts see it.
type session struct {
	*front.Session
	clock clock
	gate  gate
	loops *guard.Loops
	looks *guard.Looks
	stop  context.CancelFunc // ends the heartbeat
	work  sync.WaitGroup     // the opening and the heartbeat

	opening sync.Mutex  // held while the session-open receipt is written
	open    atomic.Bool // it is durable

	mu     sync.Mutex
	person receipts.Committed // under mu
	known  bool               // person is set; under mu
}

// clock reads the time as receipts state it.
type clock struct {
	now    func() time.Time
	opened time.Time

	mu   sync.Mutex
	last time.Time // the wall clock's last reading
}

// read gives the wall clock as it stands, the time since the session opened,
// and whether the wall clock went back since the last reading.
func (c *clock) read() receipts.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	wall := now.Round(0)
	t := receipts.Time{Wall: wall, Mono: now.Sub(c.opened), Back: wall.Before(c.last)}
	c.last = wall
	return t
}

// gate lets receipts of a session through until it closes, so that none
// follows the one that ends it.
type gate struct {
	mu     sync.Mutex
	shut   bool
	inside int
	empty  chan struct{} // closed when shut and nobody is inside
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// close lets nobody in any more and waits for those inside; first is false
// where it was closed before. The error is ctx's, where that ends sooner.
func (g *gate) close(ctx context.Context) (first bool, err error) {
	g.mu.Lock()
	if g.shut {
		g.mu.Unlock()
		return false, nil
	}
	g.shut, g.empty = true, make(chan struct{})
	if g.inside == 0 {
		close(g.empty)
	}
	g.mu.Unlock()
	select {
	case <-g.empty:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

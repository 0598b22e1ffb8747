package witness

import (
	"context"
	"sync"
	"time"
)

// conflictEvery is how often one origin's counter of conflicts reaches the
// disk: a clone that posts for ever costs a write a minute.
const conflictEvery = time.Minute

// conflicts counts refused heads that were signed by the key in force, such as
// a clone's late ones. It has at most an entry for each enrolled origin.
type conflicts struct {
	mu sync.Mutex
	of map[string]*conflictCount // guarded by mu
}

type conflictCount struct {
	pending uint64 // not yet on disk
	written time.Time
}

// add counts one and gives how many are to be written now.
func (c *conflicts) add(origin string, now time.Time) (due uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[origin]
	if n == nil {
		n = &conflictCount{}
		c.of[origin] = n
	}
	n.pending++
	if since := now.Sub(n.written); since >= 0 && since < conflictEvery {
		return 0
	}
	due, n.pending, n.written = n.pending, 0, now
	return due
}

// pending is what is counted and not on disk.
func (c *conflicts) pending(origin string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.of[origin]; n != nil {
		return n.pending
	}
	return 0
}

// conflict counts a refused head; the count is a hint, and a failed write of
// it nobody's concern.
func (s *Server) conflict(ctx context.Context, origin string) {
	due := s.conflicts.add(origin, s.o.Now())
	if due == 0 {
		return
	}
	_, err := submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) {
		rec, err := b.record(origin)
		if err != nil {
			return accepted[uint64]{}, err
		}
		rec.Conflicts += due
		b.keep(rec)
		return accepted[uint64]{rec.Conflicts}, nil
	})
	if err != nil {
		s.o.Logger.Warn("a conflict was not counted", "origin", origin, "err", err)
	}
}

package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// rounds shares syncs: those who come while one runs share the next, which
// begins after all of them have written.
type rounds struct {
	running chan struct{} // holds one element while a sync runs

	mu   sync.Mutex
	next *round
}

type round struct {
	done chan struct{}
	err  error
}

func newRounds() rounds { return rounds{running: make(chan struct{}, 1)} }

// join returns the result of a run of do that began after the call.
func (r *rounds) join(do func() error) error {
	r.mu.Lock()
	mine, leads := r.next, false
	if mine == nil {
		mine, leads = &round{done: make(chan struct{})}, true
		r.next = mine
	}
	r.mu.Unlock()
	if leads {
		r.lead(mine, do)
	}
	<-mine.done
	return mine.err
}

func (r *rounds) lead(mine *round, do func() error) {
	r.running <- struct{}{}
	r.mu.Lock()
	r.next = nil // from here on it is too late to join
	r.mu.Unlock()
	mine.err = do()
	<-r.running
	close(mine.done)
}

// syncAll makes everything written before the call durable.
func (c *Chain) syncAll() error { return c.rounds.join(c.syncRound) }

// syncRound syncs line and salts at the same time. After a failure it does
// nothing until the lines are rewritten: the next sync of the same file would
// report success for pages that never reached the disk.
func (c *Chain) syncRound() error {
	c.mu.Lock()
	from, to, failed := c.synced, c.written, c.failed
	c.mu.Unlock()
	if failed != nil {
		return failed
	}
	if err := syncBetween(from, to); err != nil {
		err = fmt.Errorf("sync receipts: %w", noSpace(err))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = err
		return err
	}
	c.noteSynced(to)
	return nil
}

func syncBetween(from, to mark) error {
	other := from.seg.lines != to.seg.lines
	salts := make(chan error, 1)
	if other || to.seg.saltsEnd > from.seg.saltsEnd {
		go func() { salts <- to.seg.salts.Sync() }()
	} else {
		salts <- nil
	}
	var err error
	if other || to.seg.end > from.seg.end {
		err = to.seg.lines.Sync()
	}
	return errors.Join(err, <-salts)
}

// noteSynced drops what need not be written again, closes what no sync uses
// any more and tells those who follow.
func (c *Chain) noteSynced(to mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.synced = to
	if c.written.seg.lines == to.seg.lines {
		c.tail.drop(to)
	}
	c.retired = slices.DeleteFunc(c.retired, func(f File) bool {
		if f == to.seg.lines || f == to.seg.salts {
			return false
		}
		if err := f.Close(); err != nil {
			c.log.Warn("close segment", "err", err)
		}
		return true
	})
	close(c.progress)
	c.progress = make(chan struct{})
	c.saveTilesLocked()
}

func (t *tail) drop(to mark) {
	lines, salts := to.seg.end-t.start.seg.end, to.seg.saltsEnd-t.start.seg.saltsEnd
	t.lines = append(t.lines[:0], t.lines[lines:]...)
	t.salts = append(t.salts[:0], t.salts[salts:]...)
	t.start = to
}

func (c *Chain) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *Chain) durable() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced.size
}

// settle waits until the line at pos is durable. If its sync failed, the
// lines are rewritten by whoever has the turn first.
func (c *Chain) settle(ctx context.Context, pos receipts.Position) error {
	if c.durable() > pos.Seq {
		return nil // a sync that began after we left has ended
	}
	failed := c.syncAll()
	if failed == nil {
		return nil
	}
	if err := c.enter(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("receipt %d: %w (after: %w)", pos.Seq, err, failed)
	}
	err := c.syncAll()
	c.leave()
	if err != nil {
		return err
	}
	return c.confirm(pos)
}

// confirm finds out whether a line outlived a failed sync.
func (c *Chain) confirm(pos receipts.Position) error {
	leaf, err := c.currentTree().leaf(pos.Seq)
	if err != nil || leaf != tlog.Hash(pos.LeafHash) || c.Origin() != pos.Origin {
		return fmt.Errorf("receipt %d was lost in a failed sync: append it again", pos.Seq)
	}
	return nil
}

// end stops this Chain for good and returns why.
func (c *Chain) end(why error) error {
	if !errors.Is(why, ErrEnded) {
		why = fmt.Errorf("%w: %w", ErrEnded, why)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = why
		c.log.Error("chain ended", "err", why)
	}
	return c.ended
}

// saveTiles writes the tiles that the durable lines fill, on the side.
func (c *Chain) saveTiles() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saveTilesLocked()
}

func (c *Chain) saveTilesLocked() {
	t, size := c.tree, c.synced.size
	if c.saving || c.closed || len(t.due(size)) == 0 {
		return
	}
	c.saving = true
	c.work.Go(func() {
		t.save(size, c.log)
		c.mu.Lock()
		c.saving = false
		c.mu.Unlock()
	})
}

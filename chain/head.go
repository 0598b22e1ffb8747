package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"toolguardian/chain/tlog"
)

// head is the newest signed head.
type head struct {
	checkpoint tlog.Checkpoint
	note       []byte
}

// Head returns a signed note over everything in the chain, and its content.
// The lock is held while lines are synced and then signed, so no head speaks
// of a line that a crash can take away, and no two of one size differ.
func (c *Chain) Head(ctx context.Context) ([]byte, tlog.Checkpoint, error) {
	if err := c.begin(); err != nil {
		return nil, tlog.Checkpoint{}, err
	}
	defer c.work.Done()
	if err := c.enter(ctx); err != nil {
		return nil, tlog.Checkpoint{}, err
	}
	defer c.leave()
	if err := c.syncAll(); err != nil {
		return nil, tlog.Checkpoint{}, err
	}
	if c.head.note == nil || c.head.checkpoint.Size != c.place.seq {
		if err := c.signHead(); err != nil {
			return nil, tlog.Checkpoint{}, fmt.Errorf("sign head: %w", err)
		}
	}
	return bytes.Clone(c.head.note), c.head.checkpoint, nil
}

func (c *Chain) signHead() error {
	root, err := tlog.TreeRoot(c.place.seq, c.currentTree())
	if err != nil {
		return err
	}
	cp := tlog.Checkpoint{Origin: c.place.origin, Size: c.place.seq, Root: root}
	note, err := sign(cp.Text(), c.signer)
	if err != nil {
		return err
	}
	c.head = head{checkpoint: cp, note: note}
	return nil
}

func sign(text []byte, signers ...*tlog.Signer) ([]byte, error) {
	n := tlog.Note{Text: text}
	for _, s := range signers {
		sig, err := s.Sign(text)
		if err != nil {
			return nil, err
		}
		n.Signatures = append(n.Signatures, sig)
	}
	return n.Bytes(), nil
}

// SignNote signs a key note, event or stamp with the head key: its text
// begins with "tool-guardian/". Heads come from Head alone.
func (c *Chain) SignNote(text []byte) ([]byte, error) {
	if !bytes.HasPrefix(text, []byte("tool-guardian/")) {
		return nil, errors.New("sign note: the text does not begin with tool-guardian/: heads are signed by Head alone")
	}
	c.mu.Lock()
	s := c.signer
	c.mu.Unlock()
	return sign(text, s)
}

// followEvery bounds how late the appends of other processes are seen.
const followEvery = 200 * time.Millisecond

// Follow yields the sizes of the chain as they become durable, the present
// one first, by whichever process they were appended. Sizes that nobody took
// in time are passed over. The channel closes when ctx ends, on Close, and
// when the chain ends.
func (c *Chain) Follow(ctx context.Context) <-chan uint64 {
	sizes := make(chan uint64, 1)
	if c.begin() != nil {
		close(sizes)
		return sizes
	}
	go func() {
		defer c.work.Done()
		defer close(sizes)
		c.tellSizes(ctx, sizes)
	}()
	return sizes
}

func (c *Chain) tellSizes(ctx context.Context, sizes chan uint64) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for last := uint64(0); ; {
		c.mu.Lock()
		size, moved := c.synced.size, c.progress
		c.mu.Unlock()
		if size > last {
			last = size
			select {
			case <-sizes: // an older size that nobody took
			default:
			}
			sizes <- size
		}
		select {
		case <-moved:
		case <-tick.C:
			if !c.lookAround(ctx) {
				return
			}
		case <-ctx.Done():
			return
		case <-c.closing:
			return
		}
	}
}

// lookAround takes in and syncs what other processes appended.
func (c *Chain) lookAround(ctx context.Context) bool {
	if !c.othersWrote() {
		return c.usable() == nil
	}
	err := c.enter(ctx)
	if err == nil {
		c.leave()
		err = c.syncAll()
	}
	if err != nil {
		c.log.Warn("could not take in what others appended", "err", err)
	}
	return c.usable() == nil
}

// othersWrote takes no lock: a wrong yes costs one look under it.
func (c *Chain) othersWrote() bool {
	c.mu.Lock()
	w := c.written
	c.mu.Unlock()
	info, err := c.at.fs.Stat(c.at.segment(w.seg.first))
	if err != nil || info.Size != w.seg.end {
		return true
	}
	_, gen := c.lock.read()
	return gen != c.gen.Load()
}

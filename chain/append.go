package chain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// Append gives r its place in the chain and returns once its line and salts
// are durable: by a sync that began after both were written. Calls at the
// same time share syncs.
//
// ctx and LockTimeout bound the wait for other writers. Once the line is
// written the call waits for the disk, whatever ctx says.
//
// After an error the receipt is not in the chain, with one exception: if its
// sync failed the line may still be there afterwards.
func (c *Chain) Append(ctx context.Context, r receipts.Receipt) (receipts.Position, error) {
	if r.Kind.BringsKeys() {
		return receipts.Position{}, fmt.Errorf("append %s: keys are put in force by the chain itself", r.Kind)
	}
	if err := c.begin(); err != nil {
		return receipts.Position{}, err
	}
	defer c.work.Done()
	if err := c.enter(ctx); err != nil {
		return receipts.Position{}, err
	}
	pos, err := c.put(r)
	c.leave()
	if err != nil {
		return receipts.Position{}, err
	}
	if err := c.settle(ctx, pos); err != nil {
		return receipts.Position{}, err
	}
	return pos, nil
}

// enter takes the turn among our goroutines, then the lock among processes,
// and catches up with what others wrote. leave undoes it.
func (c *Chain) enter(ctx context.Context) error {
	deadline := time.Now().Add(c.o.LockTimeout)
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	err := c.usable()
	if err == nil {
		err = c.lockAndCatchUp(ctx, deadline)
	}
	if err != nil {
		<-c.turn
	}
	return err
}

func (c *Chain) takeTurn(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(c.o.LockTimeout)
	defer late.Stop()
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-c.closing:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late.C:
		return fmt.Errorf("%w: other calls of this process wait for the chain too; its lock is held by process %s",
			ErrLocked, c.lock.holder())
	}
}

// begin counts a call that Close waits for; work.Done ends it.
func (c *Chain) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.work.Add(1)
	return nil
}

func (c *Chain) usable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	return c.ended
}

func (c *Chain) lockAndCatchUp(ctx context.Context, deadline time.Time) error {
	gen, err := c.lock.acquire(ctx, deadline)
	if err != nil {
		return err
	}
	if err := c.catchUp(gen); err != nil {
		return errors.Join(err, c.lock.release())
	}
	return nil
}

func (c *Chain) leave() {
	if err := c.lock.release(); err != nil {
		c.end(fmt.Errorf("release lock: %w", err))
	}
	<-c.turn
}

// catchUp makes our state that of the files. Where nobody else wrote it is
// one look at the segment's size.
func (c *Chain) catchUp(gen uint64) error {
	failed := c.failure()
	if gen != c.gen.Load() || c.stale {
		if failed != nil {
			return c.end(fmt.Errorf("%w: another process went on after our sync failed (%w): open the chain again", ErrEnded, failed))
		}
		return c.reload(gen)
	}
	info, err := c.seg.lines.Info()
	if err != nil {
		return fmt.Errorf("look at segment: %w", err)
	}
	switch {
	case info.Gone || info.Size < c.seg.end || info.Size > c.seg.end+maxFollow:
		err = c.reload(gen)
	case info.Size > c.seg.end:
		err = c.follow(info.Size, gen)
	}
	if err == nil && failed != nil {
		err = c.rewrite()
	}
	return err
}

// maxFollow is how many bytes of others are held until their sync; beyond
// it the state is read anew, which syncs.
const maxFollow = 4 << 20

// follow takes the lines that others appended to our segment.
func (c *Chain) follow(size int64, gen uint64) error {
	lines := make([]byte, size-c.seg.end)
	if n, err := c.seg.lines.ReadAt(lines, c.seg.end); n < len(lines) {
		return fmt.Errorf("read segment: %w", err)
	}
	var leaves []tlog.Hash
	p, n, err := walk(bytes.NewReader(lines), 0, int64(len(lines)), c.place,
		func(e entry) { leaves = append(leaves, e.leaf) })
	if err != nil {
		return err
	}
	if n != int64(len(lines)) || p.keySeq != c.place.keySeq {
		return c.reload(gen) // a torn line, or other keys
	}
	salts, err := c.newSalts()
	if err != nil {
		return err
	}
	c.advance(p, lines, salts, leaves...)
	return nil
}

func (c *Chain) newSalts() ([]byte, error) {
	info, err := c.seg.salts.Info()
	if err != nil {
		return nil, err
	}
	salts := make([]byte, max(info.Size-c.seg.saltsEnd, 0)/recordSize*recordSize)
	if n, err := c.seg.salts.ReadAt(salts, c.seg.saltsEnd); n < len(salts) && err != io.EOF {
		return nil, fmt.Errorf("read salts: %w", err)
	}
	return salts, nil
}

// put signs and writes one line and its salts behind the last ones.
func (c *Chain) put(r receipts.Receipt) (receipts.Position, error) {
	if err := c.roll(); err != nil {
		return receipts.Position{}, err
	}
	return c.putHere(r)
}

// putHere writes into the segment that is open, however full or old it is.
func (c *Chain) putHere(r receipts.Receipt) (receipts.Position, error) {
	link := receipts.Link{Origin: c.place.origin, Seq: c.place.seq, Prev: c.place.prev, KeySeq: c.place.keySeq}
	line, err := receipts.Seal(r, link, c.keys.receipt)
	if err != nil {
		return receipts.Position{}, err
	}
	st, err := stated(r.Kind, line)
	if err != nil {
		return receipts.Position{}, err
	}
	after, err := c.place.behind(line, st)
	if err != nil {
		return receipts.Position{}, err
	}
	leaf := tlog.LeafHash(line)
	salts := records(link.Seq, r.Fields)
	line = append(line, '\n')
	if err := c.write(line, salts); err != nil {
		return receipts.Position{}, err
	}
	c.advance(after, line, salts, leaf)
	return receipts.Position{Origin: link.Origin, Seq: link.Seq, LeafHash: leaf}, nil
}

// stated reads a line of ours where it brings keys: otherwise its kind says all
// that the next place needs.
func stated(k receipts.Kind, line []byte) (*receipts.Statement, error) {
	if !k.BringsKeys() {
		return &receipts.Statement{Kind: k}, nil
	}
	env, err := receipts.ParseLine(line)
	if err != nil {
		return nil, err
	}
	return receipts.ParseStatement(env.Payload)
}

// write puts salts before the line: a process killed in between leaves a salt
// without its line, which is cut off, and not a line that nobody can open.
// What fails half way is cut off again.
func (c *Chain) write(line, salts []byte) error {
	_, err := c.seg.salts.WriteAt(salts, c.seg.saltsEnd)
	if err == nil {
		_, err = c.seg.lines.WriteAt(line, c.seg.end)
	}
	if err == nil {
		return nil
	}
	undo := errors.Join(c.seg.lines.Truncate(c.seg.end), c.seg.salts.Truncate(c.seg.saltsEnd))
	if undo != nil {
		c.log.Warn("half a line is left, to be recovered before the next", "segment", stem(c.seg.first), "err", undo)
	}
	return fmt.Errorf("write receipt: %w", noSpace(err))
}

func (c *Chain) advance(after place, lines, salts []byte, leaves ...tlog.Hash) {
	t := c.currentTree()
	for _, leaf := range leaves {
		t.push(leaf)
	}
	c.place = after
	c.seg.end += int64(len(lines))
	c.seg.saltsEnd += int64(len(salts))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail.lines = append(c.tail.lines, lines...)
	c.tail.salts = append(c.tail.salts, salts...)
	c.written = mark{seg: c.seg, size: after.seq}
}

// swap goes on in another segment, of which nothing is unsynced by us.
func (c *Chain) swap(seg openSegment, at place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seg.lines != nil {
		c.retired = append(c.retired, c.seg.lines, c.seg.salts)
	}
	c.seg, c.place = seg, at
	c.written = mark{seg: seg, size: at.seq}
	c.tail = tail{start: c.written}
}

// roll begins a new segment when the last one is long enough. The old one is
// durable before the new one has a name, so a bad line can only be crash
// damage in the last segment.
func (c *Chain) roll() error {
	if c.seg.end < c.o.SegmentSize && !c.aged() {
		return nil
	}
	return c.nextSegment()
}

// aged reports that the segment's first line is older than SegmentAge, by the
// wall clock alone: a clock that jumps costs a short segment, or a long one.
func (c *Chain) aged() bool {
	if c.seg.end == 0 {
		return false
	}
	if c.born.first != c.seg.first || c.born.at.IsZero() {
		c.born = birth{c.seg.first, c.at.wallOf(c.seg.first)}
	}
	return c.o.Now().Sub(c.born.at) > c.o.SegmentAge
}

// birth is the time that a segment's first line states.
type birth struct {
	first uint64
	at    time.Time
}

// wallOf is the time that a line states; far ahead where it cannot be read.
func (l layout) wallOf(seq uint64) time.Time {
	unknown := time.Unix(1<<40, 0)
	at, err := l.find(seq)
	if err != nil {
		return unknown
	}
	env, err := receipts.ParseLine(at.line)
	if err != nil {
		return unknown
	}
	s, err := receipts.ParseStatement(env.Payload)
	if err != nil {
		return unknown
	}
	wall, err := time.Parse(time.RFC3339Nano, s.Text("time", "wall"))
	if err != nil {
		return unknown
	}
	return wall
}

// nextSegment closes the last segment.
func (c *Chain) nextSegment() error {
	if err := c.syncAll(); err != nil {
		return err
	}
	if err := c.bump(); err != nil {
		return err
	}
	seg, err := c.createSegment(c.place.seq)
	if err != nil {
		return fmt.Errorf("begin segment: %w", noSpace(err))
	}
	c.swap(seg, c.place)
	return c.syncAll()
}

func (c *Chain) createSegment(first uint64) (openSegment, error) {
	if err := createFile(c.at.fs, c.at.salts(first), nil, os.O_TRUNC); err != nil {
		return openSegment{}, err
	}
	if err := createFile(c.at.fs, c.at.segment(first), nil, os.O_EXCL); err != nil {
		return openSegment{}, err
	}
	err := errors.Join(c.at.fs.SyncDir(c.at.path(saltsName)), c.at.fs.SyncDir(c.at.path(chainName)))
	if err != nil {
		return openSegment{}, err
	}
	return c.openSegment(first)
}

// bump changes the generation: other processes read the files anew.
func (c *Chain) bump() error {
	gen := c.gen.Load() + 1
	if err := c.lock.write(gen); err != nil {
		return err
	}
	c.gen.Store(gen)
	return nil
}

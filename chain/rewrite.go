package chain

import (
	"errors"
	"fmt"
	"os"

	"toolguardian/chain/tlog"
)

// rewrite runs after a failed sync, before anything more is signed. The lines
// behind the synced offset go into a new segment, in an order that no crash
// turns into a loss, not even of lines that another process had synced:
// they are written and synced aside, then the old segment is cut to the
// synced offset and synced, then the new one takes its name. Without a second
// copy on disk nothing is cut.
func (c *Chain) rewrite() error {
	c.mu.Lock()
	t := tail{start: c.tail.start, lines: append([]byte(nil), c.tail.lines...), salts: append([]byte(nil), c.tail.salts...)}
	c.mu.Unlock()
	first := t.start.size
	c.log.Warn("sync failed: unsynced lines go into a new segment", "segment", stem(c.seg.first), "first", first, "err", c.failure())
	if err := c.bump(); err != nil {
		return err
	}
	if err := c.writeAside(first, t); err != nil {
		return fmt.Errorf("rewrite unsynced lines: %w", noSpace(err))
	}
	if err := c.cutTo(c.seg, t.start.seg); err != nil {
		return c.end(c.markEnded(fmt.Errorf("cut to the synced offset: %w", err)))
	}
	if err := c.at.moveIn(first); err != nil {
		return c.end(c.markEnded(err))
	}
	seg, err := c.openSegment(first)
	if err != nil {
		return c.end(err)
	}
	seg.end, seg.saltsEnd = int64(len(t.lines)), int64(len(t.salts))
	c.swap(seg, c.place)
	c.mu.Lock()
	c.failed = nil
	c.mu.Unlock()
	return c.syncAll()
}

func (c *Chain) writeAside(first uint64, t tail) error {
	lines, salts := c.at.segment(first)+rewriteSuffix, c.at.salts(first)+rewriteSuffix
	err := createFile(c.at.fs, salts, t.salts, os.O_TRUNC)
	if err == nil {
		err = createFile(c.at.fs, lines, t.lines, os.O_TRUNC)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(c.at.fs, lines), removeIfThere(c.at.fs, salts))
	}
	return errors.Join(c.at.fs.SyncDir(c.at.path(saltsName)), c.at.fs.SyncDir(c.at.path(chainName)))
}

func (c *Chain) cutTo(seg, to openSegment) error {
	if err := errors.Join(seg.lines.Truncate(to.end), seg.salts.Truncate(to.saltsEnd)); err != nil {
		return err
	}
	return errors.Join(seg.lines.Sync(), seg.salts.Sync())
}

// moveIn gives a rewritten segment its name, salts first: as long as the
// lines bear the suffix, recovery knows that this is not done.
func (l layout) moveIn(first uint64) error {
	salts := l.salts(first)
	there, err := exists(l.fs, salts+rewriteSuffix)
	if there && err == nil {
		err = l.fs.Rename(salts+rewriteSuffix, salts)
	}
	if err == nil {
		err = l.fs.SyncDir(l.path(saltsName))
	}
	if err == nil {
		err = l.fs.Rename(l.segment(first)+rewriteSuffix, l.segment(first))
	}
	if err == nil {
		err = l.fs.SyncDir(l.path(chainName))
	}
	if err != nil {
		return fmt.Errorf("name rewritten segment: %w", err)
	}
	return nil
}

// markEnded leaves word for the next Open, as far as the disk still allows.
func (c *Chain) markEnded(why error) error {
	err := createFile(c.at.fs, c.at.path(chainName, endedName), []byte(why.Error()+"\n"), os.O_TRUNC)
	if err == nil {
		err = c.at.fs.SyncDir(c.at.path(chainName))
	}
	return errors.Join(why, err)
}

// settleRewrite completes or drops a rewrite that a crash interrupted.
// Whichever holds more lines is kept: the copy, if the old segment was cut
// already; the old segment, if the copy was not synced yet.
func (l layout) settleRewrite(first uint64, f *found) error {
	if f.damage != nil || first > f.place.seq {
		return nil // the chain ends here; the copy is kept with it
	}
	at, p, err := l.resume(first, f.tree)
	if err != nil {
		return fmt.Errorf("place of rewritten segment: %w", err)
	}
	if first == 0 {
		at.segment = 0
	}
	n, err := l.countAside(first, p)
	if err != nil {
		return err
	}
	if n <= f.place.seq {
		return errors.Join(removeIfThere(l.fs, l.segment(first)+rewriteSuffix),
			removeIfThere(l.fs, l.salts(first)+rewriteSuffix), l.fs.SyncDir(l.path(chainName)))
	}
	if err := l.cutAt(at, first); err != nil {
		return err
	}
	return l.moveIn(first)
}

// countAside returns the size of the chain that the copy reaches.
func (l layout) countAside(first uint64, p place) (uint64, error) {
	file, err := l.fs.OpenFile(l.segment(first)+rewriteSuffix, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return 0, err
	}
	p, _, err = walk(file, 0, info.Size, p, func(entry) {})
	return p.seq, err
}

// cutAt cuts the segment that holds the line before first behind that line.
func (l layout) cutAt(at spot, first uint64) error {
	lines, err := l.fs.OpenFile(l.segment(at.segment), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer lines.Close()
	salts, err := l.fs.OpenFile(l.salts(at.segment), os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return err
	}
	defer salts.Close()
	end, err := saltsBefore(salts, first)
	if err != nil {
		return err
	}
	if err := errors.Join(lines.Truncate(at.off), salts.Truncate(end)); err != nil {
		return err
	}
	return errors.Join(lines.Sync(), salts.Sync())
}

// settled finishes what a crash interrupted in the folder's names, then loads.
func (c *Chain) settled() (*found, error) {
	if err := c.at.finishNext(); err != nil {
		return nil, err
	}
	if err := c.settlePrune(); err != nil {
		return nil, err
	}
	f, err := c.at.load()
	if err != nil {
		return nil, err
	}
	firsts, err := c.at.rewrites()
	if err != nil || len(firsts) == 0 {
		return f, err
	}
	if err := c.bump(); err != nil {
		return nil, err
	}
	for _, first := range firsts {
		if err := c.at.settleRewrite(first, f); err != nil {
			return nil, err
		}
	}
	return c.at.load()
}

// settlePrune finishes a prune whose files are not those of a pruned chain yet.
func (c *Chain) settlePrune() error {
	m, err := c.at.pruned()
	if err != nil {
		return err
	}
	if left, err := c.at.unfinished(m); !left || err != nil {
		return err
	}
	if err := errors.Join(c.bump(), c.at.finishPrune(m)); err != nil {
		return fmt.Errorf("finish prune: %w", noSpace(err))
	}
	return nil
}

// reload reads the chain's end anew. What was durable before must still be
// there.
func (c *Chain) reload(gen uint64) error {
	c.gen.Store(gen)
	c.stale = true
	f, err := c.settled()
	if err != nil {
		return err
	}
	if f.place.origin != c.place.origin {
		return c.end(fmt.Errorf("%w: a successor was opened here: open again", ErrEnded))
	}
	if why, err := c.at.whyEnd(f, noneKept); err != nil {
		return err
	} else if why != "" {
		return c.end(fmt.Errorf("%w: %s: open again", ErrEnded, why))
	}
	if err := c.stillThere(f); err != nil {
		return c.end(c.markEnded(err))
	}
	if err := c.use(f); err != nil {
		if c.failure() != nil {
			return c.end(err) // of lines that are not ours no copy is held here
		}
		return err
	}
	c.stale = false
	return nil
}

func (c *Chain) stillThere(f *found) error {
	size := c.durable()
	if f.place.seq < size {
		return fmt.Errorf("%w: %d lines were durable, %d are left", ErrRolledBack, size, f.place.seq)
	}
	was, err := tlog.TreeRoot(size, c.currentTree())
	if err != nil {
		return err
	}
	is, err := tlog.TreeRoot(size, f.tree)
	if err != nil {
		return err
	}
	if was != is {
		return fmt.Errorf("%w: the first %d lines are not those that were durable", ErrRolledBack, size)
	}
	return nil
}

package chain

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"toolguardian/receipts"
)

// Repair is what Open would mend, found without changing anything.
type Repair struct {
	Segment string // name of the last segment
	Lines   uint64 // good lines in the chain
	Offset  int64  // byte in Segment behind the last good line
	Torn    int64  // bytes behind that, to be moved to quarantine/
	Newline bool   // the last line is whole but for its "\n"
	Lost    []receipts.Erased
	// Ends is why the chain may not be continued: Open closes it and a
	// successor opens. Empty for a chain that goes on.
	Ends string
}

// Needed reports whether Open would change anything.
func (r Repair) Needed() bool {
	return r.Torn > 0 || r.Newline || len(r.Lost) > 0 || r.Ends != ""
}

// Inspect is repair as a dry run. It takes no lock: with a writer at work a
// line half written can look torn.
func Inspect(o Options) (Repair, error) {
	o, err := o.checked()
	if err != nil {
		return Repair{}, err
	}
	at := layout{fs: o.FS, dir: o.Dir}
	if err := at.checkFormat(); err != nil {
		return Repair{}, err
	}
	f, err := at.load()
	if err != nil {
		return Repair{}, err
	}
	why, err := at.whyEnd(f, o.KeptHeads)
	return Repair{Segment: stem(f.segment) + segmentSuffix, Lines: f.place.seq,
		Offset: min(f.good, f.size), Torn: f.torn(), Newline: f.size < f.good,
		Lost: erasures(f.lost), Ends: why}, err
}

// recover mends what a crash left behind. Bytes are copied to quarantine/
// durably, then the receipt that tells of them is written over them and what
// is longer is cut off: at no moment are the bytes gone and nothing tells.
func (c *Chain) recover(f *found) error {
	info, err := c.seg.salts.Info()
	if err != nil {
		return err
	}
	orphans := info.Size > c.seg.saltsEnd
	if f.torn() == 0 && f.size == f.good && !orphans && len(f.lost) == 0 {
		return nil
	}
	if err := c.bump(); err != nil {
		return err
	}
	if f.torn() > 0 {
		c.log.Warn("torn tail goes to quarantine", "segment", stem(f.segment), "offset", f.good, "bytes", f.torn(), "good", f.place.seq)
		if err := c.quarantine(f, info.Size); err != nil {
			return fmt.Errorf("quarantine torn tail: %w", noSpace(err))
		}
	}
	if orphans {
		if err := c.seg.salts.Truncate(c.seg.saltsEnd); err != nil {
			return fmt.Errorf("cut salts without lines: %w", err)
		}
	}
	if f.size < f.good {
		if _, err := c.seg.lines.WriteAt([]byte{'\n'}, f.size); err != nil {
			return fmt.Errorf("end last line: %w", noSpace(err))
		}
	}
	return c.tell(f)
}

// tell writes the receipts of a recovery.
func (c *Chain) tell(f *found) error {
	if f.torn() > 0 {
		name := stem(f.segment) + segmentSuffix
		// Over the torn bytes, in their own segment: left in one that is no longer
		// the last, they would count as damage.
		if _, err := c.putHere(receipts.NewRecovered(c.common(), name, f.good, f.torn())); err != nil {
			return fmt.Errorf("tell of torn tail: %w", err)
		}
		if err := c.seg.lines.Truncate(c.seg.end); err != nil {
			return fmt.Errorf("cut torn tail: %w", err)
		}
	}
	for some := range slices.Chunk(erasures(f.lost), 64) {
		if _, err := c.put(receipts.NewErasure(c.common(), some, receipts.ErasedByCrash)); err != nil {
			return fmt.Errorf("tell of lost salts: %w", err)
		}
	}
	return nil
}

func (c *Chain) common() receipts.Common {
	return receipts.Common{Capture: c.o.Capture, Version: c.o.Version, Time: receipts.Time{Wall: c.o.Now()}}
}

// erasures tells them in the order of the chain, however they were found.
func erasures(lost []saltKey) []receipts.Erased {
	slices.SortFunc(lost, func(a, b saltKey) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.field, b.field))
	})
	var out []receipts.Erased
	for _, k := range lost {
		out = append(out, receipts.Erased{Seq: k.seq, Field: k.field.String()})
	}
	return out
}

// quarantine copies the torn tail and the salts behind the last good line.
func (c *Chain) quarantine(f *found, saltsSize int64) error {
	if err := makeDir(c.at.fs, c.at.path(quarantineName)); err != nil {
		return err
	}
	if err := c.copyAside(c.seg.lines, f.segment, f.good, f.size, segmentSuffix); err != nil {
		return err
	}
	if err := c.copyAside(c.seg.salts, f.segment, c.seg.saltsEnd, saltsSize, saltsSuffix); err != nil {
		return err
	}
	return c.at.fs.SyncDir(c.at.path(quarantineName))
}

// copyAside never writes over an earlier copy: each is evidence.
func (c *Chain) copyAside(from File, segment uint64, off, end int64, suffix string) error {
	if off >= end {
		return nil
	}
	for n := 1; ; n++ {
		name := c.at.path(quarantineName, fmt.Sprintf("%s.%d.%d%s", stem(segment), off, n, suffix))
		to, err := c.at.fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(from, off, end-off))
		if err == nil {
			err = to.Sync()
		}
		return errors.Join(err, to.Close())
	}
}

// saltsBefore is the offset behind the last readable salt of lines before seq.
func saltsBefore(file File, seq uint64) (int64, error) {
	info, err := file.Info()
	if err != nil {
		return 0, err
	}
	n, err := saltFile{file, int(info.Size / recordSize)}.lowerBound(seq)
	return int64(n) * recordSize, err
}

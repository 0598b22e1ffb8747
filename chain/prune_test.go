package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// checkPruned reads a pruned chain as a verifier would: holes only below the
// first kept line, filled with hashes, and the root that the chain had.
func checkPruned(l layout, first uint64, acked []receipts.Position) error {
	r, err := l.reader()
	if err != nil {
		return err
	}
	if r.Pruned() != first {
		return fmt.Errorf("first kept line %d, want %d", r.Pruned(), first)
	}
	var front tlog.Frontier
	for line, err := range r.Lines(0) {
		if err != nil {
			return err
		}
		if line.Seq > front.Size() {
			if line.Seq > first {
				return fmt.Errorf("a hole before line %d", line.Seq)
			}
			hashes, err := r.Hashes(front.Size(), int(line.Seq-front.Size()))
			if err != nil {
				return err
			}
			for _, h := range hashes {
				front.Append(h)
			}
		}
		st, err := parsedLine(line.Bytes)
		if err != nil || st.Seq != line.Seq || line.Seq != front.Size() {
			return fmt.Errorf("line %d stands for %d: %w", line.Seq, front.Size(), err)
		}
		if line.Seq < first && !st.Kind.BringsKeys() {
			return fmt.Errorf("line %d, a %s, is still there", line.Seq, st.Kind)
		}
		front.Append(tlog.LeafHash(line.Bytes))
	}
	f, err := l.load()
	if err != nil || f.damage != nil {
		return fmt.Errorf("load: %w %w", err, f.damage)
	}
	root, err := tlog.TreeRoot(f.place.seq, f.tree)
	if err != nil || root != front.Root() || f.place.seq != front.Size() {
		return fmt.Errorf("size %d and root from tiles, %d from lines: %w", f.place.seq, front.Size(), err)
	}
	for _, a := range acked {
		leaf, err := f.tree.leaf(a.Seq)
		if err != nil || leaf != tlog.Hash(a.LeafHash) {
			return fmt.Errorf("the hash of acknowledged line %d: %w", a.Seq, err)
		}
	}
	return nil
}

func parsedLine(line []byte) (*receipts.Statement, error) {
	env, err := receipts.ParseLine(line)
	if err != nil {
		return nil, err
	}
	return receipts.ParseStatement(env.Payload)
}

// Prunes at every kind of boundary, one after another, with rotations before
// and between, across tiles and segments: roots, proofs, key lines and salts of
// what is kept stay, other processes go on.
func TestPrune(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentSize: 40_000}
	c, other := openAt(t, o), openAt(t, o)
	var acked []receipts.Position
	add := func(n int) {
		for i := range n {
			acked = append(acked, mustAppend(t, []*Chain{c, other}[i%2], decision(i)))
		}
	}
	add(20)
	rotated, err := c.Rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	add(600)
	note, cp, err := c.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	boundaries := []uint64{7, rotated.Seq, rotated.Seq + 1, 256, 300, 512, 513, cp.Size}
	if testing.Short() {
		boundaries = []uint64{7, rotated.Seq + 1, 300, cp.Size}
	}
	for _, before := range boundaries {
		first, pos, err := c.Prune(t.Context(), before, cp.Size)
		if err != nil || first != before {
			t.Fatalf("prune before %d: first kept %d, %v", before, first, err)
		}
		acked = append(acked, pos)
		if err := checkPruned(at(o), before, acked); err != nil {
			t.Fatalf("pruned before %d: %v", before, err)
		}
		add(3)
		checkOpens(t, o, before, acked)
	}
	if _, _, err := c.Prune(t.Context(), 100, cp.Size); err == nil {
		t.Error("pruned again what is gone")
	}
	if first, _, err := c.Prune(t.Context(), 1<<40, cp.Size); err == nil {
		t.Errorf("pruned before %d, beyond the witnessed size %d", first, cp.Size)
	}
	if root, err := tlog.TreeRoot(cp.Size, other); err != nil || root != cp.Root {
		t.Errorf("root of %s: %v", note, err)
	}
	if _, err := c.ProveConsistency(100, cp.Size); err != nil {
		t.Error(err)
	}
	if _, err := c.Line(rotated.Seq); err != nil {
		t.Errorf("the rotation: %v", err)
	}
	if _, err := c.Line(9); !errors.Is(err, ErrPruned) {
		t.Errorf("a pruned line: %v", err)
	}
	if _, err := c.Salt(9, receipts.FieldArgsSent); !errors.Is(err, ErrNotFound) {
		t.Errorf("a pruned line's salt: %v", err)
	}
}

// checkOpens opens the folder afresh, with tiles and without the full ones that
// lines can rebuild.
func checkOpens(t *testing.T, o Options, first uint64, acked []receipts.Position) {
	t.Helper()
	if p, ok := reopenAndClose(t, o); ok {
		t.Fatalf("a pruned chain was called tampering: %s", p.Reason)
	}
	r, err := OpenReader(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	last := acked[len(acked)-1].Seq
	if _, err := r.Line(last); err != nil {
		t.Error(err)
	}
	if _, err := r.Salt(last, receipts.FieldArgsSent); err != nil {
		t.Error(err)
	}
	if _, err := r.Line(first - 2); first > 30 && !errors.Is(err, ErrPruned) {
		t.Errorf("line %d: %v", first-2, err)
	}
}

// A line that was altered is not pruned: its hash would go with it.
func TestPruneRefusesAltered(t *testing.T) {
	o, _ := grown(t, 300)
	c := openAt(t, o)
	name := at(o).segment(0)
	b := read(t, name)
	b[len(b)/3] ^= 1
	write(t, name, b)
	if _, _, err := c.Prune(t.Context(), 280, 290); err == nil {
		t.Fatal("an altered line was pruned")
	}
	if segments, err := at(o).segments(); err != nil || !slices.Equal(segments, []uint64{0}) {
		t.Errorf("segments %v: %v", segments, err)
	}
}

// Hashes that are gone end a pruned chain: it can prove nothing any more.
func TestPrunedHashesLost(t *testing.T) {
	o, _ := grown(t, 20)
	c := openAt(t, o)
	if _, _, err := c.Prune(t.Context(), 10, 20); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := at(o).pruned()
	if err != nil {
		t.Fatal(err)
	}
	b, err := at(o).partialTile(m)
	if err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1
	id := tlog.TileID{}
	write(t, at(o).path(chainName, tilesName, id.Path(10)), b)
	if _, ok := reopenAndClose(t, o); !ok {
		t.Error("a chain whose pruned hashes were altered goes on")
	}
}

// TestCrashWhilePruning: at every moment either nothing is pruned or the next
// Open finishes it; no acknowledged hash and no kept line is lost.
func TestCrashWhilePruning(t *testing.T) {
	t.Parallel()
	d, o := recorded(t, 3000)
	c := openAt(t, o)
	for i := range 4 {
		appendAcked(t, d, c, i)
	}
	if _, err := c.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		appendAcked(t, d, c, 10+i)
	}
	start := len(d.ops)
	const before = 8
	_, pos, err := c.Prune(t.Context(), before, before)
	if err != nil {
		t.Fatal(err)
	}
	d.ack(pos)
	appendAcked(t, d, c, 20)
	sweepWith(t, d, start, func(after *disk, acked []receipts.Position) error {
		// A reader that comes before the next Open sees a whole chain as well.
		l := layout{fs: after, dir: "/e"}
		if err := checkHalfPruned(l); err != nil {
			return fmt.Errorf("before recovery: %w", err)
		}
		c, err := Open(context.Background(), Options{Dir: "/e", FS: after, Version: "test"})
		if err != nil {
			return err
		}
		defer c.Close()
		if p, ok := c.Predecessor(); ok {
			return fmt.Errorf("called tampering: %s", p.Reason)
		}
		if _, err := c.Append(context.Background(), decision(30)); err != nil {
			return err
		}
		m, err := c.at.pruned()
		if err != nil || m.First != 0 && m.First != before {
			return fmt.Errorf("pruned before %d: %w", m.First, err)
		}
		return checkPruned(c.at, m.First, acked)
	})
}

// checkHalfPruned: every line once, in order, holes only where hashes are.
func checkHalfPruned(l layout) error {
	r, err := l.reader()
	if err != nil {
		return err
	}
	next := uint64(0)
	for line, err := range r.Lines(0) {
		if err != nil {
			return err
		}
		if line.Torn {
			break
		}
		if line.Seq < next {
			return fmt.Errorf("line %d twice", line.Seq)
		}
		if line.Seq > next {
			if _, err := r.Hashes(next, int(line.Seq-next)); err != nil || line.Seq > r.Pruned() {
				return fmt.Errorf("hole %d to %d: %w", next, line.Seq, err)
			}
		}
		next = line.Seq + 1
	}
	return nil
}

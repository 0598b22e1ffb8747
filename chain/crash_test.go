package chain

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"syscall"
	"testing"

	"toolguardian/receipts"
)

// fate is what becomes of an unsynced change in a crash.
type fate int

const (
	lost fate = iota
	kept
	torn   // the first half of a write; the file may be shorter for it
	zeroed // the size of a write without its bytes
)

// crash is the state after the first n ops with one fate for each change
// that nothing made durable.
func (d *disk) crash(n int, fates map[int]fate) *image {
	m := d.base.clone()
	for i, o := range d.ops[:n] {
		if o.kind == opLink {
			m.nodes[o.child] = &node{id: o.child, mode: o.mode}
			if o.mode.IsDir() {
				m.nodes[o.child].names = map[string]int{}
			}
			m.next = max(m.next, o.child+1)
		}
		f, pending := fates[i]
		if !pending {
			f = kept
		}
		switch {
		case f == lost || o.kind == opSync || o.kind == opSyncDir || o.kind == opAck:
			continue
		case f == torn:
			o.data = o.data[:len(o.data)/2]
		case f == zeroed:
			o.data = make([]byte, len(o.data))
		}
		m.apply(o)
	}
	return m
}

// pending lists the changes among the first n ops that a crash may undo. The
// lock's text, which is never synced, is left out: TestLockGarbage has it.
func (d *disk) pending(n int) []int {
	var p []int
	for i, o := range d.ops[:n] {
		switch o.kind {
		case opSync, opSyncDir, opAck:
			continue
		}
		if !d.durable(i, n) && path.Base(o.path) != lockName {
			p = append(p, i)
		}
	}
	return p
}

func (o op) fates() []fate {
	if o.kind == opWrite {
		return []fate{lost, kept, torn, zeroed}
	}
	return []fate{lost, kept}
}

// maxStates bounds the states tried at one moment: up to it all of them are.
func maxStates() int {
	if testing.Short() {
		return 40
	}
	return 300
}

// eachCrash calls try with every state that a crash after the first n ops can
// leave; where there are too many, with all-or-nothing ones and a sample.
// It returns whether all were tried.
func (d *disk) eachCrash(n int, rng *rand.Rand, try func(*image)) bool {
	p := d.pending(n)
	total := 1
	for _, i := range p {
		total = min(total*len(d.ops[i].fates()), maxStates()+1)
	}
	all := total <= maxStates()
	if !all {
		total = maxStates() / 4
	}
	for s := range total {
		fates := make(map[int]fate, len(p))
		for _, i := range p {
			f := d.ops[i].fates()
			switch {
			case all:
				fates[i] = f[s%len(f)]
				s /= len(f)
			case s < 2:
				fates[i] = f[s]
			default:
				fates[i] = f[rng.IntN(len(f))]
			}
		}
		try(d.crash(n, fates))
	}
	return all
}

// acked lists what was acknowledged within the first n ops.
func (d *disk) acked(n int) []receipts.Position {
	var out []receipts.Position
	for _, o := range d.ops[:n] {
		if o.kind == opAck {
			out = append(out, o.ack)
		}
	}
	return out
}

func (m *image) sum() [32]byte {
	h := sha256.New()
	var walk func(prefix string, n *node)
	walk = func(prefix string, n *node) {
		fmt.Fprintf(h, "%s %d %v\n", prefix, len(n.data), n.mode)
		h.Write(n.data)
		names := make([]string, 0, len(n.names))
		for name := range n.names {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			walk(prefix+"/"+name, m.nodes[n.names[name]])
		}
	}
	walk("", m.nodes[0])
	return [32]byte(h.Sum(nil))
}

// reopened opens what a crash left and holds it against what was promised.
func reopened(m *image, acked []receipts.Position) (*disk, error) {
	d := newDisk(m)
	o := Options{Dir: "/e", FS: d, Version: "test", KeptHeads: func() (uint64, []byte, error) {
		size := uint64(0)
		for _, a := range acked {
			size = max(size, a.Seq+1) // as if each had been witnessed at once
		}
		return size, nil, nil
	}}
	c, err := Open(context.Background(), o)
	if err != nil {
		return d, err
	}
	defer c.Close()
	if p, ok := c.Predecessor(); ok {
		return d, fmt.Errorf("an honest crash was called tampering: %s", p.Reason)
	}
	if _, err := verifyChain(c.at, acked); err != nil {
		return d, err
	}
	for _, a := range acked {
		if _, err := c.Salt(a.Seq, receipts.FieldArgsSent); err != nil {
			return d, fmt.Errorf("acknowledged receipt %d: %w", a.Seq, err)
		}
	}
	pos, err := c.Append(context.Background(), decision(1))
	if err != nil {
		return d, err
	}
	if err := c.Close(); err != nil {
		return d, err
	}
	if r, err := Inspect(o); err != nil || r.Needed() {
		return d, fmt.Errorf("recovery left more to mend: %+v %v", r, err)
	}
	_, err = verifyChain(c.at, append(acked, pos))
	return d, err
}

// sweep tries every crash of a recorded run, and of a sample of the
// recoveries every crash again.
func sweep(t *testing.T, d *disk, again int) {
	t.Helper()
	sweepFrom(t, d, 0, again)
}

// sweepFrom leaves out the crashes of the first ops.
func sweepFrom(t *testing.T, d *disk, first, again int) {
	t.Helper()
	if testing.Short() {
		again = 0
	}
	rng := rand.New(rand.NewPCG(1, 2))
	seen := make(map[[40]byte]bool)
	moments, sampled := 0, 0
	for n := first; n <= len(d.ops); n++ {
		acked := d.acked(n)
		moments++
		all := d.eachCrash(n, rng, func(m *image) {
			if !fresh(seen, m, len(acked)) || t.Failed() {
				return
			}
			after, err := reopened(m, acked)
			if err != nil {
				t.Errorf("crash after op %d of %d, state %d: %v", n, len(d.ops), len(seen), err)
				return
			}
			if again > 0 && rng.IntN(again) == 0 {
				sweepRecovery(t, after, acked, rng, seen)
			}
		})
		if !all {
			sampled++
		}
	}
	t.Logf("%d ops, %d moments (%d sampled), %d distinct states", len(d.ops), moments, sampled, len(seen))
}

// sweepRecovery crashes a recovery: no state of it loses what was promised.
func sweepRecovery(t *testing.T, d *disk, acked []receipts.Position, rng *rand.Rand, seen map[[40]byte]bool) {
	t.Helper()
	for n := range len(d.ops) {
		d.eachCrash(n, rng, func(m *image) {
			if rng.IntN(8) != 0 || !fresh(seen, m, len(acked)) {
				return
			}
			if _, err := reopened(m, acked); err != nil {
				t.Errorf("second crash, after op %d of a recovery: %v", n, err)
			}
		})
	}
}

func fresh(seen map[[40]byte]bool, m *image, acked int) bool {
	sum := m.sum()
	key := [40]byte(binary.BigEndian.AppendUint64(sum[:], uint64(acked)))
	was := seen[key]
	seen[key] = true
	return !was
}

func recorded(t *testing.T, segment int64) (*disk, Options) {
	t.Helper()
	m := newImage()
	d := newDisk(m)
	return d, Options{Dir: "/e", FS: d, Version: "test", SegmentSize: segment}
}

func appendAcked(t *testing.T, d *disk, c *Chain, n int) {
	t.Helper()
	pos, err := c.Append(t.Context(), decision(n))
	if err != nil {
		t.Error(err)
		return
	}
	d.ack(pos)
}

// TestCrashAnywhere: from the first folder on, one caller, several segments.
func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	d, o := recorded(t, 4000)
	c := openAt(t, o)
	for i := range 8 {
		appendAcked(t, d, c, i)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	sweep(t, d, 30)
}

// TestCrashShared: two processes, several callers each, so that many writes
// wait for one sync.
func TestCrashShared(t *testing.T) {
	t.Parallel()
	d, o := recorded(t, 0)
	chains := []*Chain{openAt(t, o), openAt(t, o)}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 2 {
				appendAcked(t, d, chains[i%2], 10*i+j)
			}
		})
	}
	wg.Wait()
	for _, c := range chains {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sweep(t, d, 100)
}

// TestCrashAroundFailedSync: the first sync of a line fails, its bytes may
// never reach the disk, and the machine stops at any moment of the rewrite.
func TestCrashAroundFailedSync(t *testing.T) {
	t.Parallel()
	d, o := recorded(t, 0)
	c := openAt(t, o)
	for i := range 3 {
		appendAcked(t, d, c, i)
	}
	failing := true
	d.mu.Lock()
	d.fault = func(o op) error {
		if o.kind == opSync && failing && o.path == c.at.segment(0) {
			failing = false
			return syscall.EIO
		}
		return nil
	}
	d.mu.Unlock()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() { appendAcked(t, d, c, 10+i) })
	}
	wg.Wait()
	if failing {
		t.Fatal("no sync failed")
	}
	segments, err := c.at.segments()
	if err != nil || !slices.Equal(segments, []uint64{0, 4}) {
		t.Fatalf("segments begin at %v, want a new one at the synced size 4: %v", segments, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	sweep(t, d, 30)
}

// TestCrashAroundTiles: the first full tile is written while the chain goes on.
func TestCrashAroundTiles(t *testing.T) {
	t.Parallel()
	d, o := recorded(t, 0)
	grow(t, o, 253) // 254 lines with the genesis, 256 fill the tile
	c := openAt(t, o)
	first := len(d.ops)
	for i := range 3 {
		appendAcked(t, d, c, i)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n := c.at.savedTiles(); n != 1 {
		t.Fatalf("%d tiles, want 1", n)
	}
	sweepFrom(t, d, first, 0)
}

// TestCrashWhileSucceeding: a chain behind its witness is closed, and at no
// moment of that are its lines lost, or two successors opened.
func TestCrashWhileSucceeding(t *testing.T) {
	t.Parallel()
	d, o := recorded(t, 0)
	c := openAt(t, o)
	for i := range 2 {
		appendAcked(t, d, c, i)
	}
	old := c.Origin()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := createFile(d, "/e/anchor/kept", []byte("100"), 0); err != nil {
		t.Fatal(err)
	}
	if err := d.SyncDir("/e/anchor"); err != nil {
		t.Fatal(err)
	}
	first, acked := len(d.ops), d.acked(len(d.ops))
	if err := succeeded(d, old, acked); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	seen := make(map[[40]byte]bool)
	for n := first; n <= len(d.ops); n++ {
		d.eachCrash(n, rng, func(m *image) {
			if !fresh(seen, m, 0) {
				return
			}
			if err := succeeded(newDisk(m), old, acked); err != nil {
				t.Errorf("crash after op %d of %d: %v", n-first, len(d.ops)-first, err)
			}
		})
	}
	t.Logf("%d ops, %d distinct states", len(d.ops)-first, len(seen))
}

// succeeded opens a chain whose kept head lies beside it, as anchor's would.
func succeeded(d *disk, old string, acked []receipts.Position) error {
	c, err := Open(context.Background(), Options{Dir: "/e", FS: d, KeptHeads: func() (uint64, []byte, error) {
		if there, err := exists(d, "/e/anchor/kept"); !there {
			return 0, nil, err
		}
		return 100, nil, nil
	}})
	if err != nil {
		return err
	}
	defer c.Close()
	line, err := c.Line(0)
	if err != nil {
		return err
	}
	env, err := receipts.ParseLine(line)
	if err != nil {
		return err
	}
	s, err := receipts.ParseStatement(env.Payload)
	if err != nil || s.Kind != receipts.KindSuccessor || s.Text("old", "origin") != old {
		return fmt.Errorf("line 0 is a %v: %v", s, err)
	}
	closed, err := d.ReadDir("/e/" + closedName)
	if err != nil || len(closed) != 1 {
		return fmt.Errorf("closed chains: %v %v", closed, err)
	}
	_, err = verifyChain(layout{d, "/e/" + closedName + "/" + closed[0]}, acked)
	return err
}

// TestDiskFull: what does not fit is refused by name, and the chain goes on.
func TestDiskFull(t *testing.T) {
	d, o := recorded(t, 0)
	c := openAt(t, o)
	appendAcked(t, d, c, 1)
	for _, full := range []string{c.at.segment(0), c.at.salts(0)} {
		d.mu.Lock()
		d.fault = func(o op) error {
			if o.kind == opWrite && o.path == full {
				return syscall.ENOSPC
			}
			return nil
		}
		d.mu.Unlock()
		if _, err := c.Append(t.Context(), decision(2)); !errors.Is(err, ErrNoSpace) {
			t.Fatalf("append on a full disk: %v", err)
		}
		d.mu.Lock()
		d.fault = nil
		d.mu.Unlock()
		appendAcked(t, d, c, 3)
	}
	if n := checkChain(t, d, "/e", d.acked(len(d.ops))); n != 4 {
		t.Fatalf("%d lines, want the genesis and 3", n)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	sweep(t, d, 0)
}

package chain

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

func openAt(t testing.TB, o Options) *Chain {
	t.Helper()
	c, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func testCommon() receipts.Common {
	return receipts.Common{Session: "s", Capture: receipts.CaptureProxy, Version: "test", Time: receipts.Time{Wall: time.Now()}}
}

// decision is a receipt with one committed field.
func decision(n int) receipts.Receipt {
	args := receipts.Commit(receipts.FieldArgsSent, [32]byte{byte(n), byte(n >> 8), 1}, fmt.Appendf(nil, `{"n":%d}`, n))
	return receipts.NewDecision(testCommon(), receipts.Decision{
		Call:   receipts.Call{ID: fmt.Sprint(n), Server: "files", Tool: "read", RPC: []byte("1")},
		Effect: "allow", Rule: "default", Mode: receipts.ModeEnforced}, args)
}

func mustAppend(t testing.TB, c *Chain, r receipts.Receipt) receipts.Position {
	t.Helper()
	pos, err := c.Append(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return pos
}

// checkChain reads every line of a folder as a verifier would and holds it
// against what was acknowledged.
func checkChain(t testing.TB, f FS, dir string, acked []receipts.Position) uint64 {
	t.Helper()
	n, err := verifyChain(layout{fs: f, dir: dir}, acked)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// verifyChain trusts nothing that the package derives: it walks all segments
// from the first byte, checks every signature, and rebuilds the tree.
func verifyChain(l layout, acked []receipts.Position) (uint64, error) {
	segments, err := l.segments()
	if err != nil {
		return 0, err
	}
	var p place
	var front tlog.Frontier
	leaves := []tlog.Hash{}
	for _, first := range segments {
		if first != p.seq {
			return 0, fmt.Errorf("segment %d begins at %d", first, p.seq)
		}
		if p, err = verifySegment(l, first, p, func(e entry) {
			leaves = append(leaves, e.leaf)
			front.Append(e.leaf)
		}); err != nil {
			return 0, err
		}
	}
	for _, a := range acked {
		if a.Seq >= p.seq || leaves[a.Seq] != tlog.Hash(a.LeafHash) || a.Origin != p.origin {
			return 0, fmt.Errorf("acknowledged receipt %d is not in the chain of %d", a.Seq, p.seq)
		}
	}
	f, err := l.load()
	if err != nil {
		return 0, err
	}
	root, err := tlog.TreeRoot(p.seq, f.tree)
	if err != nil || root != front.Root() {
		return 0, fmt.Errorf("root from tiles differs from root from lines: %v", err)
	}
	return p.seq, nil
}

func verifySegment(l layout, first uint64, p place, take func(entry)) (place, error) {
	file, err := l.fs.OpenFile(l.segment(first), os.O_RDONLY, 0)
	if err != nil {
		return p, err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return p, err
	}
	var bad error
	end := int64(0)
	err = eachLine(file, 0, info.Size, func(line []byte, at int64) bool {
		e, err := p.next(line)
		if err == nil {
			err = verifyOnce(e)
		}
		if err != nil {
			bad = fmt.Errorf("segment %d, byte %d: %w", first, at, err)
			return false
		}
		p, end = e.after, at+int64(len(line))+1
		take(e)
		return true
	})
	if err == nil && bad == nil && end != info.Size {
		bad = fmt.Errorf("segment %d ends without newline", first)
	}
	return p, errors.Join(err, bad)
}

// verified remembers good signatures: thousands of crash states share lines.
var verified sync.Map

func verifyOnce(e entry) error {
	key := string(e.leaf[:]) + string(e.pub)
	if _, ok := verified.Load(key); ok {
		return nil
	}
	err := e.envelope.Verify(e.pub)
	if err == nil {
		verified.Store(key, true)
	}
	return err
}

func TestAppendAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home", "evidence")
	o := Options{Dir: dir, Label: "agents.example", SegmentSize: 64 << 10}
	c := openAt(t, o)
	var acked []receipts.Position
	for i := range 600 {
		acked = append(acked, mustAppend(t, c, decision(i)))
	}
	if n := checkChain(t, OS(), dir, acked); n != 601 {
		t.Fatalf("chain holds %d lines, want the genesis and 600", n)
	}
	head, cp, err := c.Head(t.Context())
	if err != nil || cp.Size != 601 {
		t.Fatalf("head of size %d: %v", cp.Size, err)
	}
	got, note, err := tlog.ParseSignedCheckpoint(head)
	if err != nil || got != cp {
		t.Fatalf("head does not parse: %v", err)
	}
	if _, err := note.Verify(c.HeadKey()); err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{0, 1, 255, 256, 300, 600} {
		line, err := c.Line(seq)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := c.ProveInclusion(seq, 601)
		if err != nil {
			t.Fatal(err)
		}
		if err := tlog.VerifyInclusion(tlog.LeafHash(line), seq, 601, proof, cp.Root); err != nil {
			t.Error(err)
		}
	}
	salt, err := c.Salt(301, receipts.FieldArgsSent)
	if err != nil || salt != [32]byte{44, 1, 1} {
		t.Fatalf("salt of line 301 is %x: %v", salt[:3], err)
	}
	if _, err := c.Salt(301, receipts.FieldResultReceived); !errors.Is(err, ErrNotFound) {
		t.Errorf("salt of a field the line does not commit to: %v", err)
	}
	origin := c.Origin()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), decision(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	again := openAt(t, o)
	if again.Origin() != origin {
		t.Fatal("another origin after opening again")
	}
	if pos := mustAppend(t, again, decision(7)); pos.Seq != 601 {
		t.Fatalf("line %d after opening again, want 601", pos.Seq)
	}
	checkReader(t, dir, 602)
}

func checkReader(t *testing.T, dir string, want uint64) {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := r.Size(); n != want || err != nil {
		t.Fatalf("reader counts %d lines, want %d: %v", n, want, err)
	}
	for _, from := range []uint64{0, 1, 299, want - 1, want} {
		n := from
		for line, err := range r.Lines(from) {
			if err != nil {
				t.Fatal(err)
			}
			if seq, err := seqOf(line.Bytes); err != nil || seq != n || line.Seq != n || line.Torn {
				t.Fatalf("from %d: line %d says %d, want %d: %v", from, line.Seq, seq, n, err)
			}
			n++
		}
		if n != want {
			t.Errorf("from %d: lines end at %d, want %d", from, n, want)
		}
	}
}

func otherKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	k, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

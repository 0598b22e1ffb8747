package anchor_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/receipts"
)

// madeChain is a chain in memory, sealed line by line with keys of the test's
// choosing.
type madeChain struct {
	t      testing.TB
	lines  [][]byte
	origin string
	key    ed25519.PrivateKey
	keySeq uint64
}

func makeChain(t testing.TB, label, key string) *madeChain {
	head := seedKey("head of " + label).Public().(ed25519.PublicKey)
	m := &madeChain{t: t, origin: receipts.Origin(label, head), key: seedKey(key)}
	m.add(receipts.NewGenesis(common(), receipts.HeadVkey(m.origin, head), m.key.Public().(ed25519.PublicKey)))
	return m
}

func (m *madeChain) add(r receipts.Receipt) {
	m.t.Helper()
	l := receipts.Link{Origin: m.origin, Seq: uint64(len(m.lines)), KeySeq: m.keySeq}
	if l.Seq == 0 {
		head := seedKey("head of a.invalid").Public().(ed25519.PublicKey)
		l.Prev = sha256.Sum256([]byte(receipts.HeadVkey(m.origin, head)))
	} else {
		l.Prev = sha256.Sum256(m.lines[l.Seq-1])
	}
	line, err := receipts.Seal(r, l, m.key)
	if err != nil {
		m.t.Fatal(err)
	}
	m.lines = append(m.lines, line)
}

// rotate adds a rotation, signed by the old key; the new one signs from then on.
func (m *madeChain) rotate(key string) {
	m.t.Helper()
	head := seedKey("head after " + key).Public().(ed25519.PublicKey)
	m.add(receipts.NewRotation(common(), receipts.HeadVkey(m.origin, head), seedKey(key).Public().(ed25519.PublicKey)))
	m.keySeq, m.key = uint64(len(m.lines)-1), seedKey(key)
}

func (m *madeChain) Lines(from uint64) iter.Seq2[chain.Line, error] {
	return func(yield func(chain.Line, error) bool) {
		for i, l := range m.lines[from:] {
			if !yield(chain.Line{Seq: from + uint64(i), Bytes: l, Segment: "made"}, nil) {
				return
			}
		}
	}
}

func (m *madeChain) verify() anchor.Report {
	return anchor.Verify(anchor.Source{Target: "made", Chain: m}, anchor.Trust{Origin: m.origin, Now: time.Now()})
}

func TestRotation(t *testing.T) {
	made := func() *madeChain {
		m := makeChain(t, "a.invalid", "first")
		m.add(receipts.NewHeartbeat(common()))
		m.rotate("second")
		m.add(receipts.NewHeartbeat(common()))
		m.rotate("third")
		m.add(receipts.NewHeartbeat(common()))
		return m
	}
	t.Run("one run across keys", func(t *testing.T) {
		if r := made().verify(); reasons(r) != "UNPROTECTED" || r.Receipts != 6 {
			t.Error(text(r))
		}
	})
	t.Run("a retired key signs again", func(t *testing.T) {
		m := made()
		m.key = seedKey("first")
		m.add(receipts.NewHeartbeat(common()))
		if r := m.verify(); r.Exit != 1 || reasons(r) != "REVOKED UNPROTECTED" {
			t.Error(text(r))
		}
	})
	t.Run("a retired key comes back", func(t *testing.T) {
		m := made()
		m.rotate("second")
		m.add(receipts.NewHeartbeat(common()))
		if r := m.verify(); r.Exit != 1 || reasons(r) != "REVOKED UNPROTECTED" {
			t.Error(text(r))
		}
	})
	t.Run("a rotation the old key did not sign", func(t *testing.T) {
		m := made()
		m.key = seedKey("thief")
		m.rotate("thief's second")
		if r := m.verify(); r.Exit != 1 || reasons(r) != "ALTERED UNPROTECTED" {
			t.Error(text(r))
		}
	})
	t.Run("the new key before its rotation", func(t *testing.T) {
		m := makeChain(t, "a.invalid", "first")
		m.key = seedKey("second")
		m.add(receipts.NewHeartbeat(common()))
		if r := m.verify(); r.Exit != 1 || reasons(r) != "ALTERED UNPROTECTED" {
			t.Error(text(r))
		}
	})
}

func TestGenesis(t *testing.T) {
	m := makeChain(t, "a.invalid", "k")
	m.add(receipts.NewHeartbeat(common()))
	m.lines = m.lines[1:]
	if r := m.verify(); r.Exit != 1 || reasons(r) != "GAP UNPROTECTED" {
		t.Error(text(r))
	}
	m = makeChain(t, "a.invalid", "k")
	m.lines = nil
	m.add(receipts.NewHeartbeat(common()))
	if r := m.verify(); r.Exit != 1 || reasons(r) != "MALFORMED UNPROTECTED" {
		t.Error(text(r))
	}
	// A genesis whose origin is the hash of another key.
	head := seedKey("other head").Public().(ed25519.PublicKey)
	m = makeChain(t, "a.invalid", "k")
	m.lines = nil
	m.add(receipts.NewGenesis(common(), receipts.HeadVkey(m.origin, head), m.key.Public().(ed25519.PublicKey)))
	if r := m.verify(); r.Exit != 1 || reasons(r) != "SPLICED UNPROTECTED" {
		t.Error(text(r))
	}
}

// What happened in sessions is told and counted; it decides nothing.
func TestStory(t *testing.T) {
	m := makeChain(t, "a.invalid", "k")
	session := func(name string) receipts.Common { c := common(); c.Session = name; return c }
	call := func(id string) receipts.Call { return receipts.Call{ID: id} }
	decide := func(s, id string) {
		m.add(receipts.NewDecision(session(s), receipts.Decision{Call: call(id), Effect: "allow", Mode: receipts.ModeEnforced}))
	}
	principal := receipts.Commit(receipts.FieldPrincipal, [32]byte{1}, []byte("someone"))
	for _, s := range []string{"one", "two", "three"} { // several runs in one chain
		m.add(receipts.NewSessionOpen(session(s), "2025-06-18", time.Minute, principal))
	}
	decide("one", "a")
	decide("one", "a") // a retry
	m.add(receipts.NewOutcome(session("one"), receipts.Outcome{Call: call("a"), Status: receipts.StatusOK}))
	decide("two", "b") // never ends
	m.add(receipts.NewSessionClose(session("one"), receipts.EndInterrupted))
	m.add(receipts.NewGap(session("one"), receipts.Gap{Count: 1, Reason: "calls not run: no space"}))
	m.add(receipts.NewSessionClose(session("two"), receipts.EndClosed))
	m.add(receipts.NewLate(session("two"), receipts.Outcome{Call: call("b"), Status: receipts.StatusOK}))
	m.add(receipts.NewGap(session("three"), receipts.Gap{Count: 2, Reason: "no space"}))
	m.add(receipts.NewErasure(session("three"), []receipts.Erased{{Seq: 4, Field: "args_sent"}}, receipts.ErasedOnRequest))
	r := m.verify()
	if r.Exit != 2 || reasons(r) != "UNPROTECTED ERASED" {
		t.Error(text(r))
	}
	if want := "2 gap receipts: calls ran that were not recorded, or not whole (1), calls were not run, since they could not be recorded (1)"; !strings.Contains(text(r), want) {
		t.Errorf("no line %q in\n%s", want, text(r))
	}
	for name, want := range map[string]int64{"calls": 3, "outcomes": 1, "openCalls": 1, "openSessions": 1, "retries": 1, "afterClose": 0, "gaps": 2} {
		if r.Counts[name] != want {
			t.Errorf("%s %d, want %d", name, r.Counts[name], want)
		}
	}
}

// No router writes a receipt of a session that has closed; a late result and a
// gap are told when they can be.
func TestAfterClose(t *testing.T) {
	m := makeChain(t, "a.invalid", "k")
	c := common()
	m.add(receipts.NewSessionOpen(c, "2025-06-18", time.Minute, receipts.Commit(receipts.FieldPrincipal, [32]byte{1}, nil)))
	m.add(receipts.NewSessionClose(c, receipts.EndClosed))
	m.add(receipts.NewLate(c, receipts.Outcome{Call: receipts.Call{ID: "a"}, Status: receipts.StatusOK}))
	m.add(receipts.NewGap(c, receipts.Gap{Count: 1, Reason: "no space"}))
	if r := m.verify(); r.Exit != 2 || reasons(r) != "UNPROTECTED" {
		t.Error(text(r))
	}
	m.add(receipts.NewHeartbeat(c))
	if r := m.verify(); r.Exit != 1 || reasons(r) != "SPLICED UNPROTECTED" || *r.Reasons[0].Index != 5 || r.Counts["afterClose"] != 1 {
		t.Error(text(r))
	}
}

type lostSalts map[uint64]bool

func (l lostSalts) Salt(seq uint64, _ receipts.FieldID) ([32]byte, error) {
	if l[seq] {
		return [32]byte{}, chain.ErrErased
	}
	return [32]byte{1}, nil
}

func TestErasedSalts(t *testing.T) {
	m := makeChain(t, "a.invalid", "k")
	for range 3 {
		m.add(receipts.NewDecision(common(), receipts.Decision{Effect: "allow", Mode: receipts.ModeEnforced},
			receipts.Commit(receipts.FieldArgsSent, [32]byte{1}, nil)))
	}
	m.add(receipts.NewErasure(common(), []receipts.Erased{{Seq: 1, Field: "args_sent"}}, receipts.ErasedByCrash))
	r := anchor.Verify(anchor.Source{Chain: m, Salts: lostSalts{1: true, 3: true}}, anchor.Trust{Origin: m.origin})
	var told []string
	for _, f := range r.Reasons {
		if f.Reason == anchor.ErasedSalt {
			told = append(told, fmt.Sprintf("%d %s", *f.Index, f.Detail))
		}
	}
	want := []string{"1 args_sent can never be opened again, told by receipt 4: crash",
		"3 args_sent can never be opened again: its salt is gone and no erasure receipt tells why"}
	if !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

// Any edit of what was witnessed is seen, whatever it is: bytes changed, lines
// deleted, repeated, moved, cut or signed anew by the chain's owner.
func TestRandomEdits(t *testing.T) {
	w := newWorld(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	judged := 0
	for i := range 150 {
		changed := false
		dir := w.copyWith(t, func(l [][]byte) []byte {
			honest := joined(l[:w.covered])
			for range 1 + rnd.IntN(3) {
				l = edit(t, w, rnd, l)
			}
			out := joined(l)
			changed = len(l) < int(w.covered) || !slices.Equal(joined(l[:w.covered]), honest)
			return out
		})
		r := verifyDir(t, dir, w.snapshot, w.trust())
		if changed && r.Exit == 0 {
			t.Fatalf("edit %d passed\n%s", i, text(r))
		}
		if changed {
			judged++
		}
	}
	if judged < 75 {
		t.Errorf("only %d edits touched what was witnessed", judged)
	}
}

func edit(t *testing.T, w *world, rnd *rand.Rand, l [][]byte) [][]byte {
	if len(l) < 2 {
		return l
	}
	i, k := rnd.IntN(len(l)), rnd.IntN(len(l))
	out := slices.Clone(l)
	switch rnd.IntN(7) {
	case 0:
		out[i] = slices.Clone(out[i])
		out[i][rnd.IntN(len(out[i]))] ^= 1 << rnd.IntN(8)
	case 1:
		out = slices.Delete(out, i, i+1)
	case 2:
		out = slices.Insert(out, i, l[k])
	case 3:
		out[i], out[k] = out[k], out[i]
	case 4:
		out = out[:i]
	case 5:
		out[i] = out[i][:rnd.IntN(len(out[i]))]
	case 6:
		if _, err := receipts.ParseLine(out[i]); err == nil {
			out[i] = resign(t, w.dir, out[i:i+1], 0, func(_ int, p []byte) []byte { return append(p, ' ') })[0]
		}
	}
	return out
}

// The lines that FuzzLines starts from are made here, where keys are at hand.
func TestFuzzSeed(t *testing.T) {
	m := makeChain(t, "a.invalid", "k")
	m.add(receipts.NewHeartbeat(common()))
	m.rotate("k2")
	m.add(receipts.NewHeartbeat(common()))
	name := filepath.Join("testdata", "rotated.jsonl")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(name, joined(m.lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	kept := &madeChain{t: t, origin: m.origin, lines: bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))}
	if r := kept.verify(); reasons(r) != "UNPROTECTED" || r.Receipts != 4 {
		t.Error(text(r))
	}
}

package anchor_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolguardian/anchor"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// chainTamper is one change of a chain's lines, and what it is called. A change
// that returns nil leaves no segment.
type chainTamper struct {
	name   string
	change func(l [][]byte) []byte
	exit   int
	want   string
	index  int64 // where one of the reasons must point
}

// chainTampers are changes to the lines of a world with at least 13 witnessed
// receipts and three that are not.
func chainTampers(t testing.TB, w *world) []chainTamper {
	same := func(_ int, p []byte) []byte { return p }
	otherTool := func(i int, p []byte) []byte {
		return bytes.Replace(p, []byte(`"tool":"read"`), []byte(`"tool":"list"`), 1)
	}
	return []chainTamper{
		{"one byte of an old receipt", func(l [][]byte) []byte { l[5] = flipped(l[5]); return joined(l) }, 1, "ALTERED", 5},
		{"one digit of the genesis", func(l [][]byte) []byte {
			e, _ := receipts.ParseLine(l[0])
			e.Payload = bytes.Replace(e.Payload, []byte(`"wall":"2`), []byte(`"wall":"1`), 1)
			l[0] = e.Bytes()
			return joined(l)
		}, 1, "ALTERED", 0},
		{"one byte of an unwitnessed receipt", func(l [][]byte) []byte { l[w.covered+2] = flipped(l[w.covered+2]); return joined(l) }, 1, "ALTERED", int64(w.covered) + 2},
		{"a signature of another receipt", func(l [][]byte) []byte {
			a, _ := receipts.ParseLine(l[5])
			b, _ := receipts.ParseLine(l[6])
			a.Sig = b.Sig
			l[5] = a.Bytes()
			return joined(l)
		}, 1, "ALTERED", 5},
		{"a receipt signed by another key", func(l [][]byte) []byte { l[5] = signed(seedKey("agent"), payloadOf(t, l[5])); return joined(l) }, 1, "ALTERED", 5},
		{"a row written into the file", func(l [][]byte) []byte {
			return joined(slices.Insert(l, 5, signed(seedKey("agent"), payloadOf(t, l[5]))))
		}, 1, "ALTERED", 5},
		{"the tail deleted", func(l [][]byte) []byte { return joined(l[:12]) }, 1, "TRUNCATED", 12},
		{"only what was never witnessed deleted", func(l [][]byte) []byte { return joined(l[:w.covered]) }, 0, "", 0},
		{"truncated to nothing", func(l [][]byte) []byte { return []byte{} }, 1, "TRUNCATED", 0},
		{"the chain deleted", func(l [][]byte) []byte { return nil }, 1, "TRUNCATED", 0},
		{"history rewritten with valid signatures", func(l [][]byte) []byte {
			return joined(resign(t, w.dir, l, 5, otherTool))
		}, 1, "REWRITTEN", 0},
		{"rewritten and cut to the witnessed size", func(l [][]byte) []byte {
			return joined(resign(t, w.dir, l, 5, otherTool)[:w.covered])
		}, 1, "REWRITTEN", 0},
		{"one receipt replaced, links not mended", func(l [][]byte) []byte {
			l[5] = resign(t, w.dir, l[:6], 5, otherTool)[5]
			return joined(l)
		}, 1, "REWRITTEN SPLICED", 0},
		{"a receipt missing", func(l [][]byte) []byte { return joined(slices.Delete(l, 5, 6)) }, 1, "GAP", 5},
		{"receipts missing in two places", func(l [][]byte) []byte { return joined(slices.Delete(slices.Delete(l, 9, 11), 5, 6)) }, 1, "GAP", 5},
		{"the first receipts missing", func(l [][]byte) []byte { return joined(l[3:]) }, 1, "GAP", 0},
		{"the same seq twice", func(l [][]byte) []byte { return joined(slices.Insert(l, 8, l[5])) }, 1, "DUPLICATE", 5},
		{"two receipts swapped", func(l [][]byte) []byte { l[5], l[6] = l[6], l[5]; return joined(l) }, 1, "SPLICED", 5},
		{"a second genesis", func(l [][]byte) []byte {
			g := bytes.ReplaceAll(payloadOf(t, l[0]), []byte(`"seq":0`), []byte(`"seq":5`))
			l[5] = resign(t, w.dir, [][]byte{l[0]}, 0, func(int, []byte) []byte { return g })[0]
			return joined(l)
		}, 1, "REWRITTEN SPLICED", 5},
		{"a wrong keySeq", func(l [][]byte) []byte {
			l[5] = resign(t, w.dir, l[:6], 5, func(_ int, p []byte) []byte {
				return bytes.Replace(p, []byte(`"keySeq":0`), []byte(`"keySeq":3`), 1)
			})[5]
			return joined(l)
		}, 1, "REWRITTEN SPLICED", 5},
		{"a receipt of another chain, same key", func(l [][]byte) []byte {
			l[5] = resign(t, w.dir, l[:6], 5, func(_ int, p []byte) []byte {
				return bytes.ReplaceAll(p, []byte("agents.invalid/"), []byte("other.invalid/"))
			})[5]
			return joined(l)
		}, 1, "SPLICED", 5},
		{"garbage in place of a receipt", func(l [][]byte) []byte { l[5] = []byte(`{"seq":5}`); return joined(l) }, 1, "MALFORMED", 5},
		{"garbage between receipts", func(l [][]byte) []byte { return joined(slices.Insert(l, 5, []byte("garbage"))) }, 1, "MALFORMED", 5},
		{"an empty line", func(l [][]byte) []byte { return joined(slices.Insert(l, 5, []byte{})) }, 1, "MALFORMED", 5},
		{"a duplicate member, signed", func(l [][]byte) []byte {
			l[5] = resign(t, w.dir, l[:6], 5, func(_ int, p []byte) []byte {
				return bytes.Replace(p, []byte(`"keySeq":0`), []byte(`"keySeq":0,"keySeq":0`), 1)
			})[5]
			return joined(l)
		}, 1, "MALFORMED", 5},
		{"an envelope with white space", func(l [][]byte) []byte {
			l[5] = bytes.Replace(l[5], []byte(`,"payloadType"`), []byte(`, "payloadType"`), 1)
			return joined(l)
		}, 1, "MALFORMED", 5},
		{"base64 without padding bits cleared", func(l [][]byte) []byte {
			l[5] = bytes.Replace(l[5], []byte(`=="}]}`), []byte(`=" }]}`), 1)
			return joined(l)
		}, 1, "MALFORMED", 5},
		{"a torn last line", func(l [][]byte) []byte { return append(joined(l), l[3][:100]...) }, 2, "TORN", int64(w.size)},
		{"a newer format", func(l [][]byte) []byte {
			return joined(resign(t, w.dir, l, len(l)-1, func(_ int, p []byte) []byte {
				return bytes.Replace(p, []byte("tool-guardian/receipt/1"), []byte("tool-guardian/receipt/2"), 1)
			}))
		}, 2, "UNKNOWN_VERSION", int64(w.size) - 1},
		{"an unknown kind", func(l [][]byte) []byte {
			return joined(resign(t, w.dir, l, len(l)-1, func(_ int, p []byte) []byte {
				return bytes.Replace(p, []byte(`"kind":"outcome"`), []byte(`"kind":"dream"`), 1)
			}))
		}, 0, "", 0},
		{"nothing but signed anew", func(l [][]byte) []byte { return joined(resign(t, w.dir, l, 3, same)) }, 0, "", 0},
	}
}

func TestTamperTable(t *testing.T) {
	w := newWorld(t)
	for _, tc := range chainTampers(t, w) {
		t.Run(tc.name, func(t *testing.T) {
			dir := w.copyWith(t, tc.change)
			r := verifyDir(t, dir, w.snapshot, w.trust())
			if r.Exit != tc.exit || reasons(r) != tc.want {
				t.Fatalf("exit %d reasons %q, want %d %q\n%s", r.Exit, reasons(r), tc.exit, tc.want, text(r))
			}
			if tc.want == "" {
				return
			}
			if !slices.ContainsFunc(r.Reasons, func(f anchor.Finding) bool { return f.Index != nil && int64(*f.Index) == tc.index }) {
				t.Errorf("no reason at %d\n%s", tc.index, text(r))
			}
		})
	}
}

// snapshotTamper is one change of what a witness answered.
type snapshotTamper struct {
	name   string
	change func(s *anchor.Snapshot)
	exit   int
	want   string // empty: any
}

func snapshotTampers() []snapshotTamper {
	flip := func(b []byte, i int) []byte { out := bytes.Clone(b); out[i] ^= 1; return out }
	return []snapshotTamper{
		{"another origin", func(s *anchor.Snapshot) { s.Origin = strings.Replace(s.Origin, "agents", "agentx", 1) }, 1, "SPLICED"},
		{"leaf of another chain", func(s *anchor.Snapshot) {
			s.Newest.LeafBytes = bytes.Replace(s.Newest.LeafBytes, []byte("origin agents"), []byte("origin agentx"), 1)
		}, 1, "SPLICED"},
		{"leaf byte", func(s *anchor.Snapshot) { s.Newest.LeafBytes = flip(s.Newest.LeafBytes, len(s.Newest.LeafBytes)-20) }, 1, ""},
		{"inclusion path", func(s *anchor.Snapshot) { s.Newest.Leaf.Hashes[0][0] ^= 1 }, 1, "ABSENT"},
		{"wrong index", func(s *anchor.Snapshot) { s.Newest.Leaf.Index++ }, 1, "ABSENT"},
		{"no key leaf", func(s *anchor.Snapshot) { s.Newest.Keys = nil }, 1, "ABSENT"},
		{"key leaf not included", func(s *anchor.Snapshot) { s.Newest.Keys[0].Proof.Hashes[0][0] ^= 1 }, 1, "ABSENT"},
		{"key leaf of another place", func(s *anchor.Snapshot) {
			s.Newest.Keys[0] = anchor.KeyEvidence{Bytes: s.Newest.LeafBytes, Proof: s.Newest.Leaf}
		}, 1, "SPLICED"},
		{"log signature", func(s *anchor.Snapshot) {
			cp := s.Newest.Leaf.Checkpoint
			i := bytes.LastIndexByte(cp, ' ') + 20
			c := byte('A')
			if cp[i] == c {
				c = 'B'
			}
			out := bytes.Clone(cp)
			out[i] = c
			s.Newest.Leaf.Checkpoint = out
			s.Newest.Keys[0].Proof.Checkpoint = out
		}, 1, "ALTERED"},
		{"no head any more", func(s *anchor.Snapshot) { s.Newest, s.Head, s.Stamped = nil, nil, nil }, 2, "UNPROTECTED"},
		{"no time", func(s *anchor.Snapshot) { s.Stamped = nil }, 2, "MISSING_TIME"},
		{"token byte", func(s *anchor.Snapshot) {
			s.Stamped.Times[0].Token = flip(s.Stamped.Times[0].Token, len(s.Stamped.Times[0].Token)-3)
		}, 1, "ALTERED"},
		{"token truncated", func(s *anchor.Snapshot) { s.Stamped.Times[0].Token = s.Stamped.Times[0].Token[:50] }, 1, "BAD_TIME"},
		{"one good token beside a bad one", func(s *anchor.Snapshot) {
			s.Stamped.Times = append([]anchor.TimeEvidence{{Authority: "bad", Token: []byte{0x30, 0}}}, s.Stamped.Times...)
		}, 2, "BAD_TIME"},
	}
}

// A witness that lies, or a path to it that changes bytes, is named too.
func TestTamperedSnapshot(t *testing.T) {
	w := newWorld(t)
	for _, tc := range snapshotTampers() {
		t.Run(tc.name, func(t *testing.T) {
			s := w.rig.snapshot(w.origin, 0)
			tc.change(s)
			r := verifyDir(t, w.dir, s, w.trust())
			if r.Exit != tc.exit || tc.want != "" && reasons(r) != tc.want {
				t.Errorf("exit %d reasons %q, want %d %q\n%s", r.Exit, reasons(r), tc.exit, tc.want, text(r))
			}
		})
	}
}

// A checkpoint signed by the log that another one contradicts convicts it.
func TestWitnessFork(t *testing.T) {
	w := newWorld(t)
	if r := verifyDir(t, w.dir, forkedLog(t, w), w.trust()); r.Exit != 1 || !strings.Contains(reasons(r), "WITNESS_FORK") {
		t.Error(text(r))
	}
}

// A witness that shows two checkpoints and no path between them may have forked
// its log, and hides the time that was asked for: that never passes.
func TestNoPathBetweenCheckpoints(t *testing.T) {
	w := newWorld(t)
	s := w.rig.snapshot(w.origin, 0)
	if len(s.Links) == 0 {
		t.Fatal("the checkpoints are one: nothing to leave out")
	}
	s.Links = nil
	if r := verifyDir(t, w.dir, s, w.trust()); r.Exit != 2 || !strings.Contains(reasons(r), "UNPROTECTED") {
		t.Error(text(r))
	}
}

// With several pins all must hold: a key of another chain among them does not
// go unsaid.
func TestOnePinOfAnotherChain(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	trust := w.trust()
	trust.ChainKeys = append(trust.ChainKeys, other.trust().ChainKeys...)
	if r := verifyDir(t, w.dir, w.rig.snapshot(w.origin, 0), trust); r.Exit != 1 || !strings.Contains(reasons(r), "ABSENT") {
		t.Error(text(r))
	}
}

// forkedLog is the answer of a witness that signed two roots for one size.
func forkedLog(t testing.TB, w *world) *anchor.Snapshot {
	t.Helper()
	s := w.rig.snapshot(w.origin, 0)
	s.Stamped.Leaf = s.Newest.Leaf
	s.Links = nil
	cp, _, err := tlog.ParseSignedCheckpoint(s.Newest.Leaf.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	log := logSigner(t, w.rig)
	// The same leaf alone in a log of one: another root for a size the log has signed.
	forged := func(leaf []byte, index uint64, hashes []tlog.Hash, root tlog.Hash) tlog.Proof {
		c := tlog.Checkpoint{Origin: logName, Size: cp.Size, Root: root}
		sig, err := log.Sign(c.Text())
		if err != nil {
			t.Fatal(err)
		}
		return tlog.Proof{Index: index, Hashes: hashes, Checkpoint: tlog.Note{Text: c.Text(), Signatures: []tlog.Signature{sig}}.Bytes()}
	}
	tree := &memTree{}
	var root tlog.Hash
	for i := range cp.Size {
		entry := []byte("something else")
		switch i {
		case s.Newest.Leaf.Index:
			entry = s.Newest.LeafBytes
		case s.Newest.Keys[0].Proof.Index:
			entry = s.Newest.Keys[0].Bytes
		}
		root = tree.add(t, tlog.LeafHash(entry))
	}
	prove := func(i uint64) []tlog.Hash {
		h, err := tlog.ProveInclusion(i, cp.Size, tree)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	k := s.Newest.Keys[0]
	s.Stamped = &anchor.Evidence{LeafBytes: s.Newest.LeafBytes, Leaf: forged(s.Newest.LeafBytes, s.Newest.Leaf.Index, prove(s.Newest.Leaf.Index), root),
		Keys: []anchor.KeyEvidence{{Bytes: k.Bytes, Proof: forged(k.Bytes, k.Proof.Index, prove(k.Proof.Index), root)}}}
	return s
}

type memTree struct {
	tiles map[tlog.TileID][]byte
	size  uint64
}

func (m *memTree) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	return m.tiles[id][:width*tlog.HashSize], nil
}

func (m *memTree) add(t testing.TB, leaf tlog.Hash) tlog.Hash {
	t.Helper()
	changed, root, err := tlog.Grow(m.size, []tlog.Hash{leaf}, m)
	if err != nil {
		t.Fatal(err)
	}
	if m.tiles == nil {
		m.tiles = map[tlog.TileID][]byte{}
	}
	for id, tile := range changed {
		m.tiles[id] = tile
	}
	m.size++
	return root
}

func logSigner(t testing.TB, r *rig) *tlog.Signer {
	t.Helper()
	priv, err := tlog.LoadKeyFile(filepath.Join(r.o.Dir, "log.key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := tlog.NewSigner(logName, tlog.KeyEd25519, priv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

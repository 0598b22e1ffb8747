package anchor_test

import (
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/witness/api"
)

// madeLog is a witness log in memory, for acts the witness does not do yet.
type madeLog struct {
	t        testing.TB
	tree     memTree
	entries  [][]byte
	root     tlog.Hash
	log      *tlog.Signer
	cosigner *tlog.Signer
}

func makeLog(t testing.TB) *madeLog {
	return &madeLog{t: t, log: signerOf(t, logName, tlog.KeyEd25519, "log"), cosigner: signerOf(t, logName+"/cosigner", tlog.KeyCosignature, "cosigner")}
}

func signerOf(t testing.TB, name string, kind tlog.KeyType, seed string) *tlog.Signer {
	t.Helper()
	s, err := tlog.NewSigner(name, kind, seedKey(seed))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (l *madeLog) add(leaf api.Leaf) api.Ref {
	l.t.Helper()
	b, err := leaf.Bytes()
	if err != nil {
		l.t.Fatal(err)
	}
	l.root = l.tree.add(l.t, tlog.LeafHash(b))
	l.entries = append(l.entries, b)
	return api.At(uint64(len(l.entries) - 1))
}

// head adds the head of the chain as it is, signed by that head key.
func (l *madeLog) head(m *madeChain, key *tlog.Signer, keys api.Ref) api.Ref {
	l.t.Helper()
	tree := &memTree{}
	var root tlog.Hash
	for _, line := range m.lines {
		root = tree.add(l.t, tlog.LeafHash(line))
	}
	text := tlog.Checkpoint{Origin: m.origin, Size: uint64(len(m.lines)), Root: root}.Text()
	own, err := key.Sign(text)
	if err != nil {
		l.t.Fatal(err)
	}
	theirs, err := l.cosigner.Cosign(text, time.Now())
	if err != nil {
		l.t.Fatal(err)
	}
	note := tlog.Note{Text: text, Signatures: []tlog.Signature{own, theirs}}
	return l.add(api.Leaf{Type: api.LeafHead, Origin: m.origin, Keys: keys, Body: note.Bytes()})
}

func (l *madeLog) key(note api.KeyNote, keys api.Ref, signers ...*tlog.Signer) api.Ref {
	l.t.Helper()
	body, err := note.Sign(signers...)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.add(api.Leaf{Type: api.LeafKey, Origin: note.Origin, Keys: keys, Body: body})
}

// show is a snapshot of a head leaf and key leaves at the log's size now.
func (l *madeLog) show(origin string, head api.Ref, keys ...api.Ref) *anchor.Snapshot {
	l.t.Helper()
	text := tlog.Checkpoint{Origin: logName, Size: uint64(len(l.entries)), Root: l.root}.Text()
	sig, err := l.log.Sign(text)
	if err != nil {
		l.t.Fatal(err)
	}
	checkpoint := tlog.Note{Text: text, Signatures: []tlog.Signature{sig}}.Bytes()
	prove := func(r api.Ref) ([]byte, tlog.Proof) {
		hashes, err := tlog.ProveInclusion(r.Index, uint64(len(l.entries)), &l.tree)
		if err != nil {
			l.t.Fatal(err)
		}
		return l.entries[r.Index], tlog.Proof{Index: r.Index, Hashes: hashes, Checkpoint: checkpoint}
	}
	ev := &anchor.Evidence{}
	ev.LeafBytes, ev.Leaf = prove(head)
	for _, k := range keys {
		b, p := prove(k)
		ev.Keys = append(ev.Keys, anchor.KeyEvidence{Bytes: b, Proof: p})
	}
	return &anchor.Snapshot{Witness: "made", Origin: origin, Newest: ev}
}

func TestKeyLeaves(t *testing.T) {
	const label = "a.invalid"
	m := makeChain(t, label, "first")
	first := signerOf(t, m.origin, tlog.KeyEd25519, "head of "+label)
	second := signerOf(t, m.origin, tlog.KeyEd25519, "head after second")
	firstKey, secondKey := first.Vkey(), second.Vkey()
	rotate := func() api.KeyNote {
		return api.KeyNote{Act: api.KeyRotate, Origin: m.origin, FromSize: uint64(len(m.lines)), Old: &firstKey, New: &secondKey}
	}
	pinFirst := func(tr *anchor.Trust) { tr.ChainKeys = []tlog.Vkey{firstKey} }
	pinSecond := func(tr *anchor.Trust) { tr.ChainKeys = []tlog.Vkey{secondKey} }
	pinOrigin := func(tr *anchor.Trust) { tr.Origin = m.origin }
	m.rotate("second")

	for _, tc := range []struct {
		name  string
		build func(l *madeLog) *anchor.Snapshot
		pin   func(*anchor.Trust)
		exit  int
		want  string
	}{
		{"rotated by old and new", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(rotate(), k1, first, second)
			return l.show(m.origin, l.head(m, second, k2), k1, k2)
		}, pinFirst, 0, ""},
		{"pinned by the new key", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(rotate(), k1, first, second)
			return l.show(m.origin, l.head(m, second, k2), k1, k2)
		}, pinSecond, 0, ""},
		{"pinned by the origin", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(rotate(), k1, first, second)
			return l.show(m.origin, l.head(m, second, k2), k1, k2)
		}, pinOrigin, 0, ""},
		{"rotated by the operator, origin pinned", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(rotate(), k1, l.log)
			return l.show(m.origin, l.head(m, second, k2), k1, k2)
		}, pinOrigin, 2, "UNPINNED"},
		{"rotated by the operator, new key pinned", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(rotate(), k1, l.log)
			return l.show(m.origin, l.head(m, second, k2), k1, k2)
		}, pinSecond, 0, ""},
		{"enrolled by the operator", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, l.log)
			k2 := l.key(rotate(), k1, first, second)
			return l.show(m.origin, l.head(m, second, k2), k1, k2)
		}, pinFirst, 0, ""},
		{"rotated without the old key", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(rotate(), k1, second)
			return l.show(m.origin, l.head(m, second, k2), k1, k2)
		}, pinFirst, 1, "ALTERED"},
		{"old key signs after its rotation", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(rotate(), k1, first, second)
			return l.show(m.origin, l.head(m, first, k2), k1, k2)
		}, pinFirst, 1, "ABSENT REVOKED"},
		{"the newest key leaf held back", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(rotate(), k1, first, second)
			return l.show(m.origin, l.head(m, second, k2), k1)
		}, pinFirst, 1, "SPLICED"},
		{"revoked before the head", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(api.KeyNote{Act: api.KeyRevoke, Origin: m.origin, Old: &firstKey, Since: api.At(0)}, k1, l.log)
			return l.show(m.origin, l.head(m, first, k2), k1, k2)
		}, pinFirst, 1, "REVOKED"},
		{"first key that the origin does not name", func(l *madeLog) *anchor.Snapshot {
			k1 := l.key(api.NewEnrol(secondKey), api.Ref{}, second)
			return l.show(m.origin, l.head(m, second, k1), k1)
		}, pinSecond, 1, "SPLICED"},
		{"a key no receipt brings", func(l *madeLog) *anchor.Snapshot {
			third := signerOf(t, m.origin, tlog.KeyEd25519, "third")
			thirdKey := third.Vkey()
			k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
			k2 := l.key(api.KeyNote{Act: api.KeyRotate, Origin: m.origin, FromSize: 1, Old: &firstKey, New: &thirdKey}, k1, first, third)
			return l.show(m.origin, l.head(m, third, k2), k1, k2)
		}, pinFirst, 1, "SPLICED"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := makeLog(t)
			s := tc.build(l)
			tr := anchor.Trust{WitnessKeys: []tlog.Vkey{l.log.Vkey(), l.cosigner.Vkey()}, Now: time.Now()}
			tc.pin(&tr)
			r := anchor.Verify(anchor.Source{Target: "made", Chain: m, Witness: s}, tr)
			if r.Exit != tc.exit || reasons(r) != tc.want {
				t.Errorf("exit %d reasons %q, want %d %q\n%s", r.Exit, reasons(r), tc.exit, tc.want, text(r))
			}
		})
	}
}

// A container of a receipt after a rotation holds both key lines.
func TestContainerAcrossRotation(t *testing.T) {
	m := makeChain(t, "a.invalid", "first")
	first := signerOf(t, m.origin, tlog.KeyEd25519, "head of a.invalid")
	second := signerOf(t, m.origin, tlog.KeyEd25519, "head after second")
	firstKey, secondKey := first.Vkey(), second.Vkey()
	m.rotate("second")
	m.add(receipts.NewHeartbeat(common()))
	l := makeLog(t)
	k1 := l.key(api.NewEnrol(firstKey), api.Ref{}, first)
	k2 := l.key(api.KeyNote{Act: api.KeyRotate, Origin: m.origin, FromSize: 2, Old: &firstKey, New: &secondKey}, k1, first, second)
	s := l.show(m.origin, l.head(m, second, k2), k1, k2)
	tree, err := anchor.ReadTree(m, 3)
	if err != nil {
		t.Fatal(err)
	}
	tr := anchor.Trust{WitnessKeys: []tlog.Vkey{l.log.Vkey(), l.cosigner.Vkey()}, ChainKeys: []tlog.Vkey{firstKey}, Now: time.Now()}
	for seq, keyLines := range []int{1, 1, 2} { // the rotation itself is signed by the old key
		c, err := anchor.BuildProof(tree, uint64(seq), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.KeyLines) != keyLines {
			t.Errorf("receipt %d with %d key lines, want %d", seq, len(c.KeyLines), keyLines)
		}
		if r := anchor.Verify(anchor.Source{Container: c.Bytes()}, tr); r.Exit != 0 {
			t.Errorf("receipt %d\n%s", seq, text(r))
		}
	}
	c, err := anchor.BuildProof(tree, 2, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.KeyLines = c.KeyLines[:1]
	if r := anchor.Verify(anchor.Source{Container: c.Bytes()}, tr); r.Exit != 1 || reasons(r) != "ALTERED" {
		t.Errorf("without the rotation line\n%s", text(r))
	}
}

func (m *madeChain) Line(seq uint64) ([]byte, error) { return m.lines[seq], nil }

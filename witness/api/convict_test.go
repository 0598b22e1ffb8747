package api

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	modtlog "golang.org/x/mod/sumdb/tlog"

	"toolguardian/chain/tlog"
)

// memHashes is a tree kept by golang.org/x/mod.
type memHashes struct {
	hashes []modtlog.Hash
	n      int64
}

func (m *memHashes) ReadHashes(indexes []int64) ([]modtlog.Hash, error) {
	out := make([]modtlog.Hash, len(indexes))
	for i, n := range indexes {
		out[i] = m.hashes[n]
	}
	return out, nil
}

func treeOf(t testing.TB, n int, salt string) *memHashes {
	t.Helper()
	m := &memHashes{}
	for i := range n {
		h, err := modtlog.StoredHashes(m.n, fmt.Appendf(nil, "%s%d", salt, i), m)
		if err != nil {
			t.Fatal(err)
		}
		m.hashes = append(m.hashes, h...)
		m.n++
	}
	return m
}

func (m *memHashes) root(t testing.TB, n int64) tlog.Hash {
	t.Helper()
	h, err := modtlog.TreeHash(n, m)
	if err != nil {
		t.Fatal(err)
	}
	return tlog.Hash(h)
}

// forkPath is the path as a fork file has it: with the m-root where m is a
// power of two.
func (m *memHashes) forkPath(t testing.TB, from, to int64) (path []tlog.Hash) {
	t.Helper()
	p, err := modtlog.ProveTree(to, from, m)
	if err != nil {
		t.Fatal(err)
	}
	if IsPowerOfTwo(uint64(from)) {
		path = append(path, m.root(t, from))
	}
	for _, h := range p {
		path = append(path, tlog.Hash(h))
	}
	return path
}

// Both roots come out of every path of golang.org/x/mod, and no edit of a path
// or of a size gives the larger root again.
func TestPathRoots(t *testing.T) {
	const most = 40
	m := treeOf(t, most, "")
	for n := int64(2); n <= most; n++ {
		for from := int64(1); from < n; from++ {
			path := m.forkPath(t, from, n)
			a, b, err := pathRoots(uint64(from), uint64(n), path)
			if err != nil || a != m.root(t, from) || b != m.root(t, n) {
				t.Fatalf("from %d to %d: %v %v, %v", from, n, a, b, err)
			}
			for i := range path {
				edited := append([]tlog.Hash(nil), path...)
				edited[i][0] ^= 1
				if _, b, err := pathRoots(uint64(from), uint64(n), edited); err == nil && b == m.root(t, n) {
					t.Errorf("from %d to %d: hash %d edited gives the same root", from, n, i)
				}
			}
			for other := int64(1); other < n; other++ {
				a, b, err := pathRoots(uint64(other), uint64(n), path)
				if err == nil && b == m.root(t, n) && a != m.root(t, other) {
					t.Errorf("the path from %d to %d frames size %d", from, n, other)
				}
			}
		}
	}
}

func TestContradict(t *testing.T) {
	m, clone := treeOf(t, 12, ""), treeOf(t, 12, "clone ")
	cp := func(tree *memHashes, n int64) tlog.Checkpoint {
		return tlog.Checkpoint{Origin: "o", Size: uint64(n), Root: tree.root(t, n)}
	}
	other := cp(clone, 5)
	other.Origin = "p"
	for _, test := range []struct {
		name string
		a, b tlog.Checkpoint
		path []tlog.Hash
		want error
	}{
		{"one size, two roots", cp(m, 5), cp(clone, 5), nil, nil},
		{"one size, one root", cp(m, 5), cp(m, 5), nil, ErrNoContradiction},
		{"one size and a path", cp(m, 5), cp(clone, 5), []tlog.Hash{{1}}, ErrMalformed},
		{"a larger clone", cp(m, 5), cp(clone, 12), clone.forkPath(t, 5, 12), nil},
		{"a larger clone from a power of two", cp(m, 8), cp(clone, 12), clone.forkPath(t, 8, 12), nil},
		{"from a power of two without the m-root", cp(m, 8), cp(clone, 12), clone.forkPath(t, 8, 12)[1:], ErrMalformed},
		{"an extension", cp(m, 5), cp(m, 12), m.forkPath(t, 5, 12), ErrNoContradiction},
		{"an extension with a junk path", cp(m, 5), cp(m, 12), clone.forkPath(t, 5, 12), ErrNoContradiction},
		{"an extension without a path", cp(m, 5), cp(m, 12), nil, ErrMalformed},
		{"a above b", cp(m, 5), cp(clone, 4), nil, ErrMalformed},
		{"from size zero", tlog.Checkpoint{Origin: "o", Root: tlog.EmptyRoot()}, cp(m, 5), []tlog.Hash{{1}}, ErrMalformed},
		{"another origin", cp(m, 5), other, nil, ErrNoContradiction},
	} {
		if err := Contradict(test.a, test.b, test.path); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

// Every status of a key, and every rule between key leaves.
func TestKeyHistory(t *testing.T) {
	first := firstSigner(t)
	origin := first.Vkey().Name
	second, third := testSigner(t, origin, tlog.KeyEd25519), testSigner(t, origin, tlog.KeyEd25519)
	a, b, c := first.Vkey(), second.Vkey(), third.Vkey()
	rotate := func(old, new tlog.Vkey, from uint64) KeyNote {
		return KeyNote{Act: KeyRotate, Origin: origin, FromSize: from, Old: &old, New: &new}
	}
	revoke := func(old tlog.Vkey, since uint64) KeyNote {
		return KeyNote{Act: KeyRevoke, Origin: origin, Old: &old, Since: At(since)}
	}
	type step struct {
		index    uint64
		note     KeyNote
		operator bool
		want     error
	}
	h := KeyHistory{}
	for i, s := range []step{
		{3, rotate(a, b, 9), false, ErrKeyOrder},
		{3, revoke(a, 3), true, ErrKeyOrder},
		{3, NewEnrol(b), false, ErrMalformed}, // the origin does not name it
		{3, NewEnrol(a), false, nil},
		{4, NewEnrol(a), false, ErrKeyReused},
		{4, NewEnrol(b), false, ErrKeyOrder},
		{3, rotate(a, b, 9), false, ErrKeyOrder}, // at the same leaf
		{9, rotate(b, c, 9), false, ErrKeyOrder},
		{9, rotate(a, a, 9), false, ErrKeyReused},
		{9, rotate(a, b, 0), false, ErrKeyOrder},
		{9, rotate(a, b, 9), false, nil},
		{10, rotate(b, a, 12), true, ErrKeyReused},
		{10, rotate(b, c, 9), false, ErrKeyOrder},
		{20, revoke(b, 15), false, ErrKeyOrder},
		{20, revoke(b, 15), true, nil},
		{21, revoke(b, 15), true, ErrKeyRevoked},
		{21, rotate(b, c, 30), false, ErrKeyRevoked},
		{21, rotate(b, c, 30), true, nil},
	} {
		before := fmt.Sprint(h)
		err := h.Apply(s.index, s.note, s.operator)
		if !errors.Is(err, s.want) || s.want == nil && err != nil {
			t.Fatalf("step %d: %v, want %v", i, err, s.want)
		}
		if err != nil && fmt.Sprint(h) != before {
			t.Fatalf("step %d was refused and changed the history", i)
		}
	}
	for _, test := range []struct {
		key   tlog.Vkey
		index uint64
		want  KeyStatus
	}{
		{a, 3, KeyNotYet}, {a, 4, KeyInForce}, {a, 8, KeyInForce}, {a, 10, KeyRotated}, {a, 99, KeyRotated},
		{b, 9, KeyNotYet}, {b, 10, KeyInForce}, {b, 14, KeyInForce}, {b, 15, KeyDoubtful}, {b, 19, KeyDoubtful}, {b, 21, KeyIsClosed},
		{c, 21, KeyNotYet}, {c, 22, KeyInForce},
		{testSigner(t, origin, tlog.KeyEd25519).Vkey(), 9, KeyForeign},
	} {
		if got := h.Status(test.key, test.index); got != test.want {
			t.Errorf("%s at leaf %d is %q, want %q", test.key, test.index, got, test.want)
		}
	}
	if e, ok := h.InForce(); !ok || !e.Key.Equal(c) || !e.Operator {
		t.Errorf("in force is %+v, %v", e, ok)
	}
	for size, want := range map[uint64]tlog.Vkey{0: a, 9: a, 10: b, 30: b, 31: c} {
		if e, _ := h.Signed(size); !e.Key.Equal(want) {
			t.Errorf("size %d was signed by %s, want %s", size, e.Key, want)
		}
	}
}

func firstSigner(t testing.TB) *tlog.Signer {
	t.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(priv.Public().(ed25519.PublicKey))
	s, err := tlog.NewSigner("agents.invalid/c/"+hex.EncodeToString(sum[:16]), tlog.KeyEd25519, priv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// evidenceFiles are one of each kind, as a writer makes them.
func evidenceFiles(t testing.TB) (files [][]byte) {
	t.Helper()
	first := firstSigner(t)
	m, clone := treeOf(t, 9, ""), treeOf(t, 9, "clone ")
	note := func(cp tlog.Checkpoint) []byte {
		sig, err := first.Sign(cp.Text())
		if err != nil {
			t.Fatal(err)
		}
		return tlog.Note{Text: cp.Text(), Signatures: []tlog.Signature{sig}}.Bytes()
	}
	cp := func(tree *memHashes, n int64) tlog.Checkpoint {
		return tlog.Checkpoint{Origin: first.Vkey().Name, Size: uint64(n), Root: tree.root(t, n)}
	}
	cosigner := testSigner(t, "w/cosigner", tlog.KeyCosignature)
	cosigned := func(n, at int64) []byte {
		sig, err := cosigner.Cosign(cp(m, n).Text(), time.Unix(at, 0))
		if err != nil {
			t.Fatal(err)
		}
		return tlog.Note{Text: cp(m, n).Text(), Signatures: []tlog.Signature{sig}}.Bytes()
	}
	leaf := func(n int64) KeyProof {
		b, err := Leaf{Type: LeafHead, Origin: first.Vkey().Name, Body: note(cp(m, n))}.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return KeyProof{Bytes: b, Proof: tlog.Proof{Index: uint64(n), Checkpoint: note(cp(m, 9))}}
	}
	fork := ForkFile{A: note(cp(m, 5)), B: note(cp(clone, 9)), Path: clone.forkPath(t, 5, 9)}
	withKeys := fork
	withKeys.Keys = []KeyProof{leaf(1), leaf(2)}
	return [][]byte{fork.Bytes(), withKeys.Bytes(), ForkFile{A: note(cp(m, 5)), B: note(cp(clone, 5))}.Bytes(),
		RollbackFile{A: cosigned(9, 100), B: cosigned(5, 200)}.Bytes(), WitnessForkFile{A: leaf(5), B: leaf(9)}.Bytes()}
}

func TestEvidenceFilesRoundTrip(t *testing.T) {
	files := evidenceFiles(t)
	for i, b := range files[:3] {
		f, err := ParseForkFile(b)
		if err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		if _, _, err := f.Heads(); err != nil || !bytes.Equal(f.Bytes(), b) {
			t.Errorf("file %d: %v", i, err)
		}
	}
	r, err := ParseRollbackFile(files[3])
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Heads(); err != nil {
		t.Error(err)
	}
	if _, err := ParseWitnessForkFile(files[4]); err != nil {
		t.Error(err)
	}
	for i, b := range files { // no file is taken for another kind, nor cut
		_, e1 := ParseForkFile(b)
		_, e2 := ParseRollbackFile(b)
		_, e3 := ParseWitnessForkFile(b)
		n := 0
		for _, err := range []error{e1, e2, e3} {
			if err == nil {
				n++
			} else if !errors.Is(err, ErrMalformed) {
				t.Errorf("file %d: %v, want ErrMalformed", i, err)
			}
		}
		if n != 1 {
			t.Errorf("file %d is read as %d kinds", i, n)
		}
		if _, err := ParseForkFile(b[:len(b)-1]); !errors.Is(err, ErrMalformed) {
			t.Errorf("file %d cut: %v", i, err)
		}
	}
}

func FuzzEvidenceFiles(f *testing.F) {
	for _, b := range evidenceFiles(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if file, err := ParseForkFile(b); err == nil {
			file.Heads()
			if !bytes.Equal(file.Bytes(), b) {
				t.Errorf("fork file %q comes back as %q", b, file.Bytes())
			}
		}
		if file, err := ParseRollbackFile(b); err == nil {
			file.Heads()
			if !bytes.Equal(file.Bytes(), b) {
				t.Errorf("rollback file %q comes back as %q", b, file.Bytes())
			}
		}
		if file, err := ParseWitnessForkFile(b); err == nil {
			file.Judge()
			if !bytes.Equal(file.Bytes(), b) {
				t.Errorf("witness-fork file %q comes back as %q", b, file.Bytes())
			}
		}
	})
}

func FuzzStamps(f *testing.F) {
	s := firstSigner(f)
	for _, st := range []Stamp{
		{Origin: s.Vkey().Name, Log: "w/log", Commitments: []tlog.Hash{{1}, {2}}},
		{Origin: s.Vkey().Name, Log: "w/log", Root: &StampRoot{Size: 9, Root: tlog.Hash{3}}},
	} {
		b, err := st.Sign(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if st, note, err := ParseStamp(b); err == nil && (!bytes.Equal(st.Text(), note.Text) || !bytes.Equal(note.Bytes(), b)) {
			t.Errorf("stamp %q comes back as %q", b, note.Bytes())
		}
	})
}

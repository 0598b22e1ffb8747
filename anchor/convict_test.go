package anchor_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// side is one history of a chain, as far as a witness sees it: a tree and a
// head key.
type side struct {
	t    testing.TB
	key  *tlog.Signer
	tree *memTree
	root map[uint64]tlog.Hash
}

// newSide is a history of n receipts that leaves the common one after shared.
func newSide(t testing.TB, key *tlog.Signer, n, shared int, salt string) *side {
	t.Helper()
	s := &side{t: t, key: key, tree: &memTree{}, root: map[uint64]tlog.Hash{}}
	for i := range n {
		leaf := "receipt " + string(rune('a'+i))
		if i >= shared {
			leaf += salt
		}
		s.root[uint64(i+1)] = s.tree.add(t, tlog.LeafHash([]byte(leaf)))
	}
	return s
}

func (s *side) checkpoint(size uint64) tlog.Checkpoint {
	return tlog.Checkpoint{Origin: s.key.Vkey().Name, Size: size, Root: s.root[size]}
}

func (s *side) head(size uint64) []byte {
	s.t.Helper()
	text := s.checkpoint(size).Text()
	sig, err := s.key.Sign(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return tlog.Note{Text: text, Signatures: []tlog.Signature{sig}}.Bytes()
}

func (s *side) path(from, to uint64) []tlog.Hash {
	s.t.Helper()
	p, err := tlog.ProveConsistency(from, to, s.tree)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *side) post(r *rig, old, size uint64) error {
	s.t.Helper()
	_, err := r.client.AddCheckpoint(context.Background(), old, s.path(old, size), s.head(size))
	return err
}

// chainKey is the first head key of a made chain, and its next one.
func chainKeys(t testing.TB, label string) (first, next *tlog.Signer) {
	m := makeChain(t, label, "first")
	return signerOf(t, m.origin, tlog.KeyEd25519, "head of "+label), signerOf(t, m.origin, tlog.KeyEd25519, "next head of "+label)
}

func (r *rig) add(key *tlog.Signer) {
	r.t.Helper()
	if _, err := r.server.AddAgent(context.Background(), key.Vkey().String()); err != nil {
		r.t.Fatal(err)
	}
}

// forked makes a witness log a fork of a chain and gives the file it serves.
func (r *rig) forked(first *tlog.Signer, old uint64) (file []byte, index uint64) {
	r.t.Helper()
	honest, clone := newSide(r.t, first, 9, 9, ""), newSide(r.t, first, 9, 2, " of the clone")
	if err := honest.post(r, 0, 5); err != nil {
		r.t.Fatal(err)
	}
	size := uint64(5)
	if old > 0 {
		size = 9
	}
	if err := clone.post(r, old, size); err == nil {
		r.t.Fatal("the clone was cosigned")
	}
	return r.forkOf(first.Vkey().Name)
}

func (r *rig) forkOf(origin string) ([]byte, uint64) {
	r.t.Helper()
	places, err := r.client.Places(context.Background(), origin)
	if err != nil || len(places.Forks) != 1 {
		r.t.Fatalf("forks %v, %v", places.Forks, err)
	}
	file, err := r.client.ForkFile(context.Background(), places.Forks[0])
	if err != nil {
		r.t.Fatal(err)
	}
	return file, places.Forks[0]
}

func judge(file []byte, tr anchor.Trust) anchor.Report {
	tr.Now = time.Now()
	return anchor.Verify(anchor.Source{Target: "file", Container: file}, tr)
}

// A fork file, judged offline by pins alone.
func TestForkFile(t *testing.T) {
	r := newRig(t)
	first, next := chainKeys(t, "a.invalid")
	sibling, _ := chainKeys(t, "b.invalid")
	r.add(first)
	file, _ := r.forked(first, 5)
	log, cosigner := r.server.Vkeys()
	leaf, err := api.ParseForkFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bare := leaf
	bare.Keys = nil
	swapped := leaf
	swapped.A, swapped.B, swapped.Path = leaf.A, leaf.A, nil
	noPath := leaf
	noPath.Path = nil
	witnessKeys := []tlog.Vkey{log, cosigner}
	chainKey, nextKey, siblingKey := []tlog.Vkey{first.Vkey()}, []tlog.Vkey{next.Vkey()}, []tlog.Vkey{sibling.Vkey()}
	tests := []struct {
		name  string
		file  []byte
		trust anchor.Trust
		exit  int
		want  string
	}{
		{"log and chain pinned", file, anchor.Trust{WitnessKeys: witnessKeys, ChainKeys: chainKey}, 1, "FORK"},
		{"log and origin pinned", file, anchor.Trust{WitnessKeys: witnessKeys, Origin: first.Vkey().Name}, 1, "FORK"},
		{"log alone pinned", file, anchor.Trust{WitnessKeys: witnessKeys}, 1, "FORK UNPINNED"},
		{"chain alone pinned", file, anchor.Trust{ChainKeys: chainKey}, 1, "FORK UNPINNED"},
		{"chain alone pinned, no key leaves", bare.Bytes(), anchor.Trust{ChainKeys: chainKey}, 1, "FORK"},
		{"nothing pinned", file, anchor.Trust{}, 2, "UNPINNED"},
		{"nothing pinned, no key leaves", bare.Bytes(), anchor.Trust{}, 2, "UNPINNED"},
		{"another key of the chain pinned", file, anchor.Trust{WitnessKeys: witnessKeys, ChainKeys: nextKey}, 1, "FORK ABSENT"},
		{"the sibling's key pinned", bare.Bytes(), anchor.Trust{ChainKeys: siblingKey}, 1, "ABSENT"},
		{"one head twice", swapped.Bytes(), anchor.Trust{WitnessKeys: witnessKeys, ChainKeys: chainKey}, 1, "MALFORMED"},
		{"no path", noPath.Bytes(), anchor.Trust{WitnessKeys: witnessKeys, ChainKeys: chainKey}, 1, "MALFORMED"},
		{"cut", file[:len(file)-1], anchor.Trust{WitnessKeys: witnessKeys, ChainKeys: chainKey}, 1, "MALFORMED"},
		{"another root", bytes.Replace(file, []byte("\n9\n"), []byte("\n8\n"), 1), anchor.Trust{WitnessKeys: witnessKeys, ChainKeys: chainKey}, 1, "MALFORMED"},
		{"a signature edited", editSignature(t, leaf), anchor.Trust{WitnessKeys: witnessKeys, ChainKeys: chainKey}, 1, "ALTERED"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rep := judge(test.file, test.trust)
			if rep.Exit != test.exit || reasons(rep) != test.want {
				t.Errorf("exit %d reasons %q, want %d %q\n%s", rep.Exit, reasons(rep), test.exit, test.want, text(rep))
			}
		})
	}
}

func editSignature(t testing.TB, f api.ForkFile) []byte {
	t.Helper()
	n, err := tlog.ParseNote(f.B)
	if err != nil {
		t.Fatal(err)
	}
	sig := n.Signatures[0]
	sig.Bytes = bytes.Clone(sig.Bytes)
	sig.Bytes[3] ^= 1
	f.B = tlog.Note{Text: n.Text, Signatures: []tlog.Signature{sig}}.Bytes()
	return f.Bytes()
}

// A thief of a key that is out of force frames nobody: the fork is doubtful.
func TestForkByClosedKeys(t *testing.T) {
	for _, test := range []struct {
		name  string
		close func(r *rig, first, next *tlog.Signer) error
		want  string
	}{
		{"in force", func(*rig, *tlog.Signer, *tlog.Signer) error { return nil }, "FORK"},
		{"rotated", func(r *rig, first, next *tlog.Signer) error {
			old, new := first.Vkey(), next.Vkey()
			note, err := api.KeyNote{Act: api.KeyRotate, Origin: old.Name, FromSize: 7, Old: &old, New: &new}.Sign(first, next)
			if err == nil {
				_, err = r.client.Key(context.Background(), note)
			}
			return err
		}, "DOUBTFUL"},
		{"revoked", func(r *rig, first, _ *tlog.Signer) error {
			_, err := r.server.RevokeAgent(context.Background(), first.Vkey().Name, api.Ref{})
			return err
		}, "DOUBTFUL"},
		{"revoked, rotated by the operator", func(r *rig, first, next *tlog.Signer) error {
			if _, err := r.server.RevokeAgent(context.Background(), first.Vkey().Name, api.Ref{}); err != nil {
				return err
			}
			_, err := r.server.RotateAgent(context.Background(), next.Vkey().String(), 7)
			return err
		}, "DOUBTFUL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			first, next := chainKeys(t, "a.invalid")
			r.add(first)
			_, index := r.forked(first, 0)
			if err := test.close(r, first, next); err != nil {
				t.Fatal(err)
			}
			file, err := r.client.ForkFile(context.Background(), index)
			if err != nil {
				t.Fatal(err)
			}
			rep := judge(file, anchor.Trust{WitnessKeys: r.keys(), ChainKeys: []tlog.Vkey{first.Vkey()}})
			if reasons(rep) != test.want {
				t.Errorf("reasons %q, want %q\n%s", reasons(rep), test.want, text(rep))
			}
		})
	}
}

// A head recorded under a key that was rotated since convicts by our line.
func TestForkByOurLine(t *testing.T) {
	r := newRig(t)
	first, next := chainKeys(t, "a.invalid")
	r.add(first)
	honest, clone := newSide(t, first, 5, 5, ""), newSide(t, next, 9, 2, " of the clone")
	if err := honest.post(r, 0, 5); err != nil {
		t.Fatal(err)
	}
	old, new := first.Vkey(), next.Vkey()
	note, err := api.KeyNote{Act: api.KeyRotate, Origin: old.Name, FromSize: 7, Old: &old, New: &new}.Sign(first, next)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Key(context.Background(), note); err != nil {
		t.Fatal(err)
	}
	if err := clone.post(r, 5, 9); err == nil {
		t.Fatal("the clone was cosigned")
	}
	file, _ := r.forkOf(old.Name)
	if rep := judge(file, anchor.Trust{WitnessKeys: r.keys(), ChainKeys: []tlog.Vkey{old}}); reasons(rep) != "FORK" {
		t.Errorf("reasons %q, want FORK\n%s", reasons(rep), text(rep))
	}
	log, _ := r.server.Vkeys()
	if rep := judge(file, anchor.Trust{WitnessKeys: []tlog.Vkey{log}, ChainKeys: []tlog.Vkey{old}}); rep.Exit != 2 || strings.Contains(reasons(rep), "FORK") {
		t.Errorf("without the cosigner's pin: exit %d\n%s", rep.Exit, text(rep))
	}
}

// A rollback file convicts the cosigner that is pinned, and nobody else.
func TestRollbackFile(t *testing.T) {
	first, _ := chainKeys(t, "a.invalid")
	s := newSide(t, first, 9, 9, "")
	ours := signerOf(t, logName+"/cosigner", tlog.KeyCosignature, "cosigner")
	other := signerOf(t, "other.example/cosigner", tlog.KeyCosignature, "other")
	cosigned := func(by *tlog.Signer, size uint64, at int64) []byte {
		line, err := by.Cosign(s.checkpoint(size).Text(), time.Unix(at, 0))
		if err != nil {
			t.Fatal(err)
		}
		return tlog.Note{Text: s.checkpoint(size).Text(), Signatures: []tlog.Signature{line}}.Bytes()
	}
	pinned := anchor.Trust{WitnessKeys: []tlog.Vkey{ours.Vkey()}}
	for _, test := range []struct {
		name  string
		a, b  []byte
		trust anchor.Trust
		exit  int
		want  string
	}{
		{"smaller and later", cosigned(ours, 9, 100), cosigned(ours, 5, 200), pinned, 1, "WITNESS_ROLLBACK"},
		{"cosigner not pinned", cosigned(ours, 9, 100), cosigned(ours, 5, 200), anchor.Trust{}, 2, "UNPINNED"},
		{"at one time", cosigned(ours, 9, 100), cosigned(ours, 5, 100), pinned, 1, "MALFORMED"},
		{"in order", cosigned(ours, 5, 100), cosigned(ours, 9, 200), pinned, 1, "MALFORMED"},
		{"by two cosigners", cosigned(ours, 9, 100), cosigned(other, 5, 200), pinned, 1, "MALFORMED"},
		{"by the chain", s.head(9), s.head(5), pinned, 1, "MALFORMED"},
	} {
		rep := judge(api.RollbackFile{A: test.a, B: test.b}.Bytes(), test.trust)
		if rep.Exit != test.exit || reasons(rep) != test.want {
			t.Errorf("%s: exit %d reasons %q, want %d %q\n%s", test.name, rep.Exit, reasons(rep), test.exit, test.want, text(rep))
		}
	}
}

// After a revocation the heads since the named leaf are doubtful, earlier ones
// stand: the leaf's index decides, not a receipt's clock (E54).
func TestRevokedChain(t *testing.T) {
	for _, doubtful := range []bool{true, false} {
		w := newWorld(t)
		since := api.Ref{}
		if doubtful {
			since = api.At(w.snapshot.Newest.Leaf.Index)
		}
		if _, err := w.rig.server.RevokeAgent(context.Background(), w.origin, since); err != nil {
			t.Fatal(err)
		}
		rep := verifyDir(t, w.dir, w.rig.snapshot(w.origin, 0), w.trust())
		want, exit := "", 0
		if doubtful {
			want, exit = "DOUBTFUL", 2
		}
		if reasons(rep) != want || rep.Exit != exit {
			t.Errorf("doubtful %v: exit %d reasons %q, want %d %q\n%s", doubtful, rep.Exit, reasons(rep), exit, want, text(rep))
		}
	}
}

// A fork that the witness logged shows where the chain is verified.
func TestForkedChain(t *testing.T) {
	w := newWorld(t)
	size := w.snapshotSize(t)
	key := chainSigner(t, w.dir, w.origin)
	clone := newSide(t, key, int(size), 0, " of the clone")
	if err := clone.post(w.rig, size, size); err == nil {
		t.Fatal("the clone was cosigned")
	}
	rep := verifyDir(t, w.dir, w.rig.snapshot(w.origin, 0), w.trust())
	if reasons(rep) != "FORK" || rep.Exit != 1 || len(rep.Proofs) != 1 {
		t.Fatalf("exit %d reasons %q with %d files, want FORK with its file\n%s", rep.Exit, reasons(rep), len(rep.Proofs), text(rep))
	}
	if again := judge(rep.Proofs[0].Bytes, w.trust()); reasons(again) != "FORK" {
		t.Errorf("the file alone: %q\n%s", reasons(again), text(again))
	}
}

func (w *world) snapshotSize(t testing.TB) uint64 {
	t.Helper()
	l, err := api.ParseLeaf(w.snapshot.Newest.LeafBytes)
	if err != nil {
		t.Fatal(err)
	}
	h, err := api.ParseHeadLeaf(w.snapshot.Newest.Leaf.Index, l)
	if err != nil {
		t.Fatal(err)
	}
	return h.Head.Size
}

package anchor_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// chainSigner is the head key in a chain's folder: what a clone of the host has.
func chainSigner(t testing.TB, dir, origin string) *tlog.Signer {
	t.Helper()
	priv, err := tlog.LoadKeyFile(filepath.Join(dir, "keys", "head.key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := tlog.NewSigner(origin, tlog.KeyEd25519, priv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The walk over an honest witness's leaves, through a rotation, a fork and a
// revocation.
func TestWalk(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	first, next := chainKeys(t, "a.invalid")
	r.add(first)
	s := newSide(t, first, 20, 20, "")
	for _, p := range [][2]uint64{{0, 2}, {2, 3}, {3, 8}} {
		if err := s.post(r, p[0], p[1]); err != nil {
			t.Fatal(err)
		}
	}
	trust := anchor.Trust{WitnessKeys: r.keys(), ChainKeys: []tlog.Vkey{first.Vkey()}, Now: time.Now()}
	walk := func(want string) *anchor.Walk {
		t.Helper()
		w, err := anchor.FetchWalk(ctx, r.client, first.Vkey().Name, 100)
		if err != nil {
			t.Fatal(err)
		}
		if rep := anchor.VerifyWalk(*w, trust); reasons(rep) != want {
			t.Errorf("reasons %q, want %q\n%s", reasons(rep), want, text(rep))
		}
		return w
	}
	old, new := first.Vkey(), next.Vkey()
	note, err := api.KeyNote{Act: api.KeyRotate, Origin: old.Name, FromSize: 9, Old: &old, New: &new}.Sign(first, next)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Key(ctx, note); err != nil {
		t.Fatal(err)
	}
	s.key = next
	if err := s.post(r, 8, 11); err != nil {
		t.Fatal(err)
	}
	w := walk("")
	if len(w.Leaves) != 6 {
		t.Errorf("%d leaves, want two keys and four heads", len(w.Leaves))
	}
	for i := range w.Leaves { // a leaf held back breaks the links
		short := anchor.Walk{Origin: w.Origin, Leaves: append(append([]anchor.KeyEvidence(nil), w.Leaves[:i]...), w.Leaves[i+1:]...)}
		if rep := anchor.VerifyWalk(short, trust); i < len(w.Leaves)-1 && rep.Exit != 1 {
			t.Errorf("without leaf %d: exit %d\n%s", i, rep.Exit, text(rep))
		}
	}
	if _, err := r.server.RevokeAgent(ctx, old.Name, api.At(w.Leaves[5].Proof.Index)); err != nil {
		t.Fatal(err)
	}
	walk("DOUBTFUL")
}

// linked adds a head with the links and the proof lines that the log says.
func (l *madeLog) linked(s *side, size uint64, prev, keys api.Ref, proof []tlog.Hash) api.Ref {
	l.t.Helper()
	text := s.checkpoint(size).Text()
	own, err := s.key.Sign(text)
	if err != nil {
		l.t.Fatal(err)
	}
	theirs, err := l.cosigner.Cosign(text, time.Unix(1_900_000_000, 0))
	if err != nil {
		l.t.Fatal(err)
	}
	body := tlog.Note{Text: text, Signatures: []tlog.Signature{own, theirs}}.Bytes()
	return l.add(api.Leaf{Type: api.LeafHead, Origin: s.key.Vkey().Name, Prev: prev, Keys: keys, Proof: proof, Body: body})
}

func (l *madeLog) walk(origin string, refs ...api.Ref) anchor.Walk {
	l.t.Helper()
	s := l.show(origin, refs[0], refs...)
	return anchor.Walk{Origin: origin, Leaves: s.Newest.Keys}
}

// A doctored witness cosigned both histories of a chain and planted them in its
// log: the log convicts itself, by a file of its own.
func TestEquivocatingWitness(t *testing.T) {
	first, _ := chainKeys(t, "a.invalid")
	origin := first.Vkey().Name
	honest, clone := newSide(t, first, 9, 9, ""), newSide(t, first, 9, 2, " of the clone")
	for _, test := range []struct {
		name  string
		plant func(l *madeLog, keys, head api.Ref) api.Ref
		want  string
		files int
	}{
		{"honest", func(l *madeLog, keys, head api.Ref) api.Ref {
			return l.linked(honest, 9, head, keys, honest.path(5, 9))
		}, "", 0},
		{"one size, two roots", func(l *madeLog, keys, head api.Ref) api.Ref { return l.linked(clone, 5, head, keys, nil) }, "WITNESS_FORK", 1},
		{"a smaller head later", func(l *madeLog, keys, head api.Ref) api.Ref { return l.linked(honest, 3, head, keys, nil) }, "WITNESS_FORK", 1},
		{"the clone's larger head", func(l *madeLog, keys, head api.Ref) api.Ref {
			return l.linked(clone, 9, head, keys, clone.path(5, 9))
		}, "WITNESS_FORK", 1},
		{"the clone's larger head without proof lines", func(l *madeLog, keys, head api.Ref) api.Ref {
			return l.linked(clone, 9, head, keys, nil)
		}, "WITNESS_FORK", 1},
		{"one head twice", func(l *madeLog, keys, head api.Ref) api.Ref { return l.linked(honest, 5, head, keys, nil) }, "DUPLICATE", 0},
		{"a link past the other history", func(l *madeLog, keys, head api.Ref) api.Ref { return l.linked(clone, 9, keys, keys, nil) }, "SPLICED", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := makeLog(t)
			keys := l.key(api.NewEnrol(first.Vkey()), api.Ref{}, first)
			head := l.linked(honest, 5, keys, keys, nil)
			last := test.plant(l, keys, head)
			trust := anchor.Trust{WitnessKeys: []tlog.Vkey{l.log.Vkey(), l.cosigner.Vkey()}, ChainKeys: []tlog.Vkey{first.Vkey()}, Now: time.Now()}
			rep := anchor.VerifyWalk(l.walk(origin, keys, head, last), trust)
			if reasons(rep) != test.want || len(rep.Proofs) != test.files {
				t.Fatalf("reasons %q with %d files, want %q with %d\n%s", reasons(rep), len(rep.Proofs), test.want, test.files, text(rep))
			}
			if test.files == 0 {
				return
			}
			if alone := judge(rep.Proofs[0].Bytes, trust); reasons(alone) != "WITNESS_FORK" {
				t.Errorf("the file alone: %q\n%s", reasons(alone), text(alone))
			}
			if unpinned := judge(rep.Proofs[0].Bytes, anchor.Trust{}); unpinned.Exit != 2 {
				t.Errorf("the file with nothing pinned: exit %d\n%s", unpinned.Exit, text(unpinned))
			}
		})
	}
}

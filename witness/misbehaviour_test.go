package witness_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
)

// signersOf are the keys of the witness in dir: what a second process started
// from a copy of the folder would sign with.
func signersOf(t testing.TB, dir string) (log, cosigner *tlog.Signer) {
	t.Helper()
	load := func(file, name string, kind tlog.KeyType) *tlog.Signer {
		priv, err := tlog.LoadKeyFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		s, err := tlog.NewSigner(name, kind, priv)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return load("log.key", logName, tlog.KeyEd25519), load("cosigner.key", logName+"/cosigner", tlog.KeyCosignature)
}

// What is not our misbehaviour is refused, and the witness goes on.
func TestHonestEvidenceStopsNobody(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	a := r.enrolled().grow(9, "")
	old := r.status().Checkpoint
	r.add(a, 0, 3)
	r.add(a, 3, 5)
	served, _, err := r.client.Head(ctx, a.origin())
	if err != nil {
		t.Fatal(err)
	}
	forged := signedNote(t, tlog.Checkpoint{Origin: logName, Size: 99, Root: tlog.Hash{1}}.Text(), newAgent(t).signer)
	for name, test := range map[string]struct {
		body []byte
		want error
	}{
		"the newest checkpoint":          {[]byte(r.status().Checkpoint), api.ErrUnprocessable},
		"an older one":                   {[]byte(old), api.ErrUnprocessable},
		"one by another key":             {forged, api.ErrForbidden},
		"a head with our cosignature":    {served, api.ErrUnprocessable},
		"a head without":                 {a.head(5), api.ErrForbidden},
		"another log's":                  {signedNote(t, tlog.Checkpoint{Origin: "other.example/log", Size: 9, Root: tlog.Hash{1}}.Text(), a.signer), api.ErrUnprocessable},
		"a rollback by another":          {rollbackBy(t, a, newCosigner(t)), api.ErrForbidden},
		"a rollback file without a file": {[]byte(api.RollbackHeader + "\n"), api.ErrBadRequest},
		"junk":                           {[]byte("x"), api.ErrBadRequest},
	} {
		if err := r.client.Misbehaviour(ctx, test.body); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	r.add(a, 5, 9)
}

func newCosigner(t testing.TB) *tlog.Signer {
	t.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := tlog.NewSigner("other.example/cosigner", tlog.KeyCosignature, priv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rollbackBy has size 5 cosigned and, later, size 3.
func rollbackBy(t testing.TB, a *agent, s *tlog.Signer) []byte {
	t.Helper()
	return api.RollbackFile{A: cosigned(t, a, 5, s, 100), B: cosigned(t, a, 3, s, 200)}.Bytes()
}

// Our own signature over what the log does not hold: nothing more is signed,
// reading goes on, and a restart is refused with what to do.
func TestMisbehaviour(t *testing.T) {
	for _, test := range []struct {
		name      string
		body      func(r *rig, a *agent) []byte
		post      string
		status    int
		rollbacks int
	}{
		{"a larger checkpoint", func(r *rig, a *agent) []byte {
			log, _ := signersOf(t, r.o.Dir)
			return signedNote(t, tlog.Checkpoint{Origin: logName, Size: 1000, Root: tlog.Hash{1}}.Text(), log)
		}, "/misbehaviour", 200, 0},
		{"another root", func(r *rig, a *agent) []byte {
			log, _ := signersOf(t, r.o.Dir)
			return signedNote(t, tlog.Checkpoint{Origin: logName, Size: 2, Root: tlog.Hash{1}}.Text(), log)
		}, "/misbehaviour", 200, 0},
		{"a lost head", func(r *rig, a *agent) []byte {
			_, cosigner := signersOf(t, r.o.Dir)
			return cosigned(t, a, 9, cosigner, 4_000_000_000)
		}, "/misbehaviour", 200, 0},
		{"a lost head, smaller ones cosigned since", func(r *rig, a *agent) []byte {
			_, cosigner := signersOf(t, r.o.Dir)
			return cosigned(t, a, 9, cosigner, 100)
		}, "/misbehaviour", 200, 1},
		{"a rollback file", func(r *rig, a *agent) []byte {
			_, cosigner := signersOf(t, r.o.Dir)
			return rollbackBy(t, a, cosigner)
		}, "/misbehaviour", 200, 1},
		{"a lost head, sent as a head", func(r *rig, a *agent) []byte {
			_, cosigner := signersOf(t, r.o.Dir)
			own, err := tlog.ParseNote(a.head(9))
			if err != nil {
				t.Fatal(err)
			}
			ours, err := tlog.ParseNote(cosigned(t, a, 9, cosigner, 100))
			if err != nil {
				t.Fatal(err)
			}
			own.Signatures = append(own.Signatures, ours.Signatures...)
			return api.AddRequest{Old: 5, Proof: a.proof(5, 9), Head: own.Bytes()}.Bytes()
		}, "/add-checkpoint", 503, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			a := r.enrolled().grow(12, "")
			r.add(a, 0, 3)
			r.add(a, 3, 5)
			if w := r.post(test.post, test.body(r, a)); w.Code != test.status {
				t.Fatalf("status %d, want %d: %s", w.Code, test.status, w.Body)
			}
			if w := r.post("/add-checkpoint", a.body(5, 12)); w.Code != 503 {
				t.Errorf("the next head: status %d, want 503", w.Code)
			}
			for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/checkpoint/latest": 200, "/proof?index=0": 200} {
				if w := r.get(path); w.Code != want {
					t.Errorf("%s is %d, want %d", path, w.Code, want)
				}
			}
			rollbacks := r.agent(a.origin()).Rollbacks
			if len(rollbacks) != test.rollbacks {
				t.Fatalf("%d rollbacks are logged, want %d", len(rollbacks), test.rollbacks)
			}
			if len(rollbacks) > 0 {
				checkRollbackFile(t, r, rollbacks[0])
			}
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if _, err := witness.New(r.o); !errors.Is(err, witness.ErrMisbehaved) || !strings.Contains(err.Error(), "witness recover") {
				t.Errorf("a restart: %v, want ErrMisbehaved and what to do", err)
			}
		})
	}
}

func checkRollbackFile(t *testing.T, r *rig, index uint64) {
	t.Helper()
	b, err := r.client.RollbackFile(context.Background(), index)
	if err != nil {
		t.Fatal(err)
	}
	f, err := api.ParseRollbackFile(b)
	if err != nil {
		t.Fatal(err)
	}
	x, y, err := f.Heads()
	if err != nil {
		t.Error(err)
	}
	_, cosigner := r.server.Vkeys()
	for _, h := range []api.Head{x, y} {
		if _, err := h.Note.Verify(cosigner); err != nil {
			t.Error(err)
		}
	}
}

func cosigned(t testing.TB, a *agent, size int64, s *tlog.Signer, at int64) []byte {
	t.Helper()
	text := a.checkpoint(size).Text()
	sig, err := s.Cosign(text, time.Unix(at, 0))
	if err != nil {
		t.Fatal(err)
	}
	return tlog.Note{Text: text, Signatures: []tlog.Signature{sig}}.Bytes()
}

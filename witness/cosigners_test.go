package witness_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store/bolt"
)

// pair is a witness whose checkpoint another one cosigns. Rounds are made by
// the test alone.
type pair struct {
	*rig
	other *rig
}

func newPair(t *testing.T) pair {
	t.Helper()
	p := pair{rig: newRig(t)}
	log := mustLog(p.rig)
	p.other = newRig(t, func(o *witness.Options) {
		o.Dir = filepath.Join(t.TempDir(), "other")
		if err := witness.Init(o.Dir, "other.example/log", bolt.OpenDir); err != nil {
			t.Fatal(err)
		}
		o.CosignLogs = []tlog.Vkey{log}
	})
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	p.o.Cosigners, p.o.CosignEvery = policyOf(t, log, p.other), 1<<40
	p.start()
	return p
}

func policyOf(t *testing.T, log tlog.Vkey, cosigners ...*rig) *tlog.Policy {
	t.Helper()
	text := "log " + log.String() + "\n"
	var names []string
	for i, r := range cosigners {
		_, key := r.server.Vkeys()
		names = append(names, fmt.Sprintf("w%d", i))
		text += fmt.Sprintf("witness %s %s %s\n", names[i], key, r.url)
	}
	text += fmt.Sprintf("group g all %s\nquorum g\n", strings.Join(names, " "))
	policy, err := tlog.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func (r *rig) cosign() error { return r.server.Cosign(context.Background()) }

func (r *rig) mustCosign() {
	r.t.Helper()
	if err := r.cosign(); err != nil {
		r.t.Fatal(err)
	}
}

// The newest checkpoint that the quorum has cosigned is served, beside the
// newest durable one, and after a restart too.
func TestCheckpointOfTheQuorum(t *testing.T) {
	p := newPair(t)
	p.mustCosign()
	a := p.enrolled().grow(3, "")
	p.add(a, 0, 1)
	p.mustCosign()
	cosigned := p.get("/checkpoint").Body.Bytes()
	_, note, err := tlog.ParseSignedCheckpoint(cosigned)
	if err != nil || !p.o.Cosigners.Check(note).OK() || len(note.Signatures) != 2 {
		t.Fatalf("/checkpoint %v\n%s", err, cosigned)
	}
	if cp := mustCheckpoint(t, cosigned); cp.Size != p.status().Size {
		t.Errorf("cosigned is size %d of %d", cp.Size, p.status().Size)
	}
	p.add(a, 1, 2)
	if got := p.get("/checkpoint").Body.Bytes(); string(got) != string(cosigned) {
		t.Errorf("/checkpoint ran ahead of the quorum:\n%s", got)
	}
	if got := p.get("/checkpoint/latest").Body.String(); got != p.status().Checkpoint || got == string(cosigned) {
		t.Errorf("/checkpoint/latest is\n%s", got)
	}
	// The other is gone: what it cosigned is served on.
	if err := p.other.end(); err != nil {
		t.Fatal(err)
	}
	if err := p.cosign(); err == nil || !strings.Contains(err.Error(), "no quorum") {
		t.Errorf("a round without the other: %v", err)
	}
	p.restart()
	if got := p.get("/checkpoint").Body.Bytes(); string(got) != string(cosigned) {
		t.Errorf("after a restart /checkpoint is\n%s", got)
	}
	if st := p.status().Cosigned; st == nil || st.Size != mustCheckpoint(t, cosigned).Size || st.Cosigners[0].Name != "w0" {
		t.Errorf("status %+v", st)
	}
}

// Nothing is signed before a cosigner has told what it has seen.
func TestNothingIsSignedUnasked(t *testing.T) {
	p := newPair(t)
	a := p.enrolledOnceAsked()
	p.add(a, 0, 1)
	if err := p.other.end(); err != nil {
		t.Fatal(err)
	}
	p.restart()
	if err := p.cosign(); err == nil {
		t.Error("cosigned by nobody")
	}
	if w := p.post("/add-checkpoint", a.body(1, 2)); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a head before the cosigner was asked: %d, want 503", w.Code)
	}
	if got := p.ready(); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d", got)
	}
	if w := p.get("/checkpoint/latest"); w.Code != http.StatusOK {
		t.Errorf("reading: %d", w.Code)
	}
	// A head file guards by itself.
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	p.o.HeadFile = filepath.Join(t.TempDir(), "head")
	p.start()
	p.cosign()
	p.add(a, 1, 2)
}

func (p pair) enrolledOnceAsked() *agent {
	p.t.Helper()
	p.mustCosign()
	return p.enrolled().grow(9, "")
}

// A folder restored from an old copy is known to the cosigner, whether it stays
// behind or grows past the old size.
func TestCosignersDetectRollback(t *testing.T) {
	for name, grow := range map[string]int64{"behind": 0, "grown past": 5} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			a := p.enrolledOnceAsked()
			p.add(a, 0, 1)
			if err := p.end(); err != nil {
				t.Fatal(err)
			}
			db := filepath.Join(p.o.Dir, "log.db")
			old := readFile(t, db)
			p.start()
			p.mustCosign()
			p.add(a, 1, 2)
			p.add(a, 2, 3)
			p.mustCosign()
			if err := p.end(); err != nil {
				t.Fatal(err)
			}
			writeFile(t, db, old)
			o := p.o
			o.Cosigners = nil
			secret := &rig{t: t, o: o}
			secret.start()
			for i := range grow { // other heads: the same ones in the same second would be the same log
				secret.add(a, 1+min(i, 1)+i, 3+i)
			}
			if err := secret.end(); err != nil {
				t.Fatal(err)
			}
			p.start()
			if err := p.cosign(); !errors.Is(err, witness.ErrRolledBack) {
				t.Errorf("a round: %v, want ErrRolledBack", err)
			}
			before := p.status().Checkpoint
			if _, err := p.server.AddCheckpoint(context.Background(), a.body(1+min(grow, 1)+grow, 2+min(grow, 1)+grow)); !errors.Is(err, api.ErrUnavailable) {
				t.Errorf("a head: %v, want ErrUnavailable", err)
			}
			if p.status().Checkpoint != before || p.status().Cosigned.Held == "" {
				t.Errorf("status %+v", p.status().Cosigned)
			}
		})
	}
}

// Another log is cosigned by the same page as a chain, recorded, and not
// logged.
func TestForeignLogs(t *testing.T) {
	foreign := newAgentNamed(t, "foreign.example/log").grow(20, "")
	r := newRig(t, func(o *witness.Options) { o.CosignLogs = []tlog.Vkey{foreign.signer.Vkey()} })
	_, cosigner := r.server.Vkeys()
	size := r.status().Size
	tests := []struct {
		name string
		body []byte
		want int
	}{
		{"old above the size", api.AddRequest{Old: 6, Head: foreign.head(5)}.Bytes(), 400},
		{"first contact with an old size", api.AddRequest{Old: 3, Proof: foreign.proof(3, 5), Head: foreign.head(5)}.Bytes(), 409},
		{"first contact", foreign.body(0, 5), 200},
		{"again", foreign.body(5, 5), 200},
		{"from zero", foreign.body(0, 9), 409},
		{"with a junk proof", api.AddRequest{Old: 5, Proof: []tlog.Hash{{1}}, Head: foreign.head(9)}.Bytes(), 422},
		{"another root", api.AddRequest{Old: 5, Head: foreign.signed(tlog.Checkpoint{Origin: foreign.origin(), Size: 5, Root: tlog.Hash{1}})}.Bytes(), 422},
		{"another key", api.AddRequest{Old: 5, Proof: foreign.proof(5, 9), Head: newAgentNamed(t, foreign.origin()).grow(9, "").head(9)}.Bytes(), 403},
		{"on", foreign.body(5, 9), 200},
		{"back", foreign.body(5, 7), 409},
	}
	for _, test := range tests {
		w := r.post("/add-checkpoint", test.body)
		if w.Code != test.want {
			t.Errorf("%s: %d, want %d: %s", test.name, w.Code, test.want, w.Body)
		}
		if w.Header().Get(api.HeaderIndex) != "" {
			t.Errorf("%s: it has an index", test.name)
		}
		if w.Code != http.StatusOK {
			continue
		}
		lines, err := tlog.ParseSignatureLines(w.Body.Bytes())
		if err != nil || len(lines) != 1 || lines[0].Name != cosigner.Name {
			t.Errorf("%s: %v %v", test.name, lines, err)
		}
	}
	if got := r.status(); got.Size != size || len(got.Logs) != 1 || got.Logs[0].Size != 9 || got.Agents != 0 {
		t.Errorf("status %+v", got)
	}
	served, _, err := r.client.Head(context.Background(), foreign.origin())
	if err != nil {
		t.Fatal(err)
	}
	cp, note, err := tlog.ParseSignedCheckpoint(served)
	if err != nil || cp.Size != 9 {
		t.Fatalf("served %+v, %v", cp, err)
	}
	if _, err := note.Verify(cosigner); err != nil {
		t.Error(err)
	}
	r.restart()
	if w := r.post("/add-checkpoint", foreign.body(0, 5)); w.Code != 409 || w.Body.String() != "9\n" {
		t.Errorf("after a restart: %d %q, want 409 and 9", w.Code, w.Body)
	}
	if w := r.post("/add-checkpoint", newAgentNamed(t, "stranger.example/log").grow(1, "").body(0, 1)); w.Code != 404 {
		t.Errorf("a log that is not configured: %d", w.Code)
	}
}

func newAgentNamed(t *testing.T, name string) *agent {
	t.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := tlog.NewSigner(name, tlog.KeyEd25519, priv)
	if err != nil {
		t.Fatal(err)
	}
	return &agent{t: t, signer: signer}
}

package witness_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	modtlog "golang.org/x/mod/sumdb/tlog"

	"toolguardian/chain/tlog"
	"toolguardian/tsa"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
	"toolguardian/witness/store/bolt"
)

const logName = "witness.example/log"

// rig is one witness process: its folder, its server while it runs.
type rig struct {
	t       testing.TB
	o       witness.Options
	server  *witness.Server
	client  *api.Client
	url     string
	stop    func() error
	stopped bool
}

// silent is an authority that never answers: the tests of heads count leaves.
type silent struct{}

func (silent) Stamp(ctx context.Context, _ [32]byte) (tsa.Token, error) {
	<-ctx.Done()
	return tsa.Token{}, ctx.Err()
}

// newRig makes a witness and starts it. At the end of the test it is stopped
// and its whole store is checked.
func newRig(t testing.TB, change ...func(*witness.Options)) *rig {
	t.Helper()
	r := &rig{t: t, o: witness.Options{
		Dir: filepath.Join(t.TempDir(), "witness"), Engine: bolt.OpenDir,
		Authorities:   []witness.Authority{{Name: "silent", Timestamper: silent{}}},
		StampEvery:    time.Hour,
		RatePerSecond: -1,
	}}
	if err := witness.Init(r.o.Dir, logName, r.o.Engine); err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(&r.o)
	}
	r.start()
	t.Cleanup(func() { r.finish() })
	return r
}

func (r *rig) start() {
	r.t.Helper()
	if err := r.tryStart(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) tryStart() error {
	s, err := witness.New(r.o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	web := httptest.NewServer(s.Handler())
	r.server, r.url, r.stopped = s, web.URL, false
	r.client = api.New(web.URL, web.Client())
	r.stop = sync.OnceValue(func() error {
		web.Close()
		cancel()
		return errors.Join(<-done, s.Close())
	})
	return nil
}

// end stops the server and gives what Run returned.
func (r *rig) end() error {
	r.stopped = true
	return r.stop()
}

func (r *rig) restart() {
	r.t.Helper()
	if err := r.end(); err != nil && !errors.Is(err, witness.ErrFatal) {
		r.t.Fatal(err)
	}
	r.start()
}

func (r *rig) finish() {
	if !r.stopped {
		if err := r.end(); err != nil {
			r.t.Errorf("run: %v", err)
		}
	}
	r.fsck()
}

// fsck opens the folder as it lies and wants every hash to be right.
func (r *rig) fsck() {
	r.t.Helper()
	op, err := witness.Operate(context.Background(), r.o)
	if err != nil {
		r.t.Errorf("fsck: %v", err)
		return
	}
	defer op.Close()
	report, err := op.Fsck(context.Background())
	if err != nil || !report.OK() {
		r.t.Errorf("fsck: %v, %+v", err, report.Faults)
	}
}

// agent is what the operator is told of an origin.
func (r *rig) agent(origin string) witness.Agent {
	r.t.Helper()
	agents, err := r.server.Agents(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range agents {
		if a.Origin == origin {
			return a
		}
	}
	r.t.Fatalf("%s is not among the agents", origin)
	return witness.Agent{}
}

func (r *rig) status() witness.Status {
	r.t.Helper()
	st, err := r.server.Status(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

// firstStamp waits for the round that the first activity starts, so that none
// comes later by itself.
func (r *rig) firstStamp() {
	r.t.Helper()
	for end := time.Now().Add(20 * time.Second); r.status().Stamped == 0; {
		if time.Now().After(end) {
			r.t.Fatal("the first activity was not stamped")
		}
		runtime.Gosched()
	}
}

// post sends an add-checkpoint body and gives the whole answer.
func (r *rig) post(path string, body []byte) *httptest.ResponseRecorder {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	return w
}

func (r *rig) get(path string) *httptest.ResponseRecorder {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// in is the same witness for a part of a test.
func (r *rig) in(t testing.TB) *rig {
	c := *r
	c.t = t
	return &c
}

// tryGet is get for a path that may not be one; ok is false then.
func (r *rig) tryGet(path string) (code int, ok bool) {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return 0, false
	}
	w := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: u, Body: http.NoBody, Header: http.Header{}})
	return w.Code, true
}

// agent is a chain whose tree is kept by golang.org/x/mod, not by our code.
type agent struct {
	t      testing.TB
	signer *tlog.Signer
	hashes []modtlog.Hash
	size   int64
}

// newAgent makes a chain and its head key.
func newAgent(t testing.TB) *agent {
	t.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return agentWithKey(t, priv)
}

func agentWithKey(t testing.TB, priv ed25519.PrivateKey) *agent {
	t.Helper()
	sum := sha256.Sum256(priv.Public().(ed25519.PublicKey))
	signer, err := tlog.NewSigner("agents.invalid/c/"+hex.EncodeToString(sum[:16]), tlog.KeyEd25519, priv)
	if err != nil {
		t.Fatal(err)
	}
	return &agent{t: t, signer: signer}
}

// enrolled makes a chain that the operator added.
func (r *rig) enrolled() *agent {
	r.t.Helper()
	a := newAgent(r.t)
	if _, err := r.server.AddAgent(context.Background(), a.signer.Vkey().String()); err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (a *agent) origin() string { return a.signer.Vkey().Name }

func (a *agent) ReadHashes(indexes []int64) ([]modtlog.Hash, error) {
	out := make([]modtlog.Hash, len(indexes))
	for i, n := range indexes {
		out[i] = a.hashes[n]
	}
	return out, nil
}

// grow adds n receipts; salt makes two chains of one key differ.
func (a *agent) grow(n int, salt string) *agent {
	a.t.Helper()
	for range n {
		a.append(fmt.Appendf(nil, "%s receipt %d", salt, a.size))
	}
	return a
}

func (a *agent) append(leaf []byte) {
	a.t.Helper()
	h, err := modtlog.StoredHashes(a.size, leaf, a)
	if err != nil {
		a.t.Fatal(err)
	}
	a.hashes = append(a.hashes, h...)
	a.size++
}

func (a *agent) checkpoint(size int64) tlog.Checkpoint {
	a.t.Helper()
	if size == 0 {
		return tlog.Checkpoint{Origin: a.origin(), Root: tlog.EmptyRoot()}
	}
	root, err := modtlog.TreeHash(size, a)
	if err != nil {
		a.t.Fatal(err)
	}
	return tlog.Checkpoint{Origin: a.origin(), Size: uint64(size), Root: tlog.Hash(root)}
}

func (a *agent) head(size int64) []byte { return a.signed(a.checkpoint(size)) }

func (a *agent) signed(cp tlog.Checkpoint) []byte {
	a.t.Helper()
	return signedNote(a.t, cp.Text(), a.signer)
}

func signedNote(t testing.TB, text []byte, signers ...*tlog.Signer) []byte {
	t.Helper()
	n := tlog.Note{Text: text}
	for _, s := range signers {
		sig, err := s.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		n.Signatures = append(n.Signatures, sig)
	}
	return n.Bytes()
}

func (a *agent) proof(from, to int64) []tlog.Hash {
	a.t.Helper()
	if from == 0 || from == to {
		return nil
	}
	p, err := modtlog.ProveTree(to, from, a)
	if err != nil {
		a.t.Fatal(err)
	}
	out := make([]tlog.Hash, len(p))
	for i := range p {
		out[i] = tlog.Hash(p[i])
	}
	return out
}

// body is the add-checkpoint request from one size to another.
func (a *agent) body(from, to int64) []byte {
	return api.AddRequest{Old: uint64(from), Proof: a.proof(from, to), Head: a.head(to)}.Bytes()
}

// add sends a head in process and wants it taken.
func (r *rig) add(a *agent, from, to int64) witness.Added {
	r.t.Helper()
	added, err := r.server.AddCheckpoint(context.Background(), a.body(from, to))
	if err != nil {
		r.t.Fatalf("head %d of %s: %v", to, a.origin(), err)
	}
	return added
}

// engineOf wraps what the bolt engine opens.
func engineOf(wrap func(store.Store) store.Store) witness.Engine {
	return func(dir string) (store.Store, error) {
		s, err := bolt.OpenDir(dir)
		if err != nil {
			return nil, err
		}
		return wrap(s), nil
	}
}

func parseVkey(t testing.TB, s string) tlog.Vkey {
	t.Helper()
	v, err := tlog.ParseVkey(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

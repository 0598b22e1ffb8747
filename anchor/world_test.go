package anchor_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/tsa"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store/bolt"
)

const logName = "witness.example/log"

// rig is a running witness with its authority.
type rig struct {
	t      testing.TB
	o      witness.Options
	server *witness.Server
	web    *httptest.Server
	client *api.Client
	roots  *x509.CertPool
	ca     []byte // the root in roots, PEM
	stop   func() error
}

func newRig(t testing.TB) *rig {
	t.Helper()
	authority, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: filepath.Join(t.TempDir(), "tsa")})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.RootPEM())
	r := &rig{t: t, roots: roots, ca: authority.RootPEM(), o: witness.Options{
		Dir: filepath.Join(t.TempDir(), "witness"), Engine: bolt.OpenDir, RatePerSecond: -1, StampEvery: 50 * time.Millisecond,
		Authorities: []witness.Authority{{Name: "test", Timestamper: authority, Verify: tsa.VerifyOptions{Roots: roots}}},
	}}
	if err := witness.Init(r.o.Dir, logName, r.o.Engine); err != nil {
		t.Fatal(err)
	}
	r.start()
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("witness: %v", err)
		}
	})
	return r
}

func (r *rig) start() {
	r.t.Helper()
	s, err := witness.New(r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	r.server, r.web = s, httptest.NewServer(s.Handler())
	r.client = api.New(r.web.URL, r.web.Client())
	r.stop = sync.OnceValue(func() error {
		r.web.Close()
		cancel()
		return errors.Join(<-done, s.Close())
	})
}

func (r *rig) token() string {
	r.t.Helper()
	token, err := r.server.NewToken(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (r *rig) keys() []tlog.Vkey {
	log, cosigner := r.server.Vkeys()
	return []tlog.Vkey{log, cosigner}
}

func openChain(t testing.TB, dir string) *chain.Chain {
	t.Helper()
	c, err := chain.Open(context.Background(), chain.Options{Dir: dir, Version: "test", LockTimeout: time.Minute,
		KeptHeads: func() (uint64, []byte, error) { return anchor.KeptHead(dir) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func common() receipts.Common {
	return receipts.Common{Session: "s1", Capture: receipts.CaptureProxy, Version: "test", Time: receipts.Time{Wall: time.Now()}}
}

// record appends n calls: a decision and an outcome each.
func record(t testing.TB, c *chain.Chain, n int) {
	t.Helper()
	for i := range n {
		call := receipts.Call{ID: receipts.NewID(time.Now()), Server: "files", Tool: "read", RPC: []byte(fmt.Sprint(i))}
		for _, r := range []receipts.Receipt{
			receipts.NewDecision(common(), receipts.Decision{Call: call, Effect: "allow", Mode: receipts.ModeEnforced},
				receipts.Commit(receipts.FieldArgsSent, [32]byte{byte(i)}, []byte(`{"path":"x"}`))),
			receipts.NewOutcome(common(), receipts.Outcome{Call: call, Status: receipts.StatusOK}),
		} {
			if _, err := c.Append(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func enroll(t testing.TB, c *chain.Chain, r *rig) anchor.Witness {
	t.Helper()
	w, err := anchor.Enroll(context.Background(), c, anchor.Enrolment{Dir: c.Dir(), URL: r.web.URL, Token: r.token(), HTTP: r.web.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// stream runs a streamer until the returned function is called.
func stream(t testing.TB, c *chain.Chain, change ...func(*anchor.Options)) (stop func()) {
	t.Helper()
	o := anchor.Options{Chain: c, Dir: c.Dir(), Interval: 20 * time.Millisecond, MaxBackoff: 100 * time.Millisecond}
	for _, ch := range change {
		ch(&o)
	}
	s, err := anchor.NewStreamer(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("streamer: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// until polls a real condition for at most ten seconds.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not reached: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func witnessed(t testing.TB, dir string, size uint64) func() bool {
	return func() bool {
		s, err := anchor.ReadStatus(dir, time.Now())
		return err == nil && len(s.Witnesses) > 0 && s.Witnesses[0].Size >= size && s.Witnesses[0].Logged
	}
}

func sizeOf(t testing.TB, dir string) uint64 {
	t.Helper()
	r, err := chain.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, err := r.Size()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *rig) snapshot(origin string, since uint64) *anchor.Snapshot {
	r.t.Helper()
	s, err := anchor.Fetch(context.Background(), r.client, r.web.URL, origin, since)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// stamped waits until a timestamp covers the newest head.
func (r *rig) stamped(origin string) *anchor.Snapshot {
	r.t.Helper()
	var s *anchor.Snapshot
	until(r.t, "a timestamp over the newest head", func() bool {
		s = r.snapshot(origin, 0)
		return s.Stamped != nil && s.Newest != nil && s.Stamped.Leaf.Index == s.Newest.Leaf.Index
	})
	return s
}

// trust pins everything there is.
func (r *rig) trust(chainKey tlog.Vkey) anchor.Trust {
	return anchor.Trust{WitnessKeys: r.keys(), ChainKeys: []tlog.Vkey{chainKey}, TSARoots: r.roots, Now: time.Now()}
}

func verifyDir(t testing.TB, dir string, s *anchor.Snapshot, tr anchor.Trust) anchor.Report {
	t.Helper()
	src := anchor.Source{Target: dir, Against: "witness", Witness: s}
	r, err := chain.OpenReader(dir)
	if err == nil {
		src.Chain = r
	} else if !errors.Is(err, chain.ErrNoChain) && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return anchor.Verify(src, tr)
}

// world is a chain of about thirty receipts, witnessed and timestamped, with a
// tail that is not.
type world struct {
	rig      *rig
	dir      string
	key      tlog.Vkey
	origin   string
	snapshot *anchor.Snapshot
	covered  uint64
	size     uint64
}

func newWorld(t testing.TB) *world { return newWorldOf(t, 10, 3) }

// newWorldOf has that many calls witnessed, and that many not.
func newWorldOf(t testing.TB, calls, tail int) *world {
	t.Helper()
	w := &world{rig: newRig(t), dir: filepath.Join(t.TempDir(), "evidence")}
	c := openChain(t, w.dir)
	enroll(t, c, w.rig)
	record(t, c, calls)
	w.covered = sizeOf(t, w.dir)
	stop := stream(t, c)
	until(t, "the chain is witnessed", witnessed(t, w.dir, w.covered))
	stop()
	record(t, c, tail)
	w.key, w.origin, w.size = c.HeadKey(), c.Origin(), sizeOf(t, w.dir)
	w.snapshot = w.rig.stamped(w.origin)
	return w
}

func (w *world) trust() anchor.Trust { return w.rig.trust(w.key) }

// copyTree copies a folder; its files are private, as they were.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// copyWith copies the chain's folder, with its lines as change returns them, in
// one segment.
func (w *world) copyWith(t testing.TB, change func([][]byte) []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	copyTree(t, w.dir, dir)
	segments, err := filepath.Glob(filepath.Join(dir, "chain", "*.jsonl"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("%v %v", segments, err)
	}
	sort.Strings(segments)
	var lines [][]byte
	for _, s := range segments {
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.SplitAfter(b, []byte("\n"))...)
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
	var whole [][]byte
	for _, l := range lines {
		if len(l) > 0 {
			whole = append(whole, bytes.TrimSuffix(l, []byte("\n")))
		}
	}
	if out := change(whole); out != nil {
		if err := os.WriteFile(segments[0], out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func joined(lines [][]byte) []byte {
	var b []byte
	for _, l := range lines {
		b = append(append(b, l...), '\n')
	}
	return b
}

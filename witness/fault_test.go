package witness_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

var errDisk = errors.New("input/output error")

// faulty is a store whose n-th commit from now fails, either before it was
// applied or after.
type faulty struct {
	store.Store
	mu      sync.Mutex
	after   int // commits that still work
	armed   bool
	applied bool  // the failing commit is applied all the same
	err     error // what it returns
	broken  bool
}

func (f *faulty) Commit(b store.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken {
		return store.ErrBroken
	}
	if !f.armed || f.after > 0 {
		f.after--
		return f.Store.Commit(b)
	}
	f.armed = false
	if f.applied {
		if err := f.Store.Commit(b); err != nil {
			return err
		}
	}
	f.broken = !errors.Is(f.err, store.ErrNoSpace)
	return f.err
}

// View keeps the contract of a store whose commit failed: what may not be
// durable is not shown.
func (f *faulty) View(fn func(store.Reader) error) error {
	f.mu.Lock()
	broken := f.broken
	f.mu.Unlock()
	if broken {
		return store.ErrBroken
	}
	return f.Store.View(fn)
}

func (f *faulty) arm(after int, applied bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.after, f.applied, f.err = true, after, applied, err
}

// Every write of a story is lost in turn, or applied but reported failed. Then
// the process starts again: nothing that was acknowledged is missing, the store
// is whole, and an outsider who watched all along never sees two roots.
func TestEveryWriteFails(t *testing.T) {
	const steps = 10
	for failing := range steps {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d applied %v", failing, applied), func(t *testing.T) {
				failOneWrite(t, failing, applied)
			})
		}
	}
}

func failOneWrite(t *testing.T, failing int, applied bool) {
	var f *faulty
	r := newRig(t, withBuiltIn, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { f = &faulty{Store: s}; return f })
	})
	m := newMonitor(t, mustLog(r))
	a, b := r.enrolled().grow(9, ""), newAgent(t).grow(3, "b")
	next := b.nextKey()
	r.firstStamp()
	acked := r.add(a, 0, 2)
	m.follow(r.client)
	f.arm(failing, applied, errDisk)
	told := map[uint64]witness.Added{acked.Index: acked}
	story := []func() error{
		func() error { return ack(r, told, a.body(2, 5)) },
		func() error {
			_, err := r.server.AddAgent(context.Background(), b.signer.Vkey().String())
			return err
		},
		func() error { return ack(r, told, b.body(0, 3)) },
		func() error { return r.server.Stamp(context.Background()) },
		func() error { return ack(r, told, a.body(5, 5)) },
		func() error { return ack(r, told, a.body(5, 9)) },
		func() error {
			_, err := r.server.StampCommitments(context.Background(), a.stamp(api.Stamp{Origin: a.origin(), Log: logName, Commitments: []tlog.Hash{{1}}}))
			return err
		},
		func() error {
			_, err := r.server.Key(context.Background(), b.rotation(next, 4, b.signer, next))
			return err
		},
		func() error { return forkIsLogged(r, a.clone(2, 3, "clone")) },
		func() error {
			_, err := r.server.RevokeAgent(context.Background(), b.origin(), api.Ref{})
			return err
		},
	}
	for i, step := range story {
		err := step()
		if (err == nil) != (i < failing) {
			t.Fatalf("step %d: %v; write %d was to fail", i, err, failing)
		}
	}
	if err := r.end(); !errors.Is(err, witness.ErrFatal) || !errors.Is(err, errDisk) {
		t.Errorf("run returned %v, want ErrFatal with its cause", err)
	}
	r.start()
	_, entries := m.follow(r.client)
	checkBackLinks(t, entries)
	for index, added := range told {
		checkAcknowledged(t, entries, index, added)
	}
	finishStory(t, r, a)
	m.follow(r.client)
}

// forkIsLogged sends a clone's head of size 5 and wants to find it logged.
func forkIsLogged(r *rig, clone *agent) error {
	if _, err := r.server.AddCheckpoint(context.Background(), clone.body(5, 5)); err == nil {
		return errors.New("a second root for one size was cosigned")
	}
	agents, err := r.server.Agents(context.Background())
	if err != nil {
		return err
	}
	for _, a := range agents {
		if a.Origin == clone.origin() && len(a.Forks) == 1 {
			return nil
		}
	}
	return errors.New("the fork is not logged")
}

func ack(r *rig, told map[uint64]witness.Added, body []byte) error {
	added, err := r.server.AddCheckpoint(context.Background(), body)
	if err == nil {
		told[added.Index] = added
	}
	return err
}

func checkAcknowledged(t *testing.T, entries [][]byte, index uint64, added witness.Added) {
	t.Helper()
	if index >= uint64(len(entries)) {
		t.Errorf("LOST: leaf %d was acknowledged, the log has %d", index, len(entries))
		return
	}
	if l, err := api.ParseLeaf(entries[index]); err != nil || l.Type != api.LeafHead {
		t.Errorf("LOST: leaf %d was an acknowledged head, it is a %s, %v", index, l.Type, err)
	}
	if added.Size <= index {
		t.Errorf("leaf %d was said to be in a log of size %d", index, added.Size)
	}
}

// finishStory goes on as the agent would: a conflict tells where to go on.
func finishStory(t *testing.T, r *rig, a *agent) {
	t.Helper()
	from := int64(0)
	for range 2 {
		_, err := r.server.AddCheckpoint(context.Background(), a.body(from, 9))
		var conflict api.ErrConflict
		switch {
		case err == nil:
			return
		case errors.As(err, &conflict):
			from = int64(conflict.Size)
		default:
			t.Fatalf("going on: %v", err)
		}
	}
	t.Error("two conflicts in a row")
}

// A full disk fails the batch with 503; reading, and liveness, go on; with
// space back the next head is taken without anybody's help.
func TestNoSpace(t *testing.T) {
	var f *faulty
	r := newRig(t, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { f = &faulty{Store: s}; return f })
	})
	a := r.enrolled().grow(3, "")
	r.add(a, 0, 1)
	f.arm(0, false, fmt.Errorf("%w: %w", store.ErrNoSpace, errDisk))
	if w := r.post("/add-checkpoint", a.body(1, 2)); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("full disk: status %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/checkpoint": 200, "/proof?index=0": 200} {
		if w := r.get(path); w.Code != want {
			t.Errorf("full disk: %s is %d, want %d", path, w.Code, want)
		}
	}
	r.add(a, 1, 3)
	if w := r.get("/readyz"); w.Code != 200 {
		t.Errorf("space is back: /readyz is %d", w.Code)
	}
}

// After a commit of unknown outcome nothing is signed, nor shown, any more.
func TestFatalStopsEverything(t *testing.T) {
	var f *faulty
	r := newRig(t, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { f = &faulty{Store: s}; return f })
	})
	a := r.enrolled().grow(3, "")
	f.arm(0, true, errDisk)
	if w := r.post("/add-checkpoint", a.body(0, 1)); w.Code != 503 {
		t.Errorf("failed sync: status %d, want 503", w.Code)
	}
	for _, path := range []string{"/checkpoint", "/readyz", "/proof?index=0"} {
		if w := r.get(path); w.Code != 503 {
			t.Errorf("after a failed sync %s is %d, want 503", path, w.Code)
		}
	}
	if w := r.post("/add-checkpoint", a.body(0, 1)); w.Code != 503 {
		t.Errorf("the next head: status %d, want 503", w.Code)
	}
	if err := r.end(); !errors.Is(err, witness.ErrFatal) {
		t.Errorf("run: %v, want ErrFatal", err)
	}
}

// Shutting down keeps what was promised: a head is either refused or durable.
func TestShutdownUnderLoad(t *testing.T) {
	r := newRig(t)
	agents := make([]*agent, 8)
	for i := range agents {
		agents[i] = r.enrolled().grow(1, "")
	}
	type result struct {
		added witness.Added
		err   error
	}
	results := make(chan result, len(agents))
	for _, a := range agents {
		body := a.body(0, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			added, err := r.server.AddCheckpoint(ctx, body)
			results <- result{added, err}
		}()
	}
	err := r.end()
	var acked []witness.Added
	for range agents {
		got := <-results
		if got.err == nil {
			acked = append(acked, got.added)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	r.start()
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	for _, added := range acked {
		checkAcknowledged(t, entries, added.Index, added)
	}
}

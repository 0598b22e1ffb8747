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
)

// clone is a chain with the same key that went another way after n receipts.
func (a *agent) clone(n, more int, salt string) *agent {
	c := (&agent{t: a.t, signer: a.signer}).grow(n, "")
	return c.grow(more, salt)
}

// post sends a head as the given sizes say, with any proof.
func (r *rig) postHead(a *agent, old, size int64, proof []tlog.Hash) int {
	r.t.Helper()
	return r.in(r.t).post("/add-checkpoint", api.AddRequest{Old: uint64(old), Proof: proof, Head: a.head(size)}.Bytes()).Code
}

// What is a fork, and what is not. A chain of 9 had its heads of 3, 5 and 6
// recorded.
func TestForks(t *testing.T) {
	const retried, retriedLast = "a recorded head sent again", "the newest head sent again"
	r := newRig(t)
	for _, test := range []struct {
		name   string
		send   func(r *rig, a *agent) int
		status int
		forks  int
	}{
		{"the newest size with another root", func(r *rig, a *agent) int {
			c := a.clone(2, 5, "clone")
			return r.postHead(c, 6, 6, nil)
		}, 422, 1},
		{"an older size with another root", func(r *rig, a *agent) int {
			c := a.clone(2, 5, "clone")
			return r.postHead(c, 0, 5, nil)
		}, 409, 1},
		{"an older size with another root and junk for a proof", func(r *rig, a *agent) int {
			c := a.clone(2, 5, "clone")
			return r.postHead(c, 3, 5, []tlog.Hash{{1}, {2}})
		}, 409, 1},
		{"a larger head whose proof shows another root at the newest size", func(r *rig, a *agent) int {
			c := a.clone(2, 10, "clone")
			return r.postHead(c, 6, 9, c.proof(6, 9))
		}, 422, 1},
		{"a larger head whose proof shows another root at an older size", func(r *rig, a *agent) int {
			c := a.clone(2, 10, "clone")
			return r.postHead(c, 5, 9, c.proof(5, 9))
		}, 409, 1},
		{"a clone's late head of a size that was not recorded", func(r *rig, a *agent) int {
			c := a.clone(2, 2, "clone")
			return r.postHead(c, 3, 4, c.proof(3, 4))
		}, 409, 1}, // its proof shows another root at 3
		{"an honest copy's late head", func(r *rig, a *agent) int { return r.postHead(a, 3, 4, a.proof(3, 4)) }, 409, 0},
		{retried, func(r *rig, a *agent) int { return r.postHead(a, 3, 5, a.proof(3, 5)) }, 409, 0},
		{retriedLast, func(r *rig, a *agent) int { return r.postHead(a, 5, 6, a.proof(5, 6)) }, 409, 0},
		{"a clone's larger head without a proof", func(r *rig, a *agent) int {
			c := a.clone(2, 10, "clone")
			return r.postHead(c, 6, 9, nil)
		}, 422, 0},
		{"a public head with a junk proof", func(r *rig, a *agent) int { return r.postHead(a, 6, 9, []tlog.Hash{{1}, {2}, {3}}) }, 422, 0},
		{"a public head with the proof of another size", func(r *rig, a *agent) int { return r.postHead(a, 6, 9, a.proof(5, 9)) }, 422, 0},
		{"a public head with a clone's proof", func(r *rig, a *agent) int {
			c := a.clone(2, 10, "clone")
			return r.postHead(a, 6, 9, c.proof(6, 9))
		}, 422, 0},
		{"size zero with another root", func(r *rig, a *agent) int {
			body := api.AddRequest{Head: a.signed(tlog.Checkpoint{Origin: a.origin(), Root: tlog.Hash{1}})}.Bytes()
			return r.post("/add-checkpoint", body).Code
		}, 409, 0},
		{"another's signature", func(r *rig, a *agent) int {
			c := a.clone(2, 5, "clone").withKey(newAgent(t).signer)
			cp := c.checkpoint(6)
			cp.Origin = a.origin()
			return r.post("/add-checkpoint", api.AddRequest{Old: 6, Head: signedNote(t, cp.Text(), c.signer)}.Bytes()).Code
		}, 403, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := r.in(t)
			a := r.enrolled().grow(9, "")
			r.add(a, 0, 3)
			r.add(a, 3, 5)
			r.add(a, 5, 6)
			if got := test.send(r, a); got != test.status {
				t.Errorf("status %d, want %d", got, test.status)
			}
			got := r.agent(a.origin())
			if len(got.Forks) != test.forks {
				t.Fatalf("%d forks, want %d", len(got.Forks), test.forks)
			}
			if wantConflict := test.forks == 0 && test.status != 403 && test.name != retried && test.name != retriedLast; (got.Conflicts > 0) != wantConflict {
				t.Errorf("%d conflicts counted, want some: %v", got.Conflicts, wantConflict)
			}
			if test.forks > 0 {
				checkForkFile(t, r, got.Forks[0], a, got.Forks[0])
				test.send(r, a)
				if n := len(r.agent(a.origin()).Forks); n != 1 {
					t.Errorf("the same fork again made %d leaves", n)
				}
			}
			r.add(a, 6, 9) // the chain that was here first goes on
		})
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
}

// checkForkFile reads the served file as an outsider would.
func checkForkFile(t *testing.T, r *rig, index uint64, a *agent, leaf uint64) {
	t.Helper()
	b, err := r.client.ForkFile(context.Background(), index)
	if err != nil {
		t.Fatal(err)
	}
	f, err := api.ParseForkFile(b)
	if err != nil {
		t.Fatal(err)
	}
	x, y, err := f.Heads()
	if err != nil {
		t.Errorf("the file does not convict: %v", err)
	}
	for _, h := range []api.Head{x, y} {
		if _, err := h.Note.Verify(a.signer.Vkey()); err != nil || h.Origin != a.origin() {
			t.Errorf("head %d of %s: %v", h.Size, h.Origin, err)
		}
	}
	if len(f.Keys) != 1 {
		t.Fatalf("%d key leaves, want one", len(f.Keys))
	}
	cp, note, err := f.Keys[0].Proof.Verify(tlog.LeafHash(f.Keys[0].Bytes))
	if err != nil || cp.Size <= leaf {
		t.Errorf("key leaf at size %d: %v", cp.Size, err)
	}
	if _, err := note.Verify(mustLog(r)); err != nil {
		t.Error(err)
	}
}

// A head recorded under a key that was rotated away convicts by our own line,
// made before the rotation.
func TestForkAcrossRotation(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(9, "")
	r.add(a, 0, 5)
	next := a.nextKey()
	if _, err := r.client.Key(context.Background(), a.rotation(next, 7, a.signer, next)); err != nil {
		t.Fatal(err)
	}
	c := a.clone(2, 10, "clone").withKey(next)
	if code := r.postHead(c, 5, 9, c.proof(5, 9)); code != 422 {
		t.Errorf("status %d, want 422", code)
	}
	got := r.agent(a.origin())
	if len(got.Forks) != 1 {
		t.Fatalf("%d forks, want one", len(got.Forks))
	}
	b, err := r.client.ForkFile(context.Background(), got.Forks[0])
	if err != nil {
		t.Fatal(err)
	}
	f, err := api.ParseForkFile(b)
	if err != nil || len(f.Keys) != 2 {
		t.Fatalf("%d keys, %v", len(f.Keys), err)
	}
	x, y, err := f.Heads()
	if err != nil {
		t.Fatal(err)
	}
	_, cosigner := r.server.Vkeys()
	if _, err := x.Note.Verify(cosigner); err != nil {
		t.Errorf("the older head does not carry our line: %v", err)
	}
	if _, err := y.Note.Verify(next.Vkey()); err != nil {
		t.Errorf("the newer head does not carry the key in force: %v", err)
	}
}

// Whoever holds the key could make forks without end; a few convict.
func TestForksAreBounded(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(5, "")
	r.add(a, 0, 5)
	for i := range 20 {
		r.postHead(a.clone(2, 5, fmt.Sprint("clone ", i)), 5, 5, nil)
	}
	if got := r.agent(a.origin()); len(got.Forks) != 16 || got.Conflicts != 4 {
		t.Errorf("%d forks and %d conflicts, want 16 and 4", len(got.Forks), got.Conflicts)
	}
}

// A clone that posts for ever costs a write a minute.
func TestConflictsAreCountedAMinute(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(1_900_000_000, 0)
	r := newRig(t, func(o *witness.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	a := r.enrolled().grow(5, "")
	r.add(a, 0, 3)
	r.add(a, 3, 5)
	for range 10 {
		r.postHead(a, 0, 4, nil)
	}
	if got := r.agent(a.origin()).Conflicts; got != 10 {
		t.Errorf("%d conflicts, want 10", got)
	}
	r.restart()
	if got := r.agent(a.origin()).Conflicts; got != 1 {
		t.Errorf("%d conflicts on disk after the first minute's nine more, want 1", got)
	}
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	r.postHead(a, 0, 4, nil)
	r.restart()
	if got := r.agent(a.origin()).Conflicts; got != 2 {
		t.Errorf("%d conflicts on disk, want 2", got)
	}
}

// Two copies of a chain that race: one history is cosigned, the other is
// logged as a fork, whoever is first.
func TestRacingClones(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(6, "")
	c := a.clone(2, 4, "clone")
	r.add(a, 0, 1)
	var wg sync.WaitGroup
	for _, side := range []*agent{a, c, a, c} {
		body := side.body(1, 6)
		wg.Go(func() {
			_, err := r.server.AddCheckpoint(context.Background(), body)
			var conflict api.ErrConflict
			if err != nil && !errors.As(err, &conflict) {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if got := r.agent(a.origin()); got.HeadSize != 6 || len(got.Forks) != 1 {
		t.Errorf("size %d with %d forks, want 6 with one", got.HeadSize, len(got.Forks))
	}
}

package witness_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// gated is a store whose commits wait at a gate: begun tells of each, and open
// lets it go on.
type gated struct {
	store.Store
	closed chan struct{} // nil: the gate is open
	begun  chan store.Batch
	open   chan error // nil lets the commit through, an error fails it
}

func (g *gated) Commit(b store.Batch) error {
	if g.closed == nil {
		return g.Store.Commit(b)
	}
	g.begun <- b
	if err := <-g.open; err != nil {
		return err
	}
	return g.Store.Commit(b)
}

func (g *gated) shut() {
	g.closed, g.begun, g.open = make(chan struct{}), make(chan store.Batch), make(chan error)
}

type answer struct {
	added witness.Added
	err   error
}

func (r *rig) send(body []byte) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		added, err := r.server.AddCheckpoint(context.Background(), body)
		out <- answer{added, err}
	}()
	return out
}

func mustWait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not come", what)
		panic("not reached")
	}
}

func mustNotHave[T any](t *testing.T, what string, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		t.Errorf("%s came before the commit was durable: %+v", what, v)
	default:
	}
}

// While a commit is under way nothing of it has left: no answer, no checkpoint,
// no leaf, and no conflict that would tell of it. What came meanwhile goes into
// one next batch.
func TestNothingLeavesBeforeTheCommit(t *testing.T) {
	g := &gated{}
	r := newRig(t, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { g.Store = s; return g })
	})
	a := r.enrolled().grow(4, "left")
	rival := (&agent{t: t, signer: a.signer}).grow(4, "right")
	others := []*agent{r.enrolled().grow(1, ""), r.enrolled().grow(1, ""), r.enrolled().grow(1, "")}
	before := r.status()
	g.shut()

	first := r.send(a.body(0, 4))
	batch := mustWait(t, "the first commit", g.begun)
	if len(batch.Entries) != 1 {
		t.Errorf("the first batch has %d leaves, want the one that was there", len(batch.Entries))
	}
	second := r.send(rival.body(0, 4))
	var rest []<-chan answer
	for _, o := range others {
		rest = append(rest, r.send(o.body(0, 1)))
	}
	r.waitQueued(1 + len(others))
	for range 100 { // everything an outsider could ask, again and again
		if st := r.status(); st.Size != before.Size || st.Checkpoint != before.Checkpoint {
			t.Fatalf("the log shows size %d before the commit", st.Size)
		}
		if _, _, err := r.client.Head(context.Background(), a.origin()); !errors.Is(err, api.ErrNotFound) {
			t.Fatalf("the head is shown before the commit: %v", err)
		}
		mustNotHave(t, "the answer", first)
		mustNotHave(t, "the rival's answer", second)
	}
	g.open <- nil
	if got := mustWait(t, "the answer", first); got.err != nil || got.added.Index != before.Size {
		t.Errorf("the first head: %+v", got)
	}
	if b := mustWait(t, "the next commit", g.begun); len(b.Entries) != len(others) {
		t.Errorf("the next batch has %d leaves, want the %d that waited", len(b.Entries), len(others))
	}
	g.open <- nil
	for _, c := range rest {
		if got := mustWait(t, "an answer", c); got.err != nil {
			t.Error(got.err)
		}
	}
	fork := mustWait(t, "the commit of the fork", g.begun)
	if l, err := api.ParseLeaf(fork.Entries[0]); err != nil || l.Type != api.LeafFork {
		t.Errorf("the rival's other history was not logged before its answer: %+v, %v", l, err)
	}
	mustNotHave(t, "the rival's answer", second)
	g.open <- nil
	var conflict api.ErrConflict
	if got := mustWait(t, "the rival's answer", second); !errors.As(got.err, &conflict) || conflict.Size != 4 {
		t.Errorf("the rival: %v, want a conflict at 4", got.err)
	}
	g.closed = nil
}

// A batch that fails takes with it what it refused on its own account: nobody
// is told a size that was never durable.
func TestFailedBatchTellsNoSizes(t *testing.T) {
	g := &gated{}
	r := newRig(t, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { g.Store = s; return g })
	})
	plug, a := r.enrolled().grow(1, ""), r.enrolled().grow(4, "left")
	rival := (&agent{t: t, signer: a.signer}).grow(4, "right")
	g.shut()
	held := r.send(plug.body(0, 1))
	mustWait(t, "the commit that holds the queue", g.begun)
	racers := []<-chan answer{r.send(a.body(0, 4)), r.send(rival.body(0, 4))}
	r.waitQueued(2)
	g.open <- nil
	if got := mustWait(t, "the plug's answer", held); got.err != nil {
		t.Fatal(got.err)
	}
	if b := mustWait(t, "the racers' commit", g.begun); len(b.Entries) != 1 {
		t.Fatalf("the racers' batch has %d leaves, want one", len(b.Entries))
	}
	g.open <- store.ErrNoSpace
	for _, racer := range racers {
		if got := mustWait(t, "a racer's answer", racer); !errors.Is(got.err, api.ErrUnavailable) {
			t.Errorf("a racer of a failed batch was told %v, want ErrUnavailable", got.err)
		}
	}
	g.closed = nil
	r.add(a, 0, 4)
}

// waitQueued waits until n requests wait for the sequencer.
func (r *rig) waitQueued(n int) {
	r.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for r.status().Queued < n {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d requests did not queue", n)
		}
	}
}

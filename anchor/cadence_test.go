package anchor

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
)

// growing is a chain that gains a receipt at every tick of a fake clock.
type growing struct {
	size  atomic.Uint64
	heads []time.Time
	sizes []uint64
}

func (g *growing) Origin() string                                    { return "agents.invalid/c/00000000000000000000000000000000" }
func (g *growing) HeadKey() tlog.Vkey                                { return tlog.Vkey{} }
func (g *growing) SignNote([]byte) ([]byte, error)                   { return nil, nil }
func (g *growing) KeyNotes() ([]chain.KeyNote, error)                { return nil, nil }
func (g *growing) ProveConsistency(m, n uint64) ([]tlog.Hash, error) { return nil, nil }

func (g *growing) Head(context.Context) ([]byte, tlog.Checkpoint, error) {
	g.heads, g.sizes = append(g.heads, time.Now()), append(g.sizes, g.size.Load())
	return []byte("note"), tlog.Checkpoint{Size: g.size.Load()}, nil
}

func (g *growing) Follow(ctx context.Context) <-chan uint64 {
	out := make(chan uint64, 1)
	go func() {
		defer close(out)
		for rest(ctx, 10*time.Millisecond) {
			n := g.size.Add(1)
			select {
			case <-out:
			default:
			}
			out <- n
		}
	}()
	return out
}

// A receipt waits at most a second for a head, and no two heads are signed
// within one.
func TestCadence(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		g := &growing{}
		s, err := NewStreamer(Options{Chain: g, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := len(g.heads); n < 20 || n > 22 {
			t.Errorf("%d heads in 20 s", n)
		}
		for i := 1; i < len(g.heads)-1; i++ { // the last one is the stop's
			if d := g.heads[i].Sub(g.heads[i-1]); d < time.Second || d > time.Second+20*time.Millisecond {
				t.Errorf("%v between two heads", d)
			}
		}
		// One more receipt may fall on the very instant of the stop.
		if last := g.sizes[len(g.sizes)-1]; last+1 < g.size.Load() {
			t.Errorf("the last head is of size %d, the chain of %d", last, g.size.Load())
		}
	})
}

func TestBackoff(t *testing.T) {
	w := &worker{o: Options{Interval: time.Second, MaxBackoff: time.Minute}}
	wait := time.Duration(0)
	for range 10 {
		next := w.after(context.DeadlineExceeded, wait)
		if next < wait || next > time.Minute {
			t.Fatalf("%v after %v", next, wait)
		}
		wait = next
	}
	if wait != time.Minute || w.after(nil, wait) != 0 {
		t.Errorf("ends at %v", wait)
	}
	for range 100 {
		if j := jitter(wait); j < wait/2 || j > wait {
			t.Fatalf("jitter %v of %v", j, wait)
		}
	}
}

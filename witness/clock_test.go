package witness_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"toolguardian/witness"
	"toolguardian/witness/api"
)

// fakeClock is a wall clock that a test sets, and a monotonic one that runs
// with it but for what was set.
type fakeClock struct {
	mu   sync.Mutex
	wall time.Time     // guarded by mu
	mono time.Duration // guarded by mu
}

func newFakeClock() *fakeClock { return &fakeClock{wall: time.Now().Round(0)} }

func (c *fakeClock) in(o *witness.Options) {
	o.Now = func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.wall }
	o.Mono = func() time.Duration { c.mu.Lock(); defer c.mu.Unlock(); return c.mono }
}

func (c *fakeClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.mono = c.wall.Add(d), c.mono+d
}

func (c *fakeClock) set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = c.wall.Add(d)
}

// ready gives the status of /readyz; /healthz must answer whatever the clock does.
func (r *rig) ready() int {
	r.t.Helper()
	if w := r.get("/healthz"); w.Code != http.StatusOK {
		r.t.Errorf("/healthz: %d", w.Code)
	}
	return r.get("/readyz").Code
}

// An hour back or forth stops the signing; reading goes on, and only the
// operator's word starts it again.
func TestClockSetWhileServing(t *testing.T) {
	for name, by := range map[string]time.Duration{"back": -time.Hour, "forth": time.Hour, "a little more than a minute": 61 * time.Second} {
		t.Run(name, func(t *testing.T) {
			clock := newFakeClock()
			r := newRig(t, clock.in)
			a := r.enrolled().grow(4, "")
			r.add(a, 0, 1)
			clock.pass(26 * time.Hour)
			r.add(a, 1, 2)
			clock.set(by)
			before := r.status().Checkpoint
			if w := r.post("/add-checkpoint", a.body(2, 3)); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("a head: status %d, want 503 with Retry-After", w.Code)
			}
			if got := r.ready(); got != http.StatusServiceUnavailable {
				t.Errorf("/readyz: %d, want 503", got)
			}
			clock.set(-by)
			if _, err := r.server.AddCheckpoint(context.Background(), a.body(2, 3)); !errors.Is(err, witness.ErrClock) || !errors.Is(err, api.ErrUnavailable) {
				t.Errorf("a clock that was set back again: %v, want ErrClock", err)
			}
			if got := r.status().Checkpoint; got != before {
				t.Error("something was signed")
			}
			op := operate(t, r.o)
			defer op.Close()
			if err := op.ConfirmClock(); err != nil {
				t.Fatal(err)
			}
			if got := r.ready(); got != http.StatusOK {
				t.Errorf("/readyz once confirmed: %d", got)
			}
			r.add(a, 2, 3)
		})
	}
}

// Many small steps are one large one.
func TestClockCreeps(t *testing.T) {
	clock := newFakeClock()
	r := newRig(t, clock.in)
	for range 3 {
		clock.set(20 * time.Second)
		if got := r.ready(); got != http.StatusOK {
			t.Errorf("/readyz within a minute: %d", got)
		}
	}
	clock.set(20 * time.Second)
	if got := r.ready(); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz after 80 seconds in steps: %d, want 503", got)
	}
}

// At start the clock is held against what the log remembers, and what the
// operator told is remembered too.
func TestClockAtStart(t *testing.T) {
	tests := map[string]struct {
		by   time.Duration
		want int
	}{
		"an hour behind the newest cosignature": {-time.Hour, http.StatusServiceUnavailable},
		"an hour later":                         {time.Hour, http.StatusOK},
		"two days past the newest token":        {48 * time.Hour, http.StatusServiceUnavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clock := newFakeClock()
			r := newRig(t, clock.in, withBuiltIn)
			a := r.enrolled().grow(2, "")
			r.add(a, 0, 1)
			if err := r.server.Stamp(context.Background()); err != nil {
				t.Fatal(err)
			}
			clock.set(test.by)
			r.restart()
			if got := r.ready(); got != test.want {
				t.Fatalf("/readyz: %d, want %d", got, test.want)
			}
			if test.want == http.StatusOK {
				return
			}
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			op := operate(t, r.o)
			if err := errors.Join(op.ConfirmClock(), op.Close()); err != nil {
				t.Fatal(err)
			}
			r.start()
			if got := r.ready(); got != http.StatusOK {
				t.Errorf("/readyz once confirmed: %d", got)
			}
			r.add(a, 1, 2)
			r.restart()
			if got := r.ready(); got != http.StatusOK {
				t.Errorf("/readyz at the start after: %d", got)
			}
			clock.set(-2 * time.Hour)
			r.restart()
			if got := r.ready(); got != http.StatusServiceUnavailable {
				t.Errorf("/readyz behind the confirmed time: %d, want 503", got)
			}
		})
	}
}

package backend

import (
	"testing"
	"time"
)

func TestRestarts(t *testing.T) {
	type step struct {
		after time.Duration // since the step before
		up    bool
		state State
		wait  time.Duration
		again bool
	}
	const minute = time.Minute
	cases := map[string][]step{
		"a crash now and then": {
			{0, true, Starting, time.Second, true},
			{2 * minute, true, Starting, 5 * time.Second, true},
			{2 * minute, true, Starting, 5 * time.Second, true},
		},
		"two crashes in a minute, then well": {
			{0, true, Starting, time.Second, true},
			{59 * time.Second, true, Down, minute, true},
			{3 * minute, true, Starting, 5 * time.Second, true},
			{59 * time.Second, true, Down, minute, true},
		},
		"the last chance does not come up": {
			{0, true, Starting, time.Second, true},
			{time.Second, true, Down, minute, true},
			{minute, false, Down, 0, false},
		},
		"the last chance crashes at once": {
			{0, true, Starting, time.Second, true},
			{time.Second, true, Down, minute, true},
			{59 * time.Second, true, Down, 0, false},
		},
		"never up": {
			{0, false, Unknown, minute, true},
			{2 * minute, false, Down, 0, false},
		},
		"up at the second attempt": {
			{0, false, Unknown, minute, true},
			{5 * minute, true, Starting, 5 * time.Second, true},
		},
		"a respawn that does not come up": {
			{0, true, Starting, time.Second, true},
			{90 * time.Second, false, Down, minute, true},
			{2 * minute, false, Down, 0, false},
		},
		"exactly a minute is not within it": {
			{0, true, Starting, time.Second, true},
			{minute, true, Starting, 5 * time.Second, true},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			var r restarts
			now := time.Unix(1_000_000, 0)
			for i, s := range steps {
				now = now.Add(s.after)
				state, wait, again := r.after(now, s.up)
				if state != s.state || wait != s.wait || again != s.again {
					t.Fatalf("step %d: %s, %v, %v; want %s, %v, %v", i, state, wait, again, s.state, s.wait, s.again)
				}
			}
		})
	}
}

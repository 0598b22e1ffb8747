package witness_test

import (
	"context"
	"sync"
	"testing"

	"toolguardian/witness/api"
)

// A stop in the middle of the load keeps every promise: what was answered is in
// the log, under a checkpoint that the head file has.
func TestStopKeepsPromises(t *testing.T) {
	r := newRig(t)
	const writers = 16
	agents := make([]*agent, writers)
	for i := range agents {
		agents[i] = r.enrolled().grow(400, "")
	}
	acked := make([]int64, writers)
	var busy, done sync.WaitGroup
	busy.Add(writers)
	for i, a := range agents {
		done.Go(func() {
			for size := int64(0); size < 400; size++ {
				if _, err := r.client.AddCheckpoint(context.Background(), uint64(size), a.proof(size, size+1), a.head(size+1)); err != nil {
					break
				}
				if acked[i] = size + 1; size == 0 {
					busy.Done()
				}
			}
		})
	}
	busy.Wait()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	done.Wait()
	r.start()
	for i, a := range agents {
		note, _, err := r.client.Head(context.Background(), a.origin())
		if err != nil {
			t.Fatal(err)
		}
		if got := mustCheckpoint(t, note).Size; int64(got) < acked[i] {
			t.Errorf("head %d was answered, the log has %d", acked[i], got)
		}
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	heads := 0
	for _, e := range entries {
		if l, err := api.ParseLeaf(e); err == nil && l.Type == api.LeafHead {
			heads++
		}
	}
	var sum int64
	for _, n := range acked {
		sum += n
	}
	if int64(heads) < sum || int64(heads) > sum+writers {
		t.Errorf("%d heads in the log, %d were answered by %d writers", heads, sum, writers)
	}
}

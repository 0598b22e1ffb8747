package chain_test

import (
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"toolguardian/chain"
	"toolguardian/receipts"
)

// A torn tail in a segment that is already full is mended there: the receipt
// that tells of it does not begin the next segment and leave the bytes behind.
func TestTornTailInFullSegment(t *testing.T) {
	o := chain.Options{Dir: filepath.Join(t.TempDir(), "evidence"), Version: "test", SegmentSize: 1}
	for range 3 {
		c, err := chain.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(t.Context(), receipts.NewHeartbeat(receipts.Common{Session: "s", Capture: receipts.CaptureProxy, Version: "test", Time: receipts.Time{Wall: time.Now()}})); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		segments, err := filepath.Glob(filepath.Join(o.Dir, "chain", "*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		sort.Strings(segments)
		last := segments[len(segments)-1]
		b, err := os.ReadFile(last)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(last, append(b, `{"payload":"`...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := chain.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := c.Predecessor(); ok {
		t.Errorf("a successor opened: %+v", p)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := chain.OpenReader(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for line, err := range r.Lines(0) {
		if err != nil || line.Torn {
			t.Errorf("line %d: torn %t, %v", line.Seq, line.Torn, err)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d lines, want the genesis, three signs of life and three receipts of recovery", n)
	}
}

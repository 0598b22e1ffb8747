package chain

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// TestTrace: before each answer, line and salt were synced by syncs that
// began after both had been written.
func TestTrace(t *testing.T) {
	d, o := recorded(t, 6000)
	chains := []*Chain{openAt(t, o), openAt(t, o)}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 5 {
				appendAcked(t, d, chains[i%2], 100*i+j)
			}
		})
	}
	wg.Wait()
	answers := 0
	for n, o := range d.ops {
		if o.kind != opAck {
			continue
		}
		answers++
		for i, w := range d.ops[:n] {
			if w.kind == opWrite && holds(d, w, o.ack) && !d.durable(i, n) {
				t.Errorf("receipt %d was answered before its bytes in %s were synced", o.ack.Seq, w.path)
			}
		}
	}
	if answers != 40 {
		t.Fatalf("%d answers, want 40", answers)
	}
}

// holds reports whether a write holds the line or salt of a position.
func holds(d *disk, w op, pos receipts.Position) bool {
	switch {
	case strings.HasSuffix(w.path, segmentSuffix):
		seq, err := seqOf([]byte(strings.TrimSuffix(string(w.data), "\n")))
		return err == nil && seq == pos.Seq
	case strings.HasSuffix(w.path, saltsSuffix) && len(w.data) == recordSize:
		k, _, err := parseRecord(w.data)
		return err == nil && k.seq == pos.Seq
	}
	return false
}

// failOn makes the ops that match fail until stop is called.
func failOn(d *disk, err error, match func(op) bool) (stop func()) {
	set := func(f func(op) error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.fault = f
	}
	set(func(o op) error {
		if match(o) {
			return err
		}
		return nil
	})
	return func() { set(nil) }
}

// A disk that fails for good ends the chain: nothing more is signed, and the
// next Open closes it and says why.
func TestFailedSyncForGoodEndsTheChain(t *testing.T) {
	d, o := recorded(t, 0)
	c, other := openAt(t, o), openAt(t, o)
	appendAcked(t, d, c, 1)
	old := c.Origin()
	stop := failOn(d, syscall.EIO, func(o op) bool {
		return o.path == c.at.segment(0) && (o.kind == opSync || o.kind == opTruncate)
	})
	for range 2 {
		if _, err := c.Append(t.Context(), decision(2)); !errors.Is(err, ErrEnded) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("append: %v", err)
		}
	}
	if _, _, err := c.Head(t.Context()); !errors.Is(err, ErrEnded) {
		t.Fatalf("head: %v", err)
	}
	stop()
	if _, err := other.Append(t.Context(), decision(3)); !errors.Is(err, ErrEnded) {
		t.Fatalf("append by another process: %v", err)
	}
	again := openAt(t, o)
	p, ok := again.Predecessor()
	if !ok || p.Origin != old || !strings.Contains(p.Reason, "input/output error") {
		t.Fatalf("successor %v: %+v", ok, p)
	}
	closed := layout{d, "/e/" + closedName + "/" + originHex(old)}
	if _, err := verifyChain(closed, d.acked(len(d.ops))); err != nil {
		t.Error(err)
	}
}

// While the copy cannot be written nothing is cut and nothing is signed; when
// there is space again the chain goes on with every line.
func TestFailedSyncOnFullDisk(t *testing.T) {
	d, o := recorded(t, 0)
	c := openAt(t, o)
	appendAcked(t, d, c, 1)
	stop := failOn(d, syscall.ENOSPC, func(o op) bool {
		return o.path == c.at.segment(0) && o.kind == opSync || strings.HasSuffix(o.path, rewriteSuffix) && o.kind == opWrite
	})
	for range 2 {
		if _, err := c.Append(t.Context(), decision(2)); !errors.Is(err, ErrNoSpace) {
			t.Fatalf("append: %v", err)
		}
	}
	stop()
	appendAcked(t, d, c, 3)
	if n := checkChain(t, d, "/e", d.acked(len(d.ops))); n != 4 {
		t.Errorf("%d lines, want the genesis, the one that was never answered, and 2", n)
	}
}

// Two processes whose syncs both fail: one rewrites, the other stops and
// opens again; no answer was wrong.
func TestFailedSyncInTwoProcesses(t *testing.T) {
	d, o := recorded(t, 0)
	chains := []*Chain{openAt(t, o), openAt(t, o)}
	for i := range 4 {
		appendAcked(t, d, chains[i%2], i)
	}
	told := make(map[*diskFile]bool) // each open file is told once, as on Linux
	stop := failOn(d, syscall.EIO, func(o op) bool {
		if o.kind != opSync || o.path != chains[0].at.segment(0) || len(told) == 2 || told[o.file] {
			return false
		}
		told[o.file] = true
		return true
	})
	defer stop()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			pos, err := chains[i%2].Append(t.Context(), decision(10+i))
			switch {
			case err == nil:
				d.ack(pos)
			case !errors.Is(err, ErrEnded):
				t.Errorf("append: %v", err)
			}
		})
	}
	wg.Wait()
	again := openAt(t, o)
	if p, ok := again.Predecessor(); ok {
		t.Fatalf("called tampering: %s", p.Reason)
	}
	appendAcked(t, d, again, 99)
	checkChain(t, d, "/e", d.acked(len(d.ops)))
}

// Lines taken away under a running process stop it (E8).
func TestCutUnderAProcess(t *testing.T) {
	d, o := recorded(t, 0)
	c := openAt(t, o)
	for i := range 4 {
		appendAcked(t, d, c, i)
	}
	other := newDiskFile(t, d, c.at.segment(0))
	lines := strings.SplitAfter(string(other.node.data), "\n")
	if err := other.Truncate(int64(len(lines[0]) + len(lines[1]))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), decision(9)); !errors.Is(err, ErrRolledBack) || !errors.Is(err, ErrEnded) {
		t.Fatalf("append: %v", err)
	}
	again := openAt(t, o)
	if p, ok := again.Predecessor(); !ok || p.Size != 2 {
		t.Fatalf("successor %v after %+v", ok, p)
	}
}

func newDiskFile(t *testing.T, d *disk, name string) *diskFile {
	t.Helper()
	f, err := d.OpenFile(name, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f.(*diskFile)
}

// A successor opened by one process stops the others on the old chain.
func TestSuccessorStopsOthers(t *testing.T) {
	d, o := recorded(t, 0)
	c := openAt(t, o)
	appendAcked(t, d, c, 1)
	o.KeptHeads = func() (uint64, []byte, error) { return 100, nil, nil }
	openAt(t, o)
	if _, err := c.Append(t.Context(), decision(2)); !errors.Is(err, ErrEnded) {
		t.Fatalf("append to a closed chain: %v", err)
	}
}

// A rotation by another process is followed with the new keys, and without
// them nothing is signed (H2).
func TestRotationByAnother(t *testing.T) {
	d, o := recorded(t, 0)
	a, b := openAt(t, o), openAt(t, o)
	appendAcked(t, d, a, 1)
	old := a.HeadKey()
	keys, err := newKeyPair()
	if err != nil {
		t.Fatal(err)
	}
	rotate(t, b, keys)
	if _, err := a.Append(t.Context(), decision(2)); !errors.Is(err, ErrKey) {
		t.Fatalf("append with the old keys after a rotation: %v", err)
	}
	for name, priv := range map[string]ed25519.PrivateKey{headKeyName: keys.head, receiptKeyName: keys.receipt} {
		if err := replaceFile(d, a.at.path(keysName, name), tlog.MarshalPrivateKey(priv)); err != nil {
			t.Fatal(err)
		}
	}
	appendAcked(t, d, a, 3)
	head, _, err := a.Head(t.Context())
	if err != nil || a.HeadKey().Equal(old) || a.HeadKey().Name != old.Name {
		t.Fatalf("head key %s after %s: %v", a.HeadKey(), old, err)
	}
	_, note, err := tlog.ParseSignedCheckpoint(head)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Verify(a.HeadKey()); err != nil {
		t.Error(err)
	}
	if n := checkChain(t, d, "/e", d.acked(len(d.ops))); n != 4 {
		t.Errorf("%d lines, want the genesis, the rotation and 2", n)
	}
}

// rotate writes the line that puts keys in force.
func rotate(t *testing.T, c *Chain, keys keyPair) {
	t.Helper()
	if err := c.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.leave()
	v, err := tlog.NewVkey(c.place.origin, tlog.KeyEd25519, publicOf(keys.head))
	if err != nil {
		t.Fatal(err)
	}
	link := receipts.Link{Origin: c.place.origin, Seq: c.place.seq, Prev: c.place.prev, KeySeq: c.place.keySeq}
	line, err := receipts.Seal(receipts.NewRotation(testCommon(), v.String(), publicOf(keys.receipt)), link, c.keys.receipt)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.write(append(line, '\n'), nil); err != nil {
		t.Fatal(err)
	}
}

// Rounds: whoever joins gets a run that began after the call, and those who
// wait share one.
func TestRoundsAreShared(t *testing.T) {
	r := newRounds()
	entered, release := make(chan struct{}), make(chan struct{})
	runs := 0
	run := func() error {
		runs++
		entered <- struct{}{}
		<-release
		return fmt.Errorf("run %d", runs)
	}
	results := make(chan error, 9)
	go func() { results <- r.join(run) }()
	<-entered
	for range 8 {
		go func() { results <- r.join(run) }()
	}
	release <- struct{}{}
	if err := <-results; err.Error() != "run 1" {
		t.Fatalf("the first caller got %v", err)
	}
	for got := 0; got < 8; {
		select {
		case <-entered:
			release <- struct{}{}
		case err := <-results:
			if err.Error() == "run 1" {
				t.Fatal("a run that had begun before the call was shared")
			}
			got++
		}
	}
	if runs > 9 {
		t.Errorf("%d runs for 9 callers", runs)
	}
}

// A cancelled wait leaves nothing behind.
func TestCancelledWait(t *testing.T) {
	d, o := recorded(t, 0)
	c := openAt(t, o)
	holder := newDiskFile(t, d, c.at.path(lockName))
	if ok, err := holder.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	gone := errors.New("client went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := c.Append(ctx, decision(1)); !errors.Is(err, gone) {
		t.Fatalf("append: %v", err)
	}
	if err := holder.Unlock(); err != nil {
		t.Fatal(err)
	}
	if pos := mustAppend(t, c, decision(1)); pos.Seq != 1 {
		t.Errorf("line %d after a cancelled append, want 1", pos.Seq)
	}
}

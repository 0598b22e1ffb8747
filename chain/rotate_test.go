package chain

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// After a rotation lines and heads are by the new keys, the notes by old and
// new, another process follows, and the old keys are gone.
func TestRotate(t *testing.T) {
	d, o := recorded(t, 0)
	a, b := openAt(t, o), openAt(t, o)
	appendAcked(t, d, a, 1)
	first := a.HeadKey()
	for round := range 2 {
		was := a.HeadKey()
		pos, err := a.Rotate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d.ack(pos)
		appendAcked(t, d, b, 10+round)
		appendAcked(t, d, a, 20+round)
		note, _, err := b.Head(t.Context())
		if err != nil || b.HeadKey().Equal(was) || !b.HeadKey().Equal(a.HeadKey()) || b.Origin() != first.Name {
			t.Fatalf("head key %s after %s: %v", b.HeadKey(), was, err)
		}
		checkSigned(t, note, a.HeadKey())
		checkLastNote(t, a, pos, was)
	}
	notes, err := b.KeyNotes()
	if err != nil || len(notes) != 3 || notes[0].FromSize != 0 {
		t.Fatalf("%d notes: %v", len(notes), err)
	}
	checkSigned(t, notes[0].Note, first)
	if !bytes.HasPrefix(notes[0].Note, enrolText(first)) {
		t.Errorf("the first note is no enrolment of the first key: %s", notes[0].Note)
	}
	checkChain(t, d, "/e", d.acked(len(d.ops)))
	for _, p := range []string{headKeyName, receiptKeyName} {
		if there, _ := exists(d, a.at.path(keysName, p+nextSuffix)); there {
			t.Errorf("%s%s is left", p, nextSuffix)
		}
	}
}

func checkSigned(t *testing.T, b []byte, key tlog.Vkey) {
	t.Helper()
	note, err := tlog.ParseNote(b)
	if err == nil {
		_, err = note.Verify(key)
	}
	if err != nil {
		t.Errorf("note by %s: %v", key, err)
	}
}

func checkLastNote(t *testing.T, c *Chain, rotation receipts.Position, was tlog.Vkey) {
	t.Helper()
	notes, err := c.KeyNotes()
	if err != nil {
		t.Fatal(err)
	}
	last := notes[len(notes)-1]
	if last.FromSize != rotation.Seq+1 {
		t.Errorf("from-size %d after rotation receipt %d", last.FromSize, rotation.Seq)
	}
	checkSigned(t, last.Note, was)
	checkSigned(t, last.Note, c.HeadKey())
}

// A chain that was never rotated enrols with its only key.
func TestKeyNotesWithoutRotation(t *testing.T) {
	_, o := recorded(t, 0)
	c := openAt(t, o)
	notes, err := c.KeyNotes()
	if err != nil || len(notes) != 1 {
		t.Fatalf("%d notes: %v", len(notes), err)
	}
	checkSigned(t, notes[0].Note, c.HeadKey())
}

// TestCrashWhileRotating: at every moment the chain opens with the keys that
// its lines name, and a note is there for every rotation that is in force.
func TestCrashWhileRotating(t *testing.T) {
	t.Parallel()
	d, o := recorded(t, 0)
	c := openAt(t, o)
	appendAcked(t, d, c, 1)
	start := len(d.ops)
	pos, err := c.Rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.ack(pos)
	if _, err := c.Append(t.Context(), decision(2)); err != nil {
		t.Fatal(err)
	}
	sweepWith(t, d, start, func(after *disk, acked []receipts.Position) error {
		c, err := Open(context.Background(), Options{Dir: "/e", FS: after, Version: "test"})
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Append(context.Background(), decision(3)); err != nil {
			return err
		}
		if notes, err := c.KeyNotes(); err != nil || len(notes) == 2 != (c.place.keySeq > 0) {
			return errors.Join(err, errors.New("notes and key in force do not fit"))
		}
		if left, err := c.at.waitingKeys(); err != nil || len(left) > 0 {
			return errors.Join(err, errors.New("new keys are left beside those in use"))
		}
		_, err = verifyChain(c.at, acked)
		return err
	})
}

// sweepWith tries every crash of a recorded run from an op on.
func sweepWith(t *testing.T, d *disk, first int, check func(after *disk, acked []receipts.Position) error) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	seen := make(map[[40]byte]bool)
	for n := first; n <= len(d.ops); n++ {
		acked := d.acked(n)
		d.eachCrash(n, rng, func(m *image) {
			if t.Failed() || !fresh(seen, m, len(acked)) {
				return
			}
			if err := check(newDisk(m), acked); err != nil {
				t.Errorf("crash after op %d of %d: %v", n, len(d.ops), err)
			}
		})
	}
	t.Logf("%d distinct states", len(seen))
}

// A rotation line whose sync failed is rewritten like any other before the new
// keys are used.
func TestRotateWhenSyncFails(t *testing.T) {
	d, o := recorded(t, 0)
	c := openAt(t, o)
	appendAcked(t, d, c, 1)
	failed := false
	failOn(d, syscall.EIO, func(o op) bool {
		fail := !failed && o.kind == opSync && strings.HasSuffix(o.path, segmentSuffix)
		failed = failed || fail
		return fail
	})
	pos, err := c.Rotate(t.Context())
	if err != nil || !failed {
		t.Fatalf("sync failed: %v, rotate: %v", failed, err)
	}
	d.ack(pos)
	appendAcked(t, d, c, 2)
	checkChain(t, d, "/e", d.acked(len(d.ops)))
}

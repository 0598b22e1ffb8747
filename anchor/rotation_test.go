package anchor_test

import (
	"path/filepath"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// A chain rotates while it is streamed, twice between two heads, and enrols at
// a second witness afterwards: both follow, and one verify passes across the
// keys with the first one pinned, as with the last (E53).
func TestRotationIsWitnessed(t *testing.T) {
	rigs := []*rig{newRig(t), newRig(t)}
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	first := c.HeadKey()
	enroll(t, c, rigs[0])
	record(t, c, 2)
	stop := stream(t, c)
	until(t, "the chain is witnessed", witnessed(t, dir, sizeOf(t, dir)))
	rotate(t, c)
	record(t, c, 1)
	until(t, "the rotated chain is witnessed", witnessed(t, dir, sizeOf(t, dir)))
	stop()
	rotate(t, c)
	rotate(t, c)
	record(t, c, 1)
	enroll(t, c, rigs[1])
	stop = stream(t, c)
	until(t, "both witnesses follow", func() bool {
		s, err := anchor.ReadStatus(dir, time.Now())
		return err == nil && len(s.Witnesses) == 2 && s.Witnesses[0].Lag+s.Witnesses[1].Lag == 0 &&
			s.Witnesses[0].Logged && s.Witnesses[1].Logged
	})
	stop()
	for i, r := range rigs {
		for _, key := range []tlog.Vkey{first, c.HeadKey()} {
			rep := verifyDir(t, dir, r.stamped(c.Origin()), r.trust(key))
			if rep.Exit != 0 {
				t.Errorf("witness %d, pinned %s: %s %s", i, key, rep.Verdict, reasons(rep))
			}
		}
	}
}

func rotate(t *testing.T, c *chain.Chain) {
	t.Helper()
	if _, err := c.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The notes that a chain writes are those that a witness reads.
func TestKeyNotesAreTheWitnesses(t *testing.T) {
	c := openChain(t, filepath.Join(t.TempDir(), "evidence"))
	first := c.HeadKey()
	enrol := readKeyNote(t, c, 0)
	if enrol.Act != api.KeyEnrol || !enrol.New.Equal(first) {
		t.Errorf("%+v is no enrolment of %s", enrol, first)
	}
	rotate(t, c)
	if again := readKeyNote(t, c, 0); !again.New.Equal(first) {
		t.Errorf("after a rotation the enrolment is of %s", again.New)
	}
	next := readKeyNote(t, c, 1)
	if next.Act != api.KeyRotate || !next.Old.Equal(first) || !next.New.Equal(c.HeadKey()) || next.FromSize != 2 {
		t.Errorf("%+v is not the rotation by receipt 1", next)
	}
}

func readKeyNote(t *testing.T, c *chain.Chain, i int) api.KeyNote {
	t.Helper()
	notes, err := c.KeyNotes()
	if err != nil || i >= len(notes) {
		t.Fatalf("%d notes: %v", len(notes), err)
	}
	k, note, err := api.ParseKeyNote(notes[i].Note)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.SignedBy(note, tlog.Vkey{}); err != nil {
		t.Error(err)
	}
	if k.FromSize != notes[i].FromSize {
		t.Errorf("from-size %d in the note, %d beside it", k.FromSize, notes[i].FromSize)
	}
	return k
}

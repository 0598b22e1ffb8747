package chain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"toolguardian/receipts"
)

func argsOf(seq uint64) receipts.Erased { return receipts.Erased{Seq: seq, Field: "args_sent"} }

// opened is a session of a person, as the router opens it.
func opened(t testing.TB, c *Chain, person string) receipts.Receipt {
	t.Helper()
	salt, err := c.PersonSalt(context.Background(), []byte(person))
	if err != nil {
		t.Fatal(err)
	}
	return receipts.NewSessionOpen(testCommon(), "2025-11-25", time.Minute, receipts.Commit(receipts.FieldPrincipal, salt, []byte(person)))
}

// Two salts go, their neighbours stay, lines and tree are what they were, the
// receipt tells, and another process that knew the salt's bytes cannot bring
// them back.
func TestErase(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentSize: 4000}
	c, other := openAt(t, o), openAt(t, o)
	var acked []receipts.Position
	for i := range 9 {
		acked = append(acked, mustAppend(t, []*Chain{c, other}[i%2], decision(i)))
	}
	opening := filepath.Join(o.Dir, openingsName, "3.args_sent.open")
	copied := filepath.Join(t.TempDir(), "copy")
	salt, err := c.Salt(3, receipts.FieldArgsSent)
	if err != nil {
		t.Fatal(err)
	}
	write(t, opening, receipts.Opening(receipts.FieldArgsSent, salt, []byte(`{"n":2}`)))
	write(t, copied, []byte(`{"n":2}`))
	done, err := c.Erase(t.Context(), Erasure{Fields: []receipts.Erased{argsOf(3), argsOf(8)}, Files: []string{copied}})
	if err != nil || len(done.Fields) != 2 || len(done.Files) != 2 {
		t.Fatalf("%+v %v", done, err)
	}
	for _, gone := range []string{opening, copied, filepath.Join(o.Dir, saltsName, eraseName)} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	acked = append(acked, mustAppend(t, other, decision(20)))
	for _, c := range []*Chain{c, other} {
		for _, a := range acked {
			_, err := c.Salt(a.Seq, receipts.FieldArgsSent)
			if erased := a.Seq == 3 || a.Seq == 8; errors.Is(err, ErrErased) != erased || !erased && err != nil {
				t.Errorf("salt of %d: %v", a.Seq, err)
			}
		}
	}
	if _, err := c.Erase(t.Context(), Erasure{Fields: []receipts.Erased{argsOf(3)}}); !errors.Is(err, ErrErased) {
		t.Errorf("erased twice: %v", err)
	}
	if _, err := c.Erase(t.Context(), Erasure{Fields: []receipts.Erased{argsOf(99)}}); !errors.Is(err, ErrNotFound) {
		t.Errorf("erased what is not there: %v", err)
	}
	checkChain(t, OS(), o.Dir, acked)
	if r, err := Inspect(o); err != nil || r.Needed() {
		t.Errorf("an erasure looks like damage: %+v %v", r, err)
	}
}

// A person's salt goes in every receipt at once; the same person gets another
// salt afterwards, in every process.
func TestErasePerson(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	c, other := openAt(t, o), openAt(t, o)
	const sessions = 70 // more than one receipt can name
	for i := range sessions {
		mustAppend(t, c, opened(t, []*Chain{c, other}[i%2], "one"))
	}
	mustAppend(t, c, opened(t, c, "two"))
	was, err := other.PersonSalt(t.Context(), []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.PersonSalt(t.Context(), []byte("two"))
	if err != nil {
		t.Fatal(err)
	}
	done, err := c.Erase(t.Context(), Erasure{Person: []byte("one")})
	if err != nil || len(done.Fields) != sessions {
		t.Fatalf("%d fields: %v", len(done.Fields), err)
	}
	if _, err := c.Erase(t.Context(), Erasure{Person: []byte("one")}); !errors.Is(err, ErrNotFound) {
		t.Errorf("erased twice: %v", err)
	}
	is, err := other.PersonSalt(t.Context(), []byte("one"))
	if err != nil || is == was {
		t.Errorf("another process still has the salt: %v", err)
	}
	if again, err := other.PersonSalt(t.Context(), []byte("two")); err != nil || again != two {
		t.Errorf("another person's salt changed: %v", err)
	}
	told := 0
	err = at(o).eachStatement(0, func(s *receipts.Statement) { told += len(s.Erased) })
	if err != nil || told != sessions {
		t.Errorf("%d fields told erased, want %d: %v", told, sessions, err)
	}
	checkChain(t, OS(), o.Dir, nil)
}

// TestCrashWhileErasing: at every moment a salt is either there and nothing
// pending, or told erased before it is gone; and after the next Open an
// erasure that had begun is complete.
func TestCrashWhileErasing(t *testing.T) {
	t.Parallel()
	d, o := recorded(t, 0)
	c := openAt(t, o)
	for i := range 3 {
		appendAcked(t, d, c, i)
	}
	mustAppend(t, c, opened(t, c, "one"))
	appendAcked(t, d, c, 4)
	start := len(d.ops)
	if _, err := c.Erase(t.Context(), Erasure{Fields: []receipts.Erased{argsOf(1), argsOf(3)}, Person: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	done := len(d.ops)
	appendAcked(t, d, c, 5)
	for n := start; n <= len(d.ops); n++ {
		if n < len(d.ops) && d.ops[n].kind == opWrite && isZero(d.ops[n].data) {
			toldBefore(t, d, n)
		}
	}
	sweepWith(t, d, start, func(after *disk, acked []receipts.Position) error {
		o := Options{Dir: "/e", FS: after, Version: "test"}
		c, err := Open(context.Background(), o)
		if err != nil {
			return err
		}
		defer c.Close()
		told := make(map[receipts.Erased]bool)
		if err := c.at.eachStatement(0, func(s *receipts.Statement) {
			for _, e := range s.Erased {
				told[e] = s.Text("reason") == receipts.ErasedOnRequest
			}
		}); err != nil {
			return err
		}
		delete(told, argsOf(7)) // the last append may have lost its salt
		if len(told) != 0 && len(told) != 3 {
			return fmt.Errorf("told %v", told)
		}
		for _, seq := range []uint64{1, 2, 3} {
			_, err := c.Salt(seq, receipts.FieldArgsSent)
			if errors.Is(err, ErrErased) != told[argsOf(seq)] {
				return fmt.Errorf("salt of %d, told %v: %v", seq, told, err)
			}
		}
		if p, ok := c.Predecessor(); ok {
			return fmt.Errorf("called tampering: %s", p.Reason)
		}
		if _, pending, err := c.at.pendingOrder(); pending || err != nil {
			return fmt.Errorf("still pending: %v", err)
		}
		_, err = verifyChain(c.at, acked)
		return err
	})
	// Acknowledged: no crash brings anything back.
	d.eachCrash(done, rand.New(rand.NewPCG(7, 8)), func(m *image) {
		c := openAt(t, Options{Dir: "/e", FS: newDisk(m)})
		if _, err := c.Salt(1, receipts.FieldArgsSent); !errors.Is(err, ErrErased) {
			t.Errorf("an erased salt came back: %v", err)
		}
		if _, err := c.at.knownPerson([32]byte{}); err == nil {
			t.Error("a person without a name")
		}
	})
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return len(b) == recordSize
}

// toldBefore checks that everything written before op n is durable there.
func toldBefore(t *testing.T, d *disk, n int) {
	t.Helper()
	for _, i := range d.pending(n) {
		if o := d.ops[i]; o.kind == opWrite && filepath.Ext(o.path) == segmentSuffix {
			t.Errorf("op %d zeroes a salt while the line of op %d is not durable", n, i)
		}
	}
}

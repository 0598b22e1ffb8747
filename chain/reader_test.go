package chain

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolguardian/receipts"
)

// Reading while two others write sees whole lines in order, and never a torn
// one (E67).
func TestReadWhileWritten(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "evidence"), SegmentSize: 50_000}
	a, b := openAt(t, o), openAt(t, o)
	stop := make(chan struct{})
	done := make(chan struct{}, 2)
	for _, c := range []*Chain{a, b} {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.Append(context.Background(), decision(i)); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	last := uint64(0)
	for rounds := 0; rounds < 20 || last < 300; rounds++ {
		n := readLinked(t, o.Dir)
		if n < last || t.Failed() {
			t.Errorf("%d lines after %d", n, last)
			break
		}
		last = n
	}
	close(stop)
	<-done
	<-done
}

// readLinked follows links from the genesis and returns the number of lines.
func readLinked(t *testing.T, dir string) uint64 {
	t.Helper()
	r, err := OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var p place
	for line, err := range r.Lines(0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.next(line.Bytes)
		if err != nil || line.Torn || line.Seq != p.seq {
			t.Errorf("line %d (torn %v): %v", line.Seq, line.Torn, err)
			return 0
		}
		p = e.after
	}
	return p.seq
}

func TestReaderOnDamage(t *testing.T) {
	o, _ := grown(t, 3)
	whole := read(t, at(o).segment(0))
	long := bytes.Repeat([]byte("y"), 3*receipts.MaxLine)
	write(t, at(o).segment(0), bytes.Join([][]byte{whole, long, []byte("\n\nend")}, nil))
	r, err := OpenReader(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []Line
	for line, err := range r.Lines(3) {
		if err != nil {
			t.Fatal(err)
		}
		line.Bytes = bytes.Clone(line.Bytes)
		got = append(got, line)
	}
	if len(got) != 4 || len(got[1].Bytes) != receipts.MaxLine+1 || len(got[2].Bytes) != 0 || string(got[3].Bytes) != "end" {
		t.Fatalf("%d lines", len(got))
	}
	if got[1].Torn || got[2].Torn || !got[3].Torn || got[3].Offset != int64(len(whole)+len(long)+2) {
		t.Errorf("torn: %+v", got[3])
	}
	if n, err := r.Size(); n != 7 || err != nil {
		t.Errorf("size %d: %v", n, err)
	}
	if err := os.Truncate(at(o).segment(0), 100); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Line(2); !errors.Is(err, ErrChanged) {
		t.Errorf("line of a segment cut meanwhile: %v", err)
	}
	if _, err := OpenReader(t.TempDir()); err == nil {
		t.Error("an empty folder opened")
	}
}

func TestFollowSeesOthers(t *testing.T) {
	o, _ := grown(t, 1)
	a, b := openAt(t, o), openAt(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	sizes := a.Follow(ctx)
	if size := <-sizes; size != 2 {
		t.Fatalf("first size %d, want 2", size)
	}
	mustAppend(t, a, decision(1))
	if size := <-sizes; size != 3 {
		t.Errorf("size %d after our append, want 3", size)
	}
	began := time.Now()
	mustAppend(t, b, decision(2))
	if size := <-sizes; size != 4 {
		t.Errorf("size %d after another's append, want 4", size)
	}
	if late := time.Since(began); late > 5*time.Second {
		t.Errorf("another's append was seen after %v", late)
	}
	cancel()
	for range sizes {
	}
}

func TestPersonSalt(t *testing.T) {
	o, _ := grown(t, 1)
	a, b := openAt(t, o), openAt(t, o)
	one, err := a.PersonSalt(t.Context(), []byte("ann"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.PersonSalt(t.Context(), []byte("bob"))
	if err != nil {
		t.Fatal(err)
	}
	same, err := b.PersonSalt(t.Context(), []byte("ann"))
	if err != nil || same != one || one == two || one == [32]byte{} {
		t.Errorf("ann %x then %x, bob %x: %v", one[:4], same[:4], two[:4], err)
	}
	if n := len(read(t, at(o).path(saltsName, peopleName))); n != 2*recordSize {
		t.Errorf("people.bin has %d bytes", n)
	}
	principal := receipts.Commit(receipts.FieldPrincipal, one, []byte("ann"))
	pos := mustAppend(t, a, receipts.NewSessionOpen(testCommon(), "2025-06-18", time.Minute, principal))
	if _, err := a.Salt(pos.Seq, receipts.FieldPrincipal); !errors.Is(err, ErrNotFound) {
		t.Errorf("a person's salt stands beside the line: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := Inspect(o); err != nil || r.Needed() {
		t.Errorf("a person's field counts as a lost salt: %+v %v", r, err)
	}
}

func TestSignNote(t *testing.T) {
	o, _ := grown(t, 1)
	c := openAt(t, o)
	if _, err := c.SignNote([]byte(c.Origin() + "\n9\nAAAA\n")); err == nil {
		t.Error("signed a head of its own choosing")
	}
	note, err := c.SignNote([]byte("tool-guardian/event/v1\n" + c.Origin() + "\n"))
	if err != nil || !strings.Contains(string(note), "— "+c.Origin()+" ") {
		t.Errorf("note %q: %v", note, err)
	}
}

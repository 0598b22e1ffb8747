package chain

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// grown returns a closed chain of a genesis and n decisions on disk.
func grown(t testing.TB, n int) (Options, []receipts.Position) {
	t.Helper()
	o := Options{Dir: filepath.Join(t.TempDir(), "evidence"), Version: "test"}
	c := openAt(t, o)
	var acked []receipts.Position
	for i := range n {
		acked = append(acked, mustAppend(t, c, decision(i)))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return o, acked
}

func at(o Options) layout { return layout{fs: OS(), dir: o.Dir} }

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// lastStatement parses the chain's last line.
func lastStatement(t testing.TB, o Options) *receipts.Statement {
	t.Helper()
	r, err := OpenReader(o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var last []byte
	for line, err := range r.Lines(0) {
		if err != nil {
			t.Fatal(err)
		}
		last = bytes.Clone(line.Bytes)
	}
	env, err := receipts.ParseLine(last)
	if err != nil {
		t.Fatal(err)
	}
	s, err := receipts.ParseStatement(env.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func reopenAndClose(t testing.TB, o Options) (Predecessor, bool) {
	t.Helper()
	c, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := c.Predecessor()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return p, ok
}

// A torn tail of any kind goes to quarantine whole, and a receipt tells. What
// merely looks like a line, even with right links, is never adopted (E1–E3, E6).
func TestTornTail(t *testing.T) {
	o, acked := grown(t, 3)
	segment := at(o).segment(0)
	whole := read(t, segment)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	forged := bytes.Replace(lines[3], []byte(`"sig":"`), []byte(`"sig":"A`), 1)
	other, err := receipts.Seal(receipts.NewHeartbeat(testCommon()), forgedLink(t, o), otherKey(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, tail := range map[string][]byte{
		"half a line":           lines[3][:100],
		"one byte":              []byte("{"),
		"zeros":                 make([]byte, 5000),
		"a line again":          lines[3],
		"a broken signature":    forged,
		"signed by another key": append(other, '\n'),
		"longer than any line":  bytes.Repeat([]byte("x"), 200_000),
		"JSON":                  []byte("{\"payload\":\"\"}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			o.Dir = filepath.Join(t.TempDir(), "evidence")
			if err := os.CopyFS(o.Dir, os.DirFS(filepath.Dir(filepath.Dir(segment)))); err != nil {
				t.Fatal(err)
			}
			chmodAll(t, o.Dir)
			write(t, at(o).segment(0), append(bytes.Clone(whole), tail...))
			r, err := Inspect(o)
			if err != nil || r.Torn != int64(len(tail)) || r.Offset != int64(len(whole)) || r.Lines != 4 || r.Ends != "" {
				t.Fatalf("dry run: %+v %v", r, err)
			}
			if got := read(t, at(o).segment(0)); len(got) != len(whole)+len(tail) {
				t.Fatal("the dry run changed the segment")
			}
			if p, ok := reopenAndClose(t, o); ok {
				t.Fatalf("called tampering: %s", p.Reason)
			}
			if n := checkChain(t, OS(), o.Dir, acked); n != 5 {
				t.Fatalf("%d lines, want 4 and the recovery's", n)
			}
			if s := lastStatement(t, o); s.Kind != receipts.KindRecovered {
				t.Errorf("the last line is a %s", s.Kind)
			}
			if got := quarantined(t, o); len(got) != 1 || !bytes.Equal(got[0], tail) {
				t.Errorf("quarantine holds %d files, not the torn bytes", len(got))
			}
		})
	}
}

func chmodAll(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{headKeyName, receiptKeyName} {
		if err := os.Chmod(filepath.Join(dir, keysName, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func quarantined(t *testing.T, o Options) [][]byte {
	t.Helper()
	names, err := filepath.Glob(at(o).path(quarantineName, "*"+segmentSuffix))
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, name := range names {
		out = append(out, read(t, name))
	}
	return out
}

// forgedLink is the place of the next line.
func forgedLink(t *testing.T, o Options) receipts.Link {
	t.Helper()
	f, err := at(o).load()
	if err != nil {
		t.Fatal(err)
	}
	return receipts.Link{Origin: f.place.origin, Seq: f.place.seq, Prev: f.place.prev, KeySeq: f.place.keySeq}
}

// A copy in quarantine is never written over, not even by the same bytes at
// the same place after a second crash (E3).
func TestQuarantineKeepsEarlierCopies(t *testing.T) {
	o, _ := grown(t, 2)
	segment := at(o).segment(0)
	whole := read(t, segment)
	for i, tail := range []string{"first", "second", "first"} {
		write(t, segment, append(bytes.Clone(whole), tail...))
		reopenAndClose(t, o)
		got := quarantined(t, o)
		if len(got) != i+1 || !slices.ContainsFunc(got, func(b []byte) bool { return string(b) == tail }) {
			t.Fatalf("after crash %d quarantine holds %d copies", i+1, len(got))
		}
	}
}

func TestLastLineWithoutNewlineCounts(t *testing.T) {
	o, acked := grown(t, 3)
	segment := at(o).segment(0)
	whole := read(t, segment)
	write(t, segment, whole[:len(whole)-1])
	if r, err := Inspect(o); err != nil || r.Torn != 0 || !r.Newline || r.Lines != 4 {
		t.Fatalf("dry run: %+v %v", r, err)
	}
	if p, ok := reopenAndClose(t, o); ok {
		t.Fatalf("called tampering: %s", p.Reason)
	}
	if n := checkChain(t, OS(), o.Dir, acked); n != 4 {
		t.Errorf("%d lines, want 4 and no more", n)
	}
	if got := read(t, segment); !bytes.Equal(got, whole) {
		t.Error("the line was not ended where it lacked its newline")
	}
}

// A line whose salt a crash took is told once, and only for that field.
func TestLostSaltIsTold(t *testing.T) {
	o, acked := grown(t, 3)
	salts := at(o).salts(0)
	b := read(t, salts)
	write(t, salts, b[:len(b)-recordSize-10]) // line 3's salt, and a part of line 2's
	for range 2 {
		reopenAndClose(t, o)
		if n := checkChain(t, OS(), o.Dir, acked); n != 5 {
			t.Fatalf("%d lines, want 4 and one erasure", n)
		}
	}
	s := lastStatement(t, o)
	if s.Kind != receipts.KindErasure || s.Text("reason") != receipts.ErasedByCrash || len(s.Erased) != 2 ||
		s.Erased[0] != (receipts.Erased{Seq: 2, Field: "args_sent"}) {
		t.Errorf("%s %s of %v", s.Kind, s.Text("reason"), s.Erased)
	}
}

// A salt without its line belongs to a line that was never acknowledged: the
// line that takes its place has its own.
func TestOrphanSaltIsCut(t *testing.T) {
	o, _ := grown(t, 2)
	b := read(t, at(o).salts(0))
	write(t, at(o).salts(0), appendRecord(b, saltKey{3, receipts.FieldArgsSent}, [32]byte{9}))
	c := openAt(t, o)
	pos := mustAppend(t, c, decision(5))
	salt, err := c.Salt(pos.Seq, receipts.FieldArgsSent)
	if err != nil || salt != [32]byte{5, 0, 1} {
		t.Errorf("salt of line %d is %x: %v", pos.Seq, salt[:3], err)
	}
}

// A chain shorter than a kept head, or with a break, is left as it is; its
// successor names it (H3, E7, E8).
func TestRolledBack(t *testing.T) {
	cut := func(t *testing.T, o Options) {
		segment := at(o).segment(0)
		lines := bytes.SplitAfter(read(t, segment), []byte("\n"))
		write(t, segment, bytes.Join(lines[:3], nil))
	}
	for name, tc := range map[string]struct {
		damage func(*testing.T, Options)
		kept   uint64
		left   uint64 // good lines of the old chain
		lines  bool   // whether its folder still has segments
	}{
		"behind a witness": {cut, 4, 3, true},
		"emptied":          {func(t *testing.T, o Options) { write(t, at(o).segment(0), nil) }, 0, 0, true},
		"first line broken": {func(t *testing.T, o Options) {
			b := read(t, at(o).segment(0))
			b[50] ^= 1
			write(t, at(o).segment(0), b)
		}, 0, 0, true},
		"lines taken away": {func(t *testing.T, o Options) {
			if err := os.RemoveAll(at(o).path(chainName)); err != nil {
				t.Fatal(err)
			}
		}, 0, 0, false},
		"ended": {func(t *testing.T, o Options) { write(t, at(o).path(chainName, endedName), []byte("disk\n")) }, 0, 6, true},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := grown(t, 5)
			origin := forgedLink(t, o).Origin
			tc.damage(t, o)
			before, _ := os.ReadFile(at(o).segment(0))
			o.KeptHeads = func() (uint64, []byte, error) { return tc.kept, nil, nil }
			p, ok := reopenAndClose(t, o)
			if !ok || p.Origin != origin || p.Size != tc.left {
				t.Fatalf("successor opened: %v, after %s of size %d", ok, p.Origin, p.Size)
			}
			s := lastStatement(t, o)
			if s.Kind != receipts.KindSuccessor || s.Seq != 0 || s.Origin == origin || s.Text("old", "origin") != origin {
				t.Errorf("the new chain begins with a %s of %s", s.Kind, s.Origin)
			}
			if n := checkChain(t, OS(), o.Dir, nil); n != 1 {
				t.Errorf("the new chain has %d lines", n)
			}
			closed := filepath.Join(o.Dir, closedName, originHex(origin))
			if tc.lines {
				if got := read(t, layout{OS(), closed}.segment(0)); !bytes.Equal(got, before) {
					t.Error("the closed chain was changed")
				}
				if _, err := OpenReader(closed); err != nil {
					t.Errorf("the closed chain does not open: %v", err)
				}
			}
			o.KeptHeads = nil
			if _, again := reopenAndClose(t, o); again {
				t.Error("opening again opened another successor")
			}
		})
	}
}

// Tiles are rebuilt from lines, and never believed against them.
func TestTilesAreRebuilt(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "evidence"), SegmentSize: 200_000}
	grow(t, o, 3*256)
	f, err := at(o).load()
	if err != nil {
		t.Fatal(err)
	}
	want, err := tlog.TreeRoot(f.place.seq, f.tree)
	if err != nil {
		t.Fatal(err)
	}
	one := at(o).tile(tlog.TileID{Index: 1})
	for name, damage := range map[string]func(){
		"one gone":  func() { os.Remove(one) },
		"one short": func() { write(t, one, make([]byte, 100)) },
		"all gone":  func() { os.RemoveAll(at(o).path(chainName, tilesName)) },
		"last altered": func() {
			last := at(o).tile(tlog.TileID{Index: 2})
			b := read(t, last)
			b[len(b)-1] ^= 1
			write(t, last, b)
		},
	} {
		damage()
		c := openAt(t, o)
		if _, cp, err := c.Head(t.Context()); err != nil || cp.Root != want {
			t.Errorf("%s: another root: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if n := at(o).savedTiles(); n != 3 {
			t.Errorf("%s: %d tiles after opening, want 3", name, n)
		}
	}
}

// Keys that others may read, or that are none, are refused (E57).
func TestKeyFilesRefused(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"empty":    func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"readable": func(p string) error { return os.Chmod(p, 0o644) },
		"garbage":  func(p string) error { return os.WriteFile(p, []byte("key"), 0o600) },
		"missing":  os.Remove,
		"a link": func(p string) error {
			return errors.Join(os.Rename(p, p+".old"), os.Symlink(p+".old", p))
		},
		"another's": func(p string) error {
			return os.WriteFile(p, tlog.MarshalPrivateKey(otherKey(t)), 0o600)
		},
	} {
		for _, key := range []string{headKeyName, receiptKeyName} {
			o, _ := grown(t, 1)
			before := read(t, at(o).segment(0))
			if err := damage(at(o).path(keysName, key)); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), o)
			if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), keysName) {
				t.Errorf("%s %s: %v", name, key, err)
			}
			if !bytes.Equal(before, read(t, at(o).segment(0))) {
				t.Errorf("%s %s: the chain was changed", name, key)
			}
		}
	}
}

// FuzzRecover changes and extends the last segment and its salts: nothing
// panics, and every line before the first change is still there afterwards,
// in the chain or in the closed one.
func FuzzRecover(f *testing.F) {
	d := newDisk(newImage())
	o := Options{Dir: "/e", FS: d, Version: "test"}
	c, err := Open(f.Context(), o)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 4 {
		mustAppend(f, c, decision(i))
	}
	if err := c.Close(); err != nil {
		f.Fatal(err)
	}
	whole := slices.Clone(nodeOf(f, d, c.at.segment(0)).data)
	f.Add(uint32(0), []byte{}, []byte("{"), []byte{})
	f.Add(uint32(len(whole)-1), []byte{'x'}, []byte{}, []byte{1})
	f.Add(uint32(3000), []byte("\n\n"), whole[:900], make([]byte, 80))
	f.Fuzz(func(t *testing.T, off uint32, flips, more, salts []byte) {
		d := newDisk(d.now)
		n := nodeOf(t, d, c.at.segment(0))
		start := min(int(off), len(n.data))
		changed := len(n.data)
		for i, b := range flips {
			if start+i < len(n.data) && b != 0 {
				n.data[start+i] ^= b
				changed = min(changed, start+i)
			}
		}
		n.data = append(n.data, more...)
		nodeOf(t, d, c.at.salts(0)).data = append(nodeOf(t, d, c.at.salts(0)).data, salts...)
		o := o
		o.FS = d
		c, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if p, ok := c.Predecessor(); ok && changed > bytes.IndexByte(whole, '\n') {
			t.Fatalf("called tampering: %s", p.Reason)
		} else if ok {
			return
		}
		good := bytes.LastIndexByte(whole[:changed], '\n') + 1
		if got := nodeOf(t, d, c.at.segment(0)).data; !bytes.HasPrefix(got, whole[:good]) {
			t.Fatal("lines before the change are gone")
		}
		if _, err := verifyChain(c.at, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func nodeOf(t testing.TB, d *disk, name string) *node {
	t.Helper()
	n, err := d.now.find(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A segment is closed when its first line is old enough; a clock that goes back
// closes none.
func TestSegmentAge(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := Options{Dir: t.TempDir(), SegmentAge: time.Hour, Now: func() time.Time { return now }}
	c := openAt(t, o)
	steps := []struct {
		after time.Duration
		want  []uint64
	}{{0, []uint64{0}}, {-24 * time.Hour, []uint64{0}}, {25*time.Hour + time.Minute, []uint64{0, 3}}, {30 * time.Minute, []uint64{0, 3}}, {time.Hour, []uint64{0, 3, 5}}}
	for i, step := range steps {
		now = now.Add(step.after)
		r := decision(i)
		r.Time.Wall = now
		mustAppend(t, c, r)
		segments, err := c.at.segments()
		if err != nil || !slices.Equal(segments, step.want) {
			t.Fatalf("step %d: segments %d, want %d: %v", i, segments, step.want, err)
		}
	}
	checkChain(t, OS(), o.Dir, nil)
}

// The successor shows the head that convicts the chain it follows.
func TestSuccessorShowsWitnessHead(t *testing.T) {
	o, _ := grown(t, 3)
	o.KeptHeads = func() (uint64, []byte, error) { return 9, []byte("origin\n9\nroot\n\n— w sig\n"), nil }
	c := openAt(t, o)
	if _, ok := c.Predecessor(); !ok {
		t.Fatal("no successor opened")
	}
	line, err := c.Line(0)
	if err != nil {
		t.Fatal(err)
	}
	env, err := receipts.ParseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	s, err := receipts.ParseStatement(env.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Text("witnessHead"); got != "origin\n9\nroot\n\n— w sig\n" {
		t.Errorf("witnessHead %q", got)
	}
}

package tlog_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
)

func TestTilePath(t *testing.T) {
	for _, c := range []struct {
		id    tlog.TileID
		width int
		path  string
	}{
		{tlog.TileID{Level: 0, Index: 0}, 256, "tile/0/000"},
		{tlog.TileID{Level: 0, Index: 1067}, 5, "tile/0/x001/067.p/5"},
		{tlog.TileID{Level: 2, Index: 1234067}, 256, "tile/2/x001/x234/067"},
		{tlog.TileID{Level: 63, Index: 1000000}, 255, "tile/63/x001/x000/000.p/255"},
		{tlog.TileID{Level: tlog.EntriesLevel, Index: 999}, 1, "tile/entries/999.p/1"},
		{tlog.TileID{Level: 0, Index: math.MaxInt64}, 256, "tile/0/x009/x223/x372/x036/x854/x775/807"},
	} {
		if got := c.id.Path(c.width); got != c.path {
			t.Errorf("%v is at %q, want %q", c.id, got, c.path)
		}
		if id, width, err := tlog.ParseTilePath(c.path); id != c.id || width != c.width || err != nil {
			t.Errorf("%q: %v, %d, %v", c.path, id, width, err)
		}
	}
}

func TestBadTilePath(t *testing.T) {
	for _, p := range []string{
		"", "tile", "tile/", "tile/0", "tile/0/", "tile/0/0", "tile/0/00", "tile/0/0000", "tile/00/000", "tile/64/000",
		"tile/-1/000", "tile/+1/000", "tile/0/x000/000", "tile/0/001/000", "tile/0/x001/x000", "tile/0/x1/000",
		"tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/05", "tile/0/000.p/", "tile/0/000.p/1/", "tile/0/000/", "/tile/0/000",
		"tile/entries/x000", "tile/Entries/000", "tile/0/../000", "tile/0/000.p/+5", "tile/0/ 00", "tile/data/000",
		"tile/0/x999/x999/x999/x999/x999/x999/x999/999",
	} {
		if id, width, err := tlog.ParseTilePath(p); err == nil {
			t.Errorf("%q: accepted as %v of width %d", p, id, width)
		}
	}
}

func FuzzTilePath(f *testing.F) {
	for _, p := range []string{"tile/0/x001/067.p/5", "tile/entries/000", "tile/63/x001/x000/000.p/255", "tile/0/x0x1/067"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		id, width, err := tlog.ParseTilePath(p)
		if err != nil {
			return
		}
		sameBytes(t, []byte(p), []byte(id.Path(width)))
		if width < 1 || width > tlog.TileWidth || id.Level < tlog.EntriesLevel || id.Level > 63 {
			t.Fatalf("%q: %v of width %d", p, id, width)
		}
	})
}

// The example of C2SP tlog-tiles: a tree of 70,000 leaves, and one of 256.
func TestWidthAt(t *testing.T) {
	for _, c := range []struct {
		level int
		index uint64
		size  uint64
		want  int
	}{
		{0, 272, 70_000, 256}, {0, 273, 70_000, 112}, {0, 274, 70_000, 0},
		{1, 0, 70_000, 256}, {1, 1, 70_000, 17}, {1, 2, 70_000, 0},
		{2, 0, 70_000, 1}, {2, 1, 70_000, 0}, {3, 0, 70_000, 0},
		{0, 0, 256, 256}, {0, 1, 256, 0}, {1, 0, 256, 1},
		{0, 0, 0, 0}, {7, 0, tlog.MaxSize, 127}, {8, 0, tlog.MaxSize, 0}, {63, 0, math.MaxUint64, 0},
		{tlog.EntriesLevel, 273, 70_000, 112}, {tlog.EntriesLevel, 272, 70_000, 256},
	} {
		if got := tlog.WidthAt(tlog.TileID{Level: c.level, Index: c.index}, c.size); got != c.want {
			t.Errorf("level %d, index %d, size %d: width %d, want %d", c.level, c.index, c.size, got, c.want)
		}
	}
}

func TestBundle(t *testing.T) {
	entries := [][]byte{[]byte("one"), {}, bytes.Repeat([]byte("x"), 65_535)}
	var b []byte
	for _, e := range entries {
		var err error
		if b, err = tlog.AppendBundle(b, e); err != nil {
			t.Fatal(err)
		}
	}
	got, err := tlog.SplitBundle(b)
	if err != nil || len(got) != len(entries) {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i, e := range entries {
		sameBytes(t, e, got[i])
	}
	if after, err := tlog.AppendBundle([]byte("dst"), make([]byte, 65_536)); err == nil || string(after) != "dst" {
		t.Errorf("an entry too long: %q, %v", after, err)
	}
	for name, bad := range map[string]string{
		"empty": "", "half a length": "\x00", "short entry": "\x00\x02a", "trailing": "\x00\x01a\x00",
		"257 entries": strings.Repeat("\x00\x00", 257),
	} {
		if _, err := tlog.SplitBundle([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzBundle(f *testing.F) {
	f.Add([]byte("\x00\x03one\x00\x00"))
	f.Add([]byte("\xff\xffx"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := tlog.SplitBundle(b)
		if err != nil {
			return
		}
		var again []byte
		for _, e := range entries {
			if again, err = tlog.AppendBundle(again, e); err != nil {
				t.Fatal(err)
			}
		}
		sameBytes(t, b, again)
	})
}

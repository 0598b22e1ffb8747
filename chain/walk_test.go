package chain

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"toolguardian/receipts"
)

// splitLines is eachLine by other means.
func splitLines(b []byte) []string {
	var out []string
	for line := range bytes.Lines(b) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		out = append(out, string(line[:min(len(line), receipts.MaxLine+1)]))
	}
	return out
}

// FuzzEachLine: an "L" stands for a stretch that is as long as a line may be,
// an "M" for one that is longer than the buffer.
func FuzzEachLine(f *testing.F) {
	for _, s := range []string{"", "\n", "a", "a\n", "L\nLa\nLaa\n", "M\nM", "M\n\n", "LLLLL\na", "aL\nbL\ncL\ndL\neL\n"} {
		f.Add([]byte(s))
	}
	stretch := strings.NewReplacer("L", strings.Repeat("l", receipts.MaxLine), "M", strings.Repeat("m", readSize+1))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 64 {
			b = b[:64]
		}
		text := []byte(stretch.Replace(string(b)))
		var got []string
		err := eachLine(bytes.NewReader(text), 0, int64(len(text)), func(line []byte, at int64) bool {
			if at > 0 && text[at-1] != '\n' {
				t.Errorf("offset %d begins no line", at)
			}
			got = append(got, string(line))
			return true
		})
		if err != nil || !slices.Equal(got, splitLines(text)) {
			t.Errorf("%d lines, want %d: %v", len(got), len(splitLines(text)), err)
		}
	})
}

// Halving a segment finds each line where counting finds it, also where
// damage leaves nothing to go by.
func TestFind(t *testing.T) {
	d, o := recorded(t, 0)
	grow(t, o, 1500)
	l := layout{d, "/e"}
	n := nodeOf(t, d, l.segment(0))
	if len(n.data) < 4*nearEnough {
		t.Fatalf("a segment of %d bytes is not halved", len(n.data))
	}
	lines := bytes.Split(n.data, []byte("\n"))
	check := func() {
		t.Helper()
		for seq := 0; seq <= 1500; seq += 13 {
			at, err := l.find(uint64(seq))
			if err != nil || !bytes.Equal(at.line, lines[seq]) {
				t.Fatalf("line %d: found another at %d: %v", seq, at.off, err)
			}
		}
		if _, err := l.find(1501); !errors.Is(err, ErrNotFound) {
			t.Errorf("line behind the last: %v", err)
		}
	}
	check()
	middle := bytes.Index(n.data[len(n.data)/2:], []byte("\n")) + len(n.data)/2
	for i := middle + 1; i < middle+4000; i++ {
		if n.data[i] != '\n' {
			n.data[i] = 'x'
		}
	}
	lines = bytes.Split(n.data, []byte("\n"))
	check()
}

// FuzzSaltFile: whatever the records are, a search ends, and what it finds is
// what was written.
func FuzzSaltFile(f *testing.F) {
	var good []byte
	for seq := range uint64(6) {
		good = appendRecord(good, saltKey{seq, receipts.FieldArgsSent}, [32]byte{byte(seq)})
		good = appendRecord(good, saltKey{seq, receipts.FieldResultReceived}, [32]byte{byte(seq), 1})
	}
	f.Add(uint16(0), []byte{}, uint8(3))
	f.Add(uint16(80), make([]byte, 160), uint8(5))
	f.Add(uint16(200), []byte{1}, uint8(2))
	f.Fuzz(func(t *testing.T, off uint16, over []byte, seq uint8) {
		b := bytes.Clone(good)
		copy(b[min(int(off), len(b)):], over)
		s := saltFile{bytes.NewReader(b), len(b) / recordSize}
		k := saltKey{uint64(seq % 6), receipts.FieldArgsSent}
		at := int(k.seq) * 2 * recordSize
		intact := bytes.Equal(b[at:at+recordSize], good[at:at+recordSize])
		salt, err := s.find(k)
		switch {
		case intact && (err != nil || salt != [32]byte{seq % 6}):
			t.Errorf("intact salt of line %d: %x %v", k.seq, salt[:2], err)
		case !intact && err == nil:
			t.Errorf("found a salt whose record is damaged")
		case err != nil && !errors.Is(err, ErrErased) && !errors.Is(err, ErrNotFound):
			t.Errorf("damage is told as %v", err)
		}
	})
}

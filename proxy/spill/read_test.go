package spill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func read(t *testing.T, s *Store, q Query) Answer {
	t.Helper()
	a, err := s.Read(t.Context(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	if n := utf8.RuneCountInString(a.Text); n > MaxChars || a.Lines > MaxLines {
		t.Errorf("%+v: %d characters in %d lines", q, n, a.Lines)
	}
	return a
}

func TestWindow(t *testing.T) {
	s := store(t, Options{})
	id := put(t, s, numbered(3000))
	whole := strings.Split(numbered(3000), "\n")
	for _, tt := range []struct {
		start, max                  int
		first, last, next, total, n int
	}{
		{0, 0, 1, 400, 401, 0, 400},
		{401, 0, 401, 800, 801, 0, 400},
		{-5, -5, 1, 400, 401, 0, 400},
		{2999, 0, 2999, 3000, 0, 3000, 2},
		{3001, 0, 0, 0, 0, 3000, 0},
		{2, 1, 2, 2, 3, 0, 1},
		{1, 9_999_999, 1, 2000, 2001, 0, 2000},
	} {
		a := read(t, s, Query{ID: " " + id + "\n", Start: tt.start, Max: tt.max})
		if a.First != tt.first || a.Last != tt.last || a.Next != tt.next || a.Total != tt.total || a.Lines != tt.n {
			t.Errorf("%+v: %d to %d, next %d, total %d, lines %d", tt, a.First, a.Last, a.Next, a.Total, a.Lines)
		}
		if tt.n > 0 && a.Text != strings.Join(whole[tt.first-1:tt.last], "\n") {
			t.Errorf("%+v: %.100q", tt, a.Text)
		}
	}
	short := put(t, s, strings.Repeat("\n", 5000))
	if a := read(t, s, Query{ID: short, Max: 5000}); a.Lines != MaxLines || a.Next != MaxLines+1 {
		t.Errorf("%d lines, next %d", a.Lines, a.Next)
	}
	if a := read(t, s, Query{ID: put(t, s, "")}); a != (Answer{}) {
		t.Errorf("an empty text has %+v", a)
	}
}

// Following Next to the end gives the whole text, whatever its lines.
func TestWindowsMakeUpTheWhole(t *testing.T) {
	s := store(t, Options{})
	for _, text := range []string{
		numbered(5000), "a\r\n\r\nb", strings.Repeat("ü", 50_001) + "\n\n" + strings.Repeat("x", LinePiece) + "\nz",
		strings.Repeat("😀", 3*LinePiece), strings.Repeat("\xff", 5000) + "\n\x80", "\n\n",
	} {
		id := put(t, s, text)
		var pieces []string
		for q := (Query{ID: id}); ; {
			a := read(t, s, q)
			if a.Lines > 0 {
				pieces = append(pieces, strings.Split(a.Text, "\n")...)
			}
			if q.Start = a.Next; a.Next == 0 {
				break
			}
		}
		flat := func(s string) string { return strings.ReplaceAll(s, "\n", "") }
		if got := strings.Join(pieces, ""); got != flat(text) {
			t.Errorf("%.20q: %d bytes, want %d", text, len(got), len(flat(text)))
		}
		for _, p := range pieces {
			if utf8.ValidString(text) && (!utf8.ValidString(p) || utf8.RuneCountInString(p) > LinePiece) {
				t.Errorf("%.20q: a piece of %d, valid %v", text, utf8.RuneCountInString(p), utf8.ValidString(p))
			}
		}
	}
}

func TestGiantLineOfOneAndAHalfMegabytes(t *testing.T) {
	s := store(t, Options{})
	id := put(t, s, strings.Repeat("abcde", 300_000))
	if a := read(t, s, Query{ID: id, Max: 1}); len(a.Text) != LinePiece || a.Next != 2 {
		t.Errorf("%d characters, next %d", len(a.Text), a.Next)
	}
	if a := read(t, s, Query{ID: id}); a.Lines != 9 || a.Next != 10 {
		t.Errorf("%d lines, next %d", a.Lines, a.Next)
	}
	if a := read(t, s, Query{ID: id, Start: 749}); a.Last != 750 || a.Total != 750 {
		t.Errorf("%+v", a)
	}
}

func TestGrep(t *testing.T) {
	s := store(t, Options{})
	id := put(t, s, numbered(3000)+"An ERROR: x(1)\r\n")
	for _, tt := range []struct {
		q    Query
		text string
		next int
	}{
		{Query{Grep: "error"}, "3001: An ERROR: x(1)\r", 0},
		{Query{Grep: `X\(\d\)$`}, "3001: An ERROR: x(1)\r", 0},
		{Query{Grep: "^line 29[89]$"}, "298: line 298\n299: line 299", 0},
		{Query{Grep: "7$", Max: 2}, "7: line 7\n17: line 17", 27},
		{Query{Grep: "7$", Max: 1, Start: 27}, "27: line 27", 37},
		{Query{Grep: "a|b|line 5$"}, "5: line 5\n3001: An ERROR: x(1)\r", 0},
		{Query{Grep: "nowhere"}, "", 0},
	} {
		tt.q.ID = id
		a := read(t, s, tt.q)
		if a.Text != tt.text || a.Next != tt.next {
			t.Errorf("%+v: %q, next %d", tt.q, a.Text, a.Next)
		}
	}
	if a := read(t, s, Query{ID: id, Grep: "line"}); a.Lines != 400 || a.Next != 401 {
		t.Errorf("%d lines, next %d", a.Lines, a.Next)
	}
	if a := read(t, s, Query{ID: id, Grep: "nowhere"}); a.Total != 3001 {
		t.Errorf("searched %d lines", a.Total)
	}
}

func TestGrepFindsWhatLiesAcrossPieces(t *testing.T) {
	s := store(t, Options{})
	id := put(t, s, strings.Repeat("x", LinePiece-3)+"needle"+strings.Repeat("y", 9_000)+"\nneed\nle")
	a := read(t, s, Query{ID: id, Grep: "NEEDLE"})
	if a.Lines != 1 || !strings.HasPrefix(a.Text, "1: xxx") {
		t.Errorf("%d lines: %.60q", a.Lines, a.Text)
	}
	if a := read(t, s, Query{ID: id, Grep: "yyy"}); a.First != 2 || a.Last != 6 {
		t.Errorf("%d to %d", a.First, a.Last)
	}
}

func TestRefusalsAreSentences(t *testing.T) {
	s := store(t, Options{Keep: 7})
	id := put(t, s, "text")
	damaged := put(t, s, "another text")
	if err := os.Truncate(filepath.Join(s.o.Dir, damaged+".txt"), 3); err != nil {
		t.Fatal(err)
	}
	missing := put(t, s, "a third")
	if err := os.Remove(filepath.Join(s.o.Dir, missing+".txt")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		q    Query
		is   error
		says string
	}{
		{Query{ID: ""}, ErrID, "sp_ and 12 hex"},
		{Query{ID: "../" + id}, ErrID, "sp_ and 12 hex"},
		{Query{ID: id + ".txt"}, ErrID, "sp_ and 12 hex"},
		{Query{ID: strings.ToUpper(id)}, ErrID, "sp_ and 12 hex"},
		{Query{ID: "sp_000000000000"}, ErrGone, "newest 7 are kept. Call the tool again"},
		{Query{ID: id, Grep: "("}, ErrPattern, "missing closing )"},
		{Query{ID: id, Grep: "a(?=b)"}, ErrPattern, "RE2"},
		{Query{ID: id, Grep: strings.Repeat("a", 1001)}, ErrPattern, "at most 1000"},
		{Query{ID: damaged}, ErrDamaged, "3 bytes are there, 12 were written"},
		{Query{ID: missing}, ErrGone, "newest 7 are kept. Call the tool again"},
	} {
		if a, err := s.Read(t.Context(), tt.q); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) || a != (Answer{}) {
			t.Errorf("%+v: %v", tt.q, err)
		}
	}
	if _, err := store(t, Options{}).Read(t.Context(), Query{ID: id}); !errors.Is(err, ErrGone) {
		t.Errorf("no folder: %v", err)
	}
}

func TestSearchEndsWithItsCaller(t *testing.T) {
	s := store(t, Options{})
	id := put(t, s, numbered(5000))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Read(ctx, Query{ID: id, Grep: "nowhere"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a\nb", "a", 0, 0)
	f.Add(strings.Repeat("ü", 5000)+"\n\r\n\xff", "ü$|^$", 2, 3)
	s := store(f, Options{Keep: 2})
	f.Fuzz(func(t *testing.T, text, grep string, start, max int) {
		a, err := s.Read(t.Context(), Query{ID: put(t, s, text), Grep: grep, Start: start, Max: max})
		if err != nil {
			if !errors.Is(err, ErrPattern) {
				t.Fatal(err)
			}
			return
		}
		if utf8.RuneCountInString(a.Text) > MaxChars || a.Lines > MaxLines || a.Next > 0 && a.Next < start {
			t.Fatalf("%d characters, %d lines, next %d", utf8.RuneCountInString(a.Text), a.Lines, a.Next)
		}
		if grep == "" && a.Next == 0 && start <= 1 && strings.ReplaceAll(a.Text, "\n", "") != strings.ReplaceAll(text, "\n", "") {
			t.Fatalf("%q became %q", text, a.Text)
		}
	})
}

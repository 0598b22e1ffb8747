package spill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Query is what to read of an original.
type Query struct {
	ID    string
	Grep  string // an RE2 pattern, whatever the case; empty: every line
	Start int    // the first line, from 1; 0: 1
	Max   int    // lines; 0: 400; never more than MaxLines
}

// Bounds of one answer. A line longer than LinePiece characters counts, and
// is numbered, as pieces of that length.
const (
	DefaultLines = 400
	MaxLines     = 2_000
	MaxChars     = 20_000
	LinePiece    = 2_000
	maxPattern   = 1_000 // characters of a pattern
)

// Answer is a part of an original.
type Answer struct {
	Text  string // the lines; with Grep each as "12: the line"
	First int    // number of the first line in Text; 0: none
	Last  int
	Lines int // in Text
	Next  int // where to go on; 0: that was all
	Total int // lines of the original; 0 where it was not read to its end
}

// Read reads a window of an original, or its lines that match a pattern. An
// error wraps ErrID, ErrGone, ErrPattern or ErrDamaged where it is one of
// those, and says in a sentence what to do.
func (s *Store) Read(ctx context.Context, q Query) (Answer, error) {
	id := strings.TrimSpace(q.ID)
	if !ValidID(id) {
		return Answer{}, fmt.Errorf("%w: %.40q. It is sp_ and 12 hex digits, as in the line above a shortened result", ErrID, q.ID)
	}
	match, err := pattern(q.Grep)
	if err != nil {
		return Answer{}, err
	}
	f, err := s.open(id)
	if err != nil {
		return Answer{}, err
	}
	defer f.Close()
	w := window{q: q, match: match}
	w.q.Start = max(q.Start, 1)
	if w.q.Max <= 0 {
		w.q.Max = DefaultLines
	}
	w.q.Max = min(w.q.Max, MaxLines)
	if err := w.read(ctx, f); err != nil {
		return Answer{}, err
	}
	return w.answer(), nil
}

func pattern(p string) (*regexp.Regexp, error) {
	if p == "" {
		return nil, nil
	}
	if len(p) > maxPattern {
		return nil, fmt.Errorf("%w: it has %d bytes. Use at most %d", ErrPattern, len(p), maxPattern)
	}
	if _, err := regexp.Compile(p); err != nil {
		return nil, fmt.Errorf(`%w: %w. Use RE2 syntax, and a \ before what stands for itself, like \( and \[ do`, ErrPattern, err)
	}
	return regexp.Compile("(?i:" + p + ")")
}

// open opens an original's text, if it is as it was written.
func (s *Store) open(id string) (*os.File, error) {
	a, err := s.about(id)
	var f *os.File
	if err == nil {
		f, err = os.Open(filepath.Join(s.o.Dir, id+".txt"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s may have been pruned, as the newest %d are kept. Call the tool again", ErrGone, id, s.o.Keep)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() == int64(a.TextBytes) {
		return f, nil
	}
	f.Close()
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %s: %d bytes are there, %d were written. Call the tool again", ErrDamaged, id, info.Size(), a.TextBytes)
}

// window gathers an answer line by line.
type window struct {
	q     Query
	match *regexp.Regexp

	out         strings.Builder
	chars       int // of out
	number      int // lines read
	first, last int
	lines       int
	next        int
	ended       bool // the original was read to its end
}

// checkEvery is after how many lines a cancelled search ends.
const checkEvery = 1_000

func (w *window) read(ctx context.Context, f io.Reader) error {
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 16<<10), 4*(LinePiece+overlap)+2)
	p := pieceReader{}
	in.Split(p.split)
	for in.Scan() {
		if w.number++; w.number%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.number < w.q.Start {
			continue
		}
		if !w.take(in.Text(), p.ahead) {
			w.next = w.number
			return nil
		}
	}
	w.ended = in.Err() == nil
	return in.Err()
}

// take adds a line, and says no if there is no more room. The characters
// ahead are those that follow a piece of a long line, so that what lies across
// its end is found.
func (w *window) take(line string, ahead []byte) bool {
	if w.match != nil {
		if !w.found(line, ahead) {
			return true
		}
		line = strconv.Itoa(w.number) + ": " + line
	}
	n := chars(line) + 1
	if w.lines == w.q.Max || w.chars+n > MaxChars {
		return false
	}
	if w.lines > 0 {
		w.out.WriteByte('\n')
	}
	w.out.WriteString(line)
	w.chars += n
	w.lines++
	w.last = w.number
	if w.first == 0 {
		w.first = w.number
	}
	return true
}

// found says that a match begins in the line.
func (w *window) found(line string, ahead []byte) bool {
	if len(ahead) == 0 {
		return w.match.MatchString(strings.TrimSuffix(line, "\r"))
	}
	at := w.match.FindStringIndex(line + string(ahead))
	return at != nil && (at[0] < len(line) || at[1] <= len(line))
}

func (w *window) answer() Answer {
	a := Answer{Text: w.out.String(), First: w.first, Last: w.last, Lines: w.lines, Next: w.next}
	if w.ended {
		a.Total = w.number
	}
	return a
}

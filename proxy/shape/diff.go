package shape

import (
	"fmt"
	"strconv"
	"strings"
)

// diff shortens a unified diff: every line stays but the context that is
// further than diff_context_lines from a change. It says no to what is not
// mostly a diff, such as a log with one in it.
func (l *Ladder) diff(text string) (string, bool) {
	if !strings.Contains(text, "@@ -") {
		return "", false
	}
	d := differ{o: &l.o}
	d.out.Grow(len(text))
	for line := range strings.Lines(text) {
		d.line(line)
	}
	d.flush(false)
	return d.out.String(), d.isDiff()
}

// differ reads a diff line by line.
type differ struct {
	o   *Options
	out strings.Builder

	hunk    hunk
	context []string // of this hunk, not yet written: it may be dropped
	after   int      // how much of the context follows a change directly

	lines, inside int // of the text, of hunks and their headers
	hunks         int
	minus, plus   bool // the last lines were --- and +++
	starts        bool // a diff or a commit begins in the first lines
}

// hunk is what a hunk header promises and has not been seen yet.
type hunk struct {
	old, new int
	parents  int // of a merge's combined diff; 0: no hunk
}

// startLines is how far into the text a diff may begin behind other lines.
const startLines = 10

func (d *differ) line(raw string) {
	d.lines++
	plain := raw
	if strings.IndexByte(raw, '\x1b') >= 0 {
		plain, _ = stripANSI(raw)
	}
	if d.hunk.parents > 0 && d.body(plain) {
		d.inside++
		return
	}
	d.flush(false)
	d.hunk = hunk{}
	d.header(plain)
	d.write(plain)
}

// header reads a line outside of hunks.
func (d *differ) header(line string) {
	if d.lines <= startLines && beginsDiff(line) {
		d.starts = true
	}
	switch {
	case strings.HasPrefix(line, "--- "):
		d.minus, d.plus = true, false
		d.inside++
	case d.minus && strings.HasPrefix(line, "+++ "):
		d.plus = true
		d.inside++
	case strings.HasPrefix(line, "diff "):
		d.minus, d.plus = false, false
		d.inside++
	case d.plus && strings.HasPrefix(line, "@@"):
		if h, ok := parseHunk(line); ok {
			d.hunk = h
			d.hunks++
			d.inside++
		}
	}
}

// beginsDiff says that a diff or a commit begins with the line.
func beginsDiff(line string) bool {
	for _, p := range []string{"diff --git ", "diff -", "--- ", "Index: ", "commit ", "From "} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}

// isDiff asks for a hunk below its file's two lines, and that the diff is
// what the text is about: it begins with it, or is half of it.
func (d *differ) isDiff() bool {
	return d.hunks > 0 && (d.starts || 2*d.inside >= d.lines)
}

// parseHunk reads "@@ -1,2 +3,4 @@", and "@@@ -1 -1 +1,2 @@@" of a merge.
func parseHunk(line string) (hunk, bool) {
	parents := 0
	for parents < len(line) && line[parents] == '@' {
		parents++
	}
	fence := line[:parents]
	parents--
	ranges, _, found := strings.Cut(line[len(fence):], " "+fence)
	fields := strings.Fields(ranges)
	if !found || parents < 1 || len(fields) != parents+1 {
		return hunk{}, false
	}
	h := hunk{parents: parents}
	for i, f := range fields {
		n, ok := rangeLen(f, "-+"[boolInt(i == parents)])
		if !ok {
			return hunk{}, false
		}
		if i < parents {
			h.old = max(h.old, n)
		} else {
			h.new = n
		}
	}
	return h, true
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rangeLen reads how many lines "-1,2" has: one if it does not say.
func rangeLen(s string, sign byte) (int, bool) {
	if s == "" || s[0] != sign {
		return 0, false
	}
	at, count, given := strings.Cut(s[1:], ",")
	if !given {
		count = "1"
	}
	_, err1 := strconv.ParseUint(at, 10, 31)
	n, err2 := strconv.ParseUint(count, 10, 31)
	return int(n), err1 == nil && err2 == nil
}

// body takes a line of the hunk, and says no to one that is not of it.
func (d *differ) body(line string) bool {
	if strings.HasPrefix(line, `\ `) { // no newline at end of file
		d.change(line, true)
		return true
	}
	if d.hunk.parents > 1 {
		return d.combined(line)
	}
	if d.hunk.old <= 0 && d.hunk.new <= 0 {
		return false
	}
	switch kind := firstByte(line); kind {
	case '+', '-':
		if kind == '+' {
			d.hunk.new--
		} else {
			d.hunk.old--
		}
		d.change(line, false)
	case ' ', '\n', '\r', 0: // an empty line is context whose blank was lost
		d.hunk.old--
		d.hunk.new--
		d.keep(line)
	default:
		return false
	}
	return true
}

// combined takes a line of a merge's hunk: a column for each parent.
func (d *differ) combined(line string) bool {
	columns := line[:min(len(line), d.hunk.parents)]
	if len(columns) < d.hunk.parents || strings.Trim(columns, " +-") != "" {
		return false
	}
	if strings.Trim(columns, " ") == "" {
		d.keep(line)
	} else {
		d.change(line, false)
	}
	return true
}

func firstByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[0]
}

// keep holds a context line back until it is known what follows.
func (d *differ) keep(line string) {
	d.context = append(d.context, line)
}

// change writes a changed line, with the context before it. A note to the
// line before, which note says, needs none.
func (d *differ) change(line string, note bool) {
	d.flush(true)
	d.write(line)
	if !note || d.after > 0 {
		d.after = d.o.DiffContextLines
	}
}

// flush writes what is to be shown of the context held back: what follows a
// change and, where another one comes, what precedes it.
func (d *differ) flush(before bool) {
	lead, trail := min(d.after, len(d.context)), 0
	if before {
		trail = min(d.o.DiffContextLines, len(d.context)-lead)
	}
	for _, line := range d.context[:lead] {
		d.write(line)
	}
	d.gap(d.context[lead : len(d.context)-trail])
	for _, line := range d.context[len(d.context)-trail:] {
		d.write(line)
	}
	d.context, d.after = d.context[:0], 0
}

// gap says how many lines are left out, or shows them if that is shorter.
func (d *differ) gap(dropped []string) {
	if len(dropped) == 0 {
		return
	}
	note, n := fmt.Sprintf("[%d unchanged]\n", len(dropped)), 0
	for _, line := range dropped {
		if n += len(line); n > 2*len(note) {
			d.out.WriteString(note)
			return
		}
	}
	for _, line := range dropped {
		d.write(line)
	}
}

// write writes a line, its end included. One that is longer than a long line
// may be, such as that of a bundle, is shortened in its middle.
func (d *differ) write(line string) {
	most := d.o.CharHead + d.o.CharTail
	if len(line) <= most {
		d.out.WriteString(line)
		return
	}
	body, ended := strings.CutSuffix(line, "\n")
	d.out.WriteString(d.o.bound(body, most))
	if ended {
		d.out.WriteByte('\n')
	}
}

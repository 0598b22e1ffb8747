package shape

import (
	"fmt"
	"slices"
	"strings"
)

// shell shows the first and the last lines, and of those between them samples
// evenly apart and every one that matters, each with its number. A text with
// too few lines for that has only its long ones shortened.
func (l *Ladder) shell(text string, number int) (string, Rule) {
	v := view{o: &l.o, total: lines(text), number: number}
	v.between = v.total - l.o.ShellHeadLines - l.o.ShellTailLines
	if v.between <= l.o.ShellSampleLines {
		v.between = 0
	}
	i := 0
	for line := range strings.Lines(text) {
		v.line(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), i)
		i++
	}
	out, cut := v.String()
	if !strings.HasSuffix(text, "\n") {
		out = strings.TrimSuffix(out, "\n")
	}
	if v.between == 0 && !cut {
		return "", ""
	}
	return out, RuleShell
}

// view picks what is shown of a text's lines.
type view struct {
	o       *Options
	total   int // lines
	between int // lines that are not all shown; 0: all are
	number  int // of the next line

	shown   []shownLine
	sampled int
	errors  int
	late    []shownLine // the last errors, behind the first ones
}

type shownLine struct {
	text   string
	number int
	part   part
}

type part int

const (
	inHead part = iota
	inBetween
	inTail
)

// keptErrors is how many error lines of the middle are shown from its
// beginning, and how many from its end.
const keptErrors = 10

func (v *view) line(raw string, i int) {
	number := v.number
	v.number += pieces(raw)
	switch {
	case v.between == 0 || i < v.o.ShellHeadLines:
		v.show(raw, number, inHead)
	case i >= v.total-v.o.ShellTailLines:
		v.show(raw, number, inTail)
	case i == v.sampleAt():
		v.sampled++
		v.show(raw, number, inBetween)
	case isMarker(raw):
		v.show(raw, number, inBetween)
	case isError(raw):
		v.error(raw, number)
	}
}

// sampleAt is which line the next sample is: the middle of its share.
func (v *view) sampleAt() int {
	n := v.o.ShellSampleLines
	if v.sampled >= n {
		return -1
	}
	return v.o.ShellHeadLines + (2*v.sampled+1)*v.between/(2*n)
}

func (v *view) show(raw string, number int, p part) {
	v.shown = append(v.shown, shownLine{strings.TrimRight(raw, " \t\r"), number, p})
}

// error shows an error line, and of those behind the first ones only the last.
func (v *view) error(raw string, number int) {
	if v.errors++; v.errors <= keptErrors {
		v.show(raw, number, inBetween)
		return
	}
	if len(v.late) == keptErrors {
		v.late = append(v.late[:0], v.late[1:]...)
	}
	v.late = append(v.late, shownLine{raw, number, inBetween})
}

// merge puts the last errors where they belong among the lines shown.
func (v *view) merge() {
	for _, s := range v.late {
		v.show(s.text, s.number, s.part)
	}
	slices.SortStableFunc(v.shown, func(a, b shownLine) int { return a.number - b.number })
}

// mostOfLine is how much is shown of a line: long ones share what a single
// one would get.
func (v *view) mostOfLine() int {
	long := 0
	for _, s := range v.shown {
		if len(s.text) > maxLine {
			long++
		}
	}
	return max(maxLine, (v.o.CharHead+v.o.CharTail)/max(long, 1))
}

// String writes the lines shown, and says whether one of them was shortened.
func (v *view) String() (out string, cut bool) {
	v.merge()
	most := v.mostOfLine()
	var b strings.Builder
	at := inHead
	for _, s := range v.shown {
		for ; at < s.part; at++ {
			v.title(&b, at)
		}
		text := v.o.bound(s.text, most)
		cut = cut || len(s.text) > most && len(text) != len(s.text)
		if s.part == inBetween {
			fmt.Fprintf(&b, "%d: ", s.number)
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	for ; v.between > 0 && at < inTail; at++ {
		v.title(&b, at)
	}
	return b.String(), cut
}

// title says what comes after a part.
func (v *view) title(b *strings.Builder, after part) {
	if after == inHead {
		fmt.Fprintf(b, "[%d of %d lines left out but for samples, by line number:]\n", v.between, v.total)
		return
	}
	fmt.Fprintf(b, "[last %s:]\n", size(v.o.ShellTailLines, "line"))
}

// markers begin, in brackets or without, the lines by which tools say how a
// command ended.
var markers = []string{"exit code", "exit status", "exited with", "exit:", "signal:", "timed out", "timeout after", "killed by", "terminated by", "truncated", "output truncated"}

func isMarker(line string) bool {
	line = strings.TrimLeft(line, " \t[(<")
	if len(line) < 5 {
		return false
	}
	for _, m := range markers {
		if len(line) >= len(m) && strings.EqualFold(line[:len(m)], m) {
			return true
		}
	}
	return false
}

// errorWords are looked for as words, in lower case, capitals or with one.
var errorWords = []string{"error", "fatal", "panic", "failed", "failure", "exception", "traceback"}

// isError says that a line reports an error: it has one of the words, not as
// a part of a path, a name or another word. Only a line's beginning is read.
func isError(line string) bool {
	line = line[:min(len(line), 4*maxLine)]
	for i := 0; i < len(line); i++ {
		switch line[i] | 0x20 {
		case 'e', 'f', 'p', 't':
			if n := errorWord(line[i:]); n > 0 && stands(line, i, i+n) {
				return true
			}
		}
	}
	return false
}

func errorWord(s string) int {
	for _, w := range errorWords {
		if len(s) >= len(w) && strings.EqualFold(s[:len(w)], w) {
			return len(w)
		}
	}
	return 0
}

// stands says that a word is one: nothing is grown to it, but a name may end
// with it before a colon, as in "TypeError: ".
func stands(line string, from, to int) bool {
	after := byte(' ')
	if to < len(line) {
		after = line[to]
	}
	if after == ':' && (to+1 == len(line) || line[to+1] == ' ') {
		return true
	}
	return (from == 0 || !nameByte(line[from-1])) && !nameByte(after)
}

func nameByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '/' || c == '\\' || c == '.' || c >= 0x80
}

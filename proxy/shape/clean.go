package shape

import (
	"fmt"
	"strings"
)

// minSaved is how many characters cleaning must save before more than
// colours and carriage returns is taken away: less is not worth the line that
// says so.
const minSaved = 200

// minRepeats is from how many equal lines on one is shown with their number.
const minRepeats = 3

// clean takes away what carries nothing. A JSON text keeps its lines, since
// it would be none without them.
func (l *Ladder) clean(text string, total int) Result {
	light, osc := stripANSI(text)
	light = strings.ReplaceAll(light, "\r\n", "\n")
	if !isJSON(light) {
		if full := tidy(light); chars(full)+minSaved <= min(chars(light), total) {
			return Result{Text: full, Rule: RuleClean, Lossy: true}
		}
	}
	if len(light) == len(text) {
		return Result{Text: text, Rule: RuleUnchanged}
	}
	return Result{Text: light, Rule: RuleClean, Lossy: osc}
}

// lightly takes away colours alone: a diff's blanks and returns are part of it.
func lightly(text string) Result {
	light, osc := stripANSI(text)
	if len(light) == len(text) {
		return Result{Text: text, Rule: RuleUnchanged}
	}
	return Result{Text: light, Rule: RuleClean, Lossy: osc}
}

func isJSON(s string) bool {
	s = strings.TrimSpace(s)
	if s == "" || s[0] != '{' && s[0] != '[' {
		return false
	}
	var k skimmer
	return k.skim(s)
}

// tidy takes away padding at line ends, writes repeated lines once with their
// number and runs of blank lines as one.
func tidy(s string) string {
	body, ended := strings.CutSuffix(s, "\n")
	t := tidier{}
	t.out.Grow(len(s))
	for line := range strings.SplitSeq(body, "\n") {
		t.line(strings.TrimRight(line, " \t"))
	}
	t.flush()
	if !ended {
		return strings.TrimSuffix(t.out.String(), "\n")
	}
	return t.out.String()
}

type tidier struct {
	out   strings.Builder
	last  string
	times int
}

func (t *tidier) line(line string) {
	if t.times > 0 && line == t.last {
		t.times++
		return
	}
	t.flush()
	t.last, t.times = line, 1
}

func (t *tidier) flush() {
	switch {
	case t.times == 0:
	case t.last == "":
		t.out.WriteByte('\n')
	case t.times >= minRepeats:
		fmt.Fprintf(&t.out, "%s  [x%d]\n", t.last, t.times)
	default:
		for range t.times {
			t.out.WriteString(t.last)
			t.out.WriteByte('\n')
		}
	}
	t.times = 0
}

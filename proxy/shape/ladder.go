package shape

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Rule is which rule decided about a text.
type Rule string

// The rules, in their order.
const (
	RuleExempt    Rule = "exempt"
	RuleError     Rule = "error"
	RuleSmall     Rule = "small"
	RuleDiff      Rule = "diff"
	RuleJSON      Rule = "json"
	RuleCSV       Rule = "csv"
	RuleShell     Rule = "shell"
	RuleLine      Rule = "line"
	RuleClean     Rule = "clean"
	RuleIntent    Rule = "intent"    // parts that match what the model looks for
	RuleUnchanged Rule = "unchanged" // nothing could be made shorter
)

// Result is what became of one text.
type Result struct {
	Text    string
	Rule    Rule
	Changed bool // Text is not what came
	Lossy   bool // more changed than colours and carriage returns
	Shown   int  // characters of Text
	Of      int  // characters of what came
}

// Ladder shapes texts and results. It is safe for concurrent use.
type Ladder struct{ o Options }

// New copies the options and refuses what cannot work.
func New(o Options) (*Ladder, error) {
	o.ExemptTools, o.ShellTools = slices.Clone(o.ExemptTools), slices.Clone(o.ShellTools)
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Ladder{o}, nil
}

// Text shapes one text that a tool answered with. Text that is no UTF-8 and
// has to be shaped is mended with U+FFFD, which counts as lossy.
func (l *Ladder) Text(tool, text string, isError bool) Result {
	return l.text(tool, text, isError, 1)
}

// giantLine is from how many bytes on a single line is not read for being
// UTF-8 as a whole: what is shown of it is mended where it is cut.
const giantLine = 1 << 20

// text shapes a text whose first line has the given number.
func (l *Ladder) text(tool, text string, isError bool, number int) Result {
	if l.o.exempt(tool) {
		return unchanged(text, RuleExempt)
	}
	if len(text) < l.o.CompactAboveChars && !(isError && len(text) > l.o.ErrorSummaryChars) {
		return unchanged(text, RuleSmall)
	}
	whole := text
	if giant := len(text) >= giantLine && oneLine(text); !giant && !utf8.ValidString(text) {
		whole = strings.ToValidUTF8(text, "\uFFFD")
	}
	total := max(chars(whole), len(whole)/utf8.UTFMax) // bytes that are no UTF-8 count too
	r := l.rules(tool, whole, total, isError, number)
	r.Of = total
	if r.Changed = r.Text != whole; !r.Changed {
		r.Text, r.Shown, r.Lossy = text, total, false
		return r
	}
	r.Lossy = r.Lossy || len(whole) != len(text) || whole != text
	if !utf8.ValidString(r.Text) { // of a giant line
		r.Text, r.Lossy = strings.ToValidUTF8(r.Text, "\uFFFD"), true
	}
	r.Shown = chars(r.Text)
	return r
}

func unchanged(text string, rule Rule) Result {
	n := chars(text)
	return Result{Text: text, Rule: rule, Shown: n, Of: n}
}

// rules tries one rule after the other. A rule that matches and does not make
// the text shorter leaves it to the last, which only cleans.
func (l *Ladder) rules(tool, text string, total int, isError bool, number int) Result {
	if isError && total > l.o.ErrorSummaryChars {
		return l.error(text, total)
	}
	if total < l.o.CompactAboveChars {
		return Result{Text: text, Rule: RuleSmall}
	}
	out, rule := l.lossy(tool, text, total, number)
	if rule != "" && chars(out) < total {
		return Result{Text: out, Rule: rule, Lossy: true}
	}
	if rule == RuleDiff {
		return lightly(text)
	}
	return l.clean(text, total)
}

// error shows an error's beginning and end, if that is shorter.
func (l *Ladder) error(text string, total int) Result {
	n := l.o.ErrorSummaryChars
	out := middle(text, total, n-n/3, n/3)
	if len(out) >= len(text) {
		return Result{Text: text, Rule: RuleUnchanged}
	}
	return Result{Text: out, Rule: RuleError, Lossy: true}
}

// lossy is the rules that drop something; "" if none matches.
func (l *Ladder) lossy(tool, text string, total, number int) (string, Rule) {
	single := oneLine(text)
	if !single {
		if out, ok := l.diff(text); ok {
			return out, RuleDiff
		}
	}
	if total >= l.o.StructMinChars && !named(l.o.ShellTools, tool) {
		if out, ok := l.array(text); ok {
			return out, RuleJSON
		}
		if out, ok := l.table(text); ok && !single {
			return out, RuleCSV
		}
	}
	switch {
	case total < l.o.ShellMinChars:
		return "", ""
	case single:
		return middle(text, total, l.o.CharHead, l.o.CharTail), RuleLine
	}
	return l.shell(text, number)
}

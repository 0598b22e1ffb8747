package anchor

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }

// WriteText renders the report for people: the verdict and what it rests on
// first, then the reasons, then what was checked, what was not, and what none
// of it proves. Keys and hashes are abbreviated; the JSON has them whole.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", r.Verdict, r.Target)
	if r.Against != "" {
		fmt.Fprintf(&b, "  against %s", r.Against)
	}
	b.WriteString("\n")
	r.writeSummary(&b)
	r.writeReasons(&b)
	r.writeChecked(&b)
	r.writeUnchecked(&b)
	b.WriteString("What this does not prove:\n")
	for _, line := range r.NotProved {
		fmt.Fprintf(&b, "  - %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) writeSummary(b *strings.Builder) {
	if r.Origin != "" {
		fmt.Fprintf(b, "  origin %s\n", r.Origin)
	}
	if r.Receipts > 0 {
		fmt.Fprintf(b, "  %s: %d witnessed, %d after the last witnessed head\n", counted(r.Receipts, "receipt", "receipts"), r.Witnessed, r.Tail)
	}
	if r.From != nil || r.To != nil {
		fmt.Fprintf(b, "  asked about receipts %s\n", window{r.From, r.To}.text())
	}
	if r.NotAfterBy != nil {
		fmt.Fprintf(b, "  existed by %s\n", r.NotAfterBy.text())
	}
	if r.NotBeforeBy != nil {
		fmt.Fprintf(b, "  made after %s\n", r.NotBeforeBy.text())
	}
	if r.Key != nil {
		fmt.Fprintf(b, "  key %s\n", brief(r.Key.text()))
	}
}

// text says which key, how it is known, and as of what.
func (k *KeyStatus) text() string {
	s := k.Key + ": " + k.State
	if k.Leaf == nil {
		return s + ", as the chain itself tells it"
	}
	s += fmt.Sprintf(", in force by leaf %d at log size %d", *k.Leaf, *k.Checkpoint)
	if k.AsOf != "" {
		s += " of " + k.AsOf
	}
	if k.AgeSeconds != nil {
		s += fmt.Sprintf(" (%s ago)", lasted(time.Duration(*k.AgeSeconds)*time.Second))
	}
	return s + "; a later revocation does not show"
}

func (r Report) writeReasons(b *strings.Builder) {
	for _, f := range r.Reasons {
		f.write(b)
	}
	for _, reason := range Reasons() {
		if n := r.Omitted[reason]; n > 0 {
			fmt.Fprintf(b, "  %s: %d more not listed\n", reason, n)
		}
	}
	if len(r.Outside) > 0 {
		fmt.Fprintf(b, "  outside what was asked about, and not judged here: %s\n", countReasons(r.Outside))
	}
}

// countReasons lists how often each reason stands, in order of weight.
func countReasons(all []Finding) string {
	var words []string
	for _, reason := range Reasons() {
		n := 0
		for _, f := range all {
			if f.Reason == reason {
				n++
			}
		}
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, reason))
		}
	}
	return strings.Join(words, ", ")
}

func (f Finding) write(b *strings.Builder) {
	fmt.Fprintf(b, "  %s", f.Reason)
	switch {
	case f.Index != nil && f.To != nil && *f.To != *f.Index:
		fmt.Fprintf(b, " at %d to %d", *f.Index, *f.To)
	case f.Index != nil:
		fmt.Fprintf(b, " at %d", *f.Index)
	}
	fmt.Fprintf(b, ": %s\n", brief(f.Detail))
	for _, line := range []struct{ name, text string }{{"have", f.Have}, {"want", f.Want}, {"next:", f.Next}} {
		if line.text != "" {
			fmt.Fprintf(b, "      %s %s\n", line.name, line.text)
		}
	}
}

// maxLines of one axis keep a report on many heads readable.
const maxLines = 16

func (r Report) writeChecked(b *strings.Builder) {
	b.WriteString("What was checked:\n")
	for _, a := range r.Axes {
		fmt.Fprintf(b, "  %-13s %s\n", a.Name, a.State)
		for _, line := range a.Checked[:min(len(a.Checked), maxLines)] {
			fmt.Fprintf(b, "    + %s\n", brief(line))
		}
		if more := len(a.Checked) - maxLines; more > 0 {
			fmt.Fprintf(b, "    + %d more, in --json\n", more)
		}
	}
}

func (r Report) writeUnchecked(b *strings.Builder) {
	if !slices.ContainsFunc(r.Axes, func(a Axis) bool { return len(a.NotChecked) > 0 }) {
		return
	}
	b.WriteString("What was not checked:\n")
	for _, a := range r.Axes {
		for _, line := range a.NotChecked {
			fmt.Fprintf(b, "  - %s: %s\n", a.Name, brief(line))
		}
	}
}

var (
	vkeyForm   = regexp.MustCompile(`(\S)\+([0-9a-f]{8})\+[A-Za-z0-9+/]{40,}={0,2}`)
	originForm = regexp.MustCompile(`(/c/[0-9a-f]{8})[0-9a-f]{24}\b`)
	hashForm   = regexp.MustCompile(`\b([0-9a-f]{8})[0-9a-f]{56}\b`)
	base64Form = regexp.MustCompile(`(^|\s)([A-Za-z0-9+/]{8})[A-Za-z0-9+/]{35}=(\s|$)`)
)

// brief shortens the keys, origins and hashes in a sentence.
func brief(line string) string {
	line = vkeyForm.ReplaceAllString(line, "$1+$2")
	line = originForm.ReplaceAllString(line, "$1…")
	line = hashForm.ReplaceAllString(line, "$1…")
	return base64Form.ReplaceAllString(line, "$1$2…$3")
}

// counted is a number with the word for it.
func counted[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// short is the beginning of a hash, enough to tell it from others.
func short(hex string) string {
	if len(hex) <= 8 {
		return hex
	}
	return hex[:8] + "…"
}

// lasted is a span of time in the unit that fits it.
func lasted(d time.Duration) string {
	if d > 72*time.Hour || d < -72*time.Hour {
		return fmt.Sprintf("%d days", int64(d/(24*time.Hour)))
	}
	return d.Round(time.Second).String()
}

package anchor

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }

// WriteText renders the report for people: the verdict first, then the reasons,
// then each axis with what was checked and what was not.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", r.Verdict, r.Target)
	if r.Against != "" {
		fmt.Fprintf(&b, "  against %s", r.Against)
	}
	b.WriteString("\n")
	r.writeSummary(&b)
	for _, f := range r.Reasons {
		f.write(&b)
	}
	for reason, n := range r.Omitted {
		fmt.Fprintf(&b, "  %s: %d more not listed\n", reason, n)
	}
	for _, a := range r.Axes {
		a.write(&b)
	}
	b.WriteString("Not proved by any of this:\n")
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
		fmt.Fprintf(b, "  %d receipts: %d witnessed, %d after the last witnessed head\n", r.Receipts, r.Witnessed, r.Tail)
	}
	if r.NotBefore != "" || r.NotAfter != "" {
		fmt.Fprintf(b, "  time: not before %s, not after %s\n", orNone(r.NotBefore), orNone(r.NotAfter))
	}
}

func orNone(s string) string {
	if s == "" {
		return "(not stated)"
	}
	return s
}

func (f Finding) write(b *strings.Builder) {
	fmt.Fprintf(b, "  %s", f.Reason)
	switch {
	case f.Index != nil && f.To != nil && *f.To != *f.Index:
		fmt.Fprintf(b, " at %d to %d", *f.Index, *f.To)
	case f.Index != nil:
		fmt.Fprintf(b, " at %d", *f.Index)
	}
	fmt.Fprintf(b, ": %s\n", f.Detail)
	if f.Have != "" {
		fmt.Fprintf(b, "      have %s\n", f.Have)
	}
	if f.Want != "" {
		fmt.Fprintf(b, "      want %s\n", f.Want)
	}
	if f.Next != "" {
		fmt.Fprintf(b, "      next: %s\n", f.Next)
	}
}

func (a Axis) write(b *strings.Builder) {
	fmt.Fprintf(b, "%-13s %s\n", a.Name, a.State)
	for _, line := range a.Checked {
		fmt.Fprintf(b, "  + %s\n", line)
	}
	for _, line := range a.NotChecked {
		fmt.Fprintf(b, "  - not checked: %s\n", line)
	}
}

// short is the beginning of a hash or key id, enough to tell it from others.
func short(hex string) string {
	if len(hex) <= 8 {
		return hex
	}
	return hex[:8] + "…"
}

package anchor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"toolguardian/chain/tlog"
)

// ReportFormat is the first member of every report in JSON.
const ReportFormat = "tool-guardian/report/1"

// Verdicts.
const (
	VerdictPass       = "PASS"
	VerdictFail       = "FAIL"
	VerdictIncomplete = "INCOMPLETE"
	VerdictUnpinned   = "UNPINNED"
)

// States of an axis.
const (
	StateOK         = "OK"
	StateFail       = "FAIL"
	StateIncomplete = "INCOMPLETE"
	StatePinned     = "PINNED"
	StateEnrolled   = "ENROLLED"
	StateUnpinned   = "UNPINNED"
	StateLimited    = "LIMITED"
	StateNone       = "NOT CHECKED"
)

// maxFindings bounds how many findings of one reason are listed; the rest is
// counted, so that a report on a million bad lines stays a report.
const maxFindings = 1000

// Report is the outcome of Verify. Its JSON names are a contract.
type Report struct {
	Format    string  `json:"format"`
	Verdict   string  `json:"verdict"`
	Exit      int     `json:"exit"`
	Target    string  `json:"target"`
	Against   string  `json:"against,omitempty"`
	Origin    string  `json:"origin,omitempty"`
	Receipts  uint64  `json:"receipts"`
	Witnessed uint64  `json:"witnessed"`      // receipts below a witnessed head
	Tail      uint64  `json:"tail"`           // receipts after the last witnessed head
	From      *uint64 `json:"from,omitempty"` // the receipts asked about, where not all
	To        *uint64 `json:"to,omitempty"`
	NotBefore string  `json:"notBefore,omitempty"` // RFC 3339
	NotAfter  string  `json:"notAfter,omitempty"`
	// Who vouches for the two ends.
	NotBeforeBy *TimeBound       `json:"notBeforeBy,omitempty"`
	NotAfterBy  *TimeBound       `json:"notAfterBy,omitempty"`
	Key         *KeyStatus       `json:"key,omitempty"`
	Axes        []Axis           `json:"axes"`
	Reasons     []Finding        `json:"reasons"`
	Omitted     map[Reason]int   `json:"omitted,omitempty"` // findings counted, not listed
	Outside     []Finding        `json:"outside,omitempty"` // findings on receipts that were not asked about
	Counts      map[string]int64 `json:"counts,omitempty"`
	NotProved   []string         `json:"notProved"`
	Proofs      []ProofFile      `json:"proofs,omitempty"`
}

// Axis says what was checked against what on one side, and what was not.
type Axis struct {
	Name       AxisName `json:"name"`
	State      string   `json:"state"`
	Checked    []string `json:"checked,omitempty"`
	NotChecked []string `json:"notChecked,omitempty"`
}

// Finding is one reason, where it holds and what was compared.
type Finding struct {
	Reason Reason   `json:"reason"`
	Axis   AxisName `json:"axis"`
	Exit   int      `json:"exit"`
	Index  *uint64  `json:"index,omitempty"` // seq of a receipt, or index of a leaf
	To     *uint64  `json:"to,omitempty"`    // last index, where there is a range
	Have   string   `json:"have,omitempty"`  // hash found
	Want   string   `json:"want,omitempty"`  // hash expected
	Detail string   `json:"detail"`
	Next   string   `json:"next,omitempty"` // what to do
}

// ProofFile is a file that convicts by itself.
type ProofFile struct {
	Name  string `json:"name"`
	Bytes []byte `json:"bytes"`
}

// notProved is said wherever a verdict is printed.
func notProved() []string {
	return []string{
		"that a tool did or told what its result says",
		"that no call went around the router",
		"who the person behind a principal was",
	}
}

// verdict collects what the judges find.
type verdict struct {
	trust Trust
	rep   *Report
	axes  map[AxisName]*Axis
	seen  map[Reason]int
	sized map[string]*sized
	// newest is when a pinned cosigner or authority last vouched for this chain.
	newest time.Time
	// broken: a line is altered, missing, twice or malformed, which explains
	// any root that differs.
	broken bool
	// flat: the heads are from a file that the auditor kept; alone of them
	// carry no cosignature that a policy names.
	flat  bool
	alone int
}

func newVerdict(target, against string, t Trust) *verdict {
	v := &verdict{trust: t, axes: map[AxisName]*Axis{}, seen: map[Reason]int{}, sized: map[string]*sized{}}
	v.rep = &Report{Format: ReportFormat, Target: target, Against: against, NotProved: notProved(),
		Reasons: []Finding{}, Counts: map[string]int64{}}
	for _, name := range axisNames() {
		v.axes[name] = &Axis{Name: name}
	}
	return v
}

// find adds a finding and returns its place in the report, -1 when it is only
// counted.
func (v *verdict) find(f Finding) int {
	if f.Exit == 0 {
		f.Exit = f.Reason.exit()
	}
	v.seen[f.Reason]++
	if v.seen[f.Reason] > maxFindings {
		return -1
	}
	v.rep.Reasons = append(v.rep.Reasons, f)
	return len(v.rep.Reasons) - 1
}

func (v *verdict) checked(axis AxisName, format string, args ...any) {
	v.axes[axis].Checked = once(v.axes[axis].Checked, fmt.Sprintf(format, args...))
}

func (v *verdict) unchecked(axis AxisName, format string, args ...any) {
	v.axes[axis].NotChecked = once(v.axes[axis].NotChecked, fmt.Sprintf(format, args...))
}

// once adds a line that is not there: two leaves of one head say the same.
func once(lines []string, line string) []string {
	if slices.Contains(lines, line) {
		return lines
	}
	return append(lines, line)
}

// failed reports whether anything found so far decides for FAIL.
func (v *verdict) failed() bool {
	return slices.ContainsFunc(v.rep.Reasons, func(f Finding) bool { return f.Exit == ExitFail })
}

// state names an axis's state where no finding decides it.
func (v *verdict) state(axis AxisName, s string) { v.axes[axis].State = s }

func at(i uint64) *uint64 { return &i }

func hexOf(h [32]byte) string { return tlog.Hash(h).Hex() }

// close orders the findings and draws the verdict.
func (v *verdict) close() Report {
	r := v.rep
	slices.SortStableFunc(r.Reasons, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Reason.weight(), b.Reason.weight()), compareIndex(a.Index, b.Index))
	})
	for reason, n := range v.seen {
		if n > maxFindings {
			if r.Omitted == nil {
				r.Omitted = map[Reason]int{}
			}
			r.Omitted[reason] = n - maxFindings
		}
	}
	for _, name := range axisNames() {
		r.Axes = append(r.Axes, v.closeAxis(name))
		if name == AxisKey {
			v.closeKey(r.Axes[len(r.Axes)-1].State)
		}
	}
	r.Exit, r.Verdict = conclude(r.Reasons)
	return *r
}

func compareIndex(a, b *uint64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}

// closeAxis lets the worst finding on an axis decide its state.
func (v *verdict) closeAxis(name AxisName) Axis {
	a := *v.axes[name]
	for _, f := range v.rep.Reasons {
		if f.Axis != name {
			continue
		}
		switch {
		case f.Exit == ExitFail:
			a.State = StateFail
		case a.State == StateFail:
		case f.Reason == Unpinned && a.State != StateEnrolled:
			a.State = StateUnpinned
		case f.Reason != Unpinned:
			a.State = StateIncomplete
		}
	}
	if a.State == "" && len(a.Checked) > 0 {
		a.State = StateOK
	}
	return Axis{Name: name, State: cmp.Or(a.State, StateNone), Checked: a.Checked, NotChecked: a.NotChecked}
}

func conclude(all []Finding) (int, string) {
	exit, verdict := ExitPass, VerdictPass
	for _, f := range all {
		switch {
		case f.Exit == ExitFail:
			return ExitFail, VerdictFail
		case f.Reason != Unpinned:
			exit, verdict = ExitIncomplete, VerdictIncomplete
		case verdict == VerdictPass:
			exit, verdict = ExitIncomplete, VerdictUnpinned
		}
	}
	return exit, verdict
}

package anchor

import "fmt"

// window is the range of receipts the auditor asks about, ends included; nil is
// open.
type window struct{ from, to *uint64 }

func (w window) all() bool { return w.from == nil && w.to == nil }

// touches reports whether a finding concerns the window. One that has no place
// concerns everything.
func (w window) touches(f Finding) bool {
	if f.Index == nil || f.Reason == Fork || f.Axis == AxisWitness || f.Axis == AxisTime || f.Axis == AxisKey {
		return true
	}
	last := *f.Index
	if f.To != nil {
		last = *f.To
	}
	return (w.from == nil || last >= *w.from) && (w.to == nil || *f.Index <= *w.to)
}

func (w window) text() string {
	switch {
	case w.from == nil:
		return fmt.Sprintf("up to %d", *w.to)
	case w.to == nil:
		return fmt.Sprintf("from %d on", *w.from)
	}
	return fmt.Sprintf("%d to %d", *w.from, *w.to)
}

// narrow sets aside what does not concern the asked receipts. What is left
// passes only where a root that equals a witnessed one covers them: a change
// elsewhere would hide one here, and who asks about receipts by number wants no
// others to stand for them.
func (v *verdict) narrow(w window, matched uint64) {
	if w.all() {
		return
	}
	v.rep.From, v.rep.To = w.from, w.to
	var in []Finding
	for _, f := range v.rep.Reasons {
		if w.touches(f) {
			in = append(in, f)
		} else {
			v.rep.Outside = append(v.rep.Outside, f)
		}
	}
	v.rep.Reasons = append([]Finding{}, in...)
	first, last := uint64(0), v.rep.Receipts
	if w.from != nil {
		first = *w.from
	}
	if w.to != nil {
		last = *w.to + 1
	}
	switch {
	case first >= v.rep.Receipts || last > v.rep.Receipts || first >= last:
		v.find(Finding{Reason: Absent, Axis: AxisChain, Detail: fmt.Sprintf("receipts %s were asked about, the chain has %d", w.text(), v.rep.Receipts)})
	case len(v.rep.Outside) > 0 && matched < last:
		v.find(Finding{Reason: Unprotected, Axis: AxisWitness, Index: at(max(first, min(matched, last-1))), To: at(last - 1),
			Detail: "what is wrong elsewhere keeps the tree from being compared: nothing shows that these receipts are the witnessed ones"})
	case v.rep.Witnessed > 0 && v.rep.Witnessed < last && !v.failed(): // with no head that holds, that was said already
		v.find(Finding{Reason: Unprotected, Axis: AxisWitness, Index: at(max(first, v.rep.Witnessed)), To: at(last - 1),
			Detail: fmt.Sprintf("receipts %s were asked about, the last witnessed head covers %d: nothing but the files vouches for the rest", w.text(), v.rep.Witnessed),
			Next:   "verify again after the next head, or ask about receipts below it"})
	}
}

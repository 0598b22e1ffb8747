package anchor

import (
	"errors"
	"hash/maphash"

	"toolguardian/chain"
	"toolguardian/receipts"
)

// story follows calls and sessions through a chain: what has begun and not
// ended. It keeps eight bytes for each that is open.
type story struct {
	seed     maphash.Seed
	calls    map[uint64]struct{}
	sessions map[uint64]struct{}
	closed   map[uint64]struct{}

	callsSeen, outcomes, twice int64
	afterClose, interrupted    int64
	gaps, notBefore            int64
	erased                     []erasure

	salts Salts             // nil: not asked
	gone  []receipts.Erased // salts that are not there, at most maxFindings and one
}

type erasure struct {
	told   uint64 // seq of the erasure receipt
	of     receipts.Erased
	reason string
}

func newStory() *story {
	return &story{seed: maphash.MakeSeed(), calls: map[uint64]struct{}{}, sessions: map[uint64]struct{}{}, closed: map[uint64]struct{}{}}
}

func (t *story) hash(s string) uint64 { return maphash.String(t.seed, s) }

// salted asks for the salts of a receipt's own fields. A person's salt stands
// elsewhere, once for all receipts.
func (t *story) salted(s *receipts.Statement) {
	for _, sub := range s.Subjects {
		f := receipts.FieldNamed(sub.Name)
		if f == 0 || f >= receipts.FieldPrincipal || len(t.gone) > maxFindings {
			continue
		}
		if _, err := t.salts.Salt(s.Seq, f); errors.Is(err, chain.ErrErased) || errors.Is(err, chain.ErrNotFound) {
			t.gone = append(t.gone, receipts.Erased{Seq: s.Seq, Field: sub.Name})
		}
	}
}

func (t *story) take(s *receipts.Statement) {
	if t.salts != nil {
		t.salted(s)
	}
	session := t.hash(s.Text("session"))
	if _, over := t.closed[session]; over && s.Kind != receipts.KindLate {
		t.afterClose++
	}
	if s.NotBefore != nil {
		t.notBefore++
	}
	switch s.Kind {
	case receipts.KindSessionOpen:
		t.sessions[session] = struct{}{}
	case receipts.KindSessionClose:
		delete(t.sessions, session)
		t.closed[session] = struct{}{}
		if s.Text("end") == receipts.EndInterrupted {
			t.interrupted++
		}
	case receipts.KindDecision:
		t.decision(t.hash(s.Text("call", "id")))
	case receipts.KindOutcome:
		t.outcomes++
		delete(t.calls, t.hash(s.Text("call", "id")))
	case receipts.KindGap:
		t.gaps++
	case receipts.KindErasure:
		for _, e := range s.Erased {
			t.erased = append(t.erased, erasure{told: s.Seq, of: e, reason: s.Text("reason")})
		}
	}
}

func (t *story) decision(call uint64) {
	t.callsSeen++
	if _, open := t.calls[call]; open {
		t.twice++
	}
	t.calls[call] = struct{}{}
}

// tell writes the axes completeness and privacy.
func (t *story) tell(v *verdict) {
	v.state(AxisCompleteness, StateLimited)
	v.checked(AxisCompleteness, "%d calls decided, %d outcomes, %d calls without an outcome", t.callsSeen, t.outcomes, len(t.calls))
	v.checked(AxisCompleteness, "%d sessions without an end (their end is unknown), %d interrupted", len(t.sessions), t.interrupted)
	for _, note := range []struct {
		n    int64
		text string
	}{
		{t.gaps, "%d gap receipts: calls ran that were not recorded"},
		{t.twice, "%d calls decided twice under one id (a retry)"},
		{t.afterClose, "%d receipts after their session's close"},
	} {
		if note.n > 0 {
			v.checked(AxisCompleteness, note.text, note.n)
		}
	}
	v.unchecked(AxisCompleteness, "calls that never reached the router leave no receipt")
	v.rep.Counts["calls"], v.rep.Counts["outcomes"], v.rep.Counts["openCalls"] = t.callsSeen, t.outcomes, int64(len(t.calls))
	v.rep.Counts["gaps"], v.rep.Counts["retries"], v.rep.Counts["openSessions"] = t.gaps, t.twice, int64(len(t.sessions))
	v.rep.Counts["afterClose"], v.rep.Counts["notBefore"] = t.afterClose, t.notBefore
	t.tellErased(v)
}

func (t *story) tellErased(v *verdict) {
	v.checked(AxisPrivacy, "receipts hold commitments only: no argument or result was read")
	told := map[receipts.Erased]bool{}
	for _, e := range t.erased {
		told[e.of] = true
		v.find(Finding{Reason: ErasedSalt, Axis: AxisPrivacy, Index: at(e.of.Seq),
			Detail: e.of.Field + " can never be opened again, told by receipt " + uintText(e.told) + ": " + e.reason})
	}
	for _, g := range t.gone {
		if !told[g] {
			v.find(Finding{Reason: ErasedSalt, Axis: AxisPrivacy, Index: at(g.Seq), Detail: g.Field + " can never be opened again: its salt is gone and no erasure receipt tells why"})
		}
	}
	if t.salts == nil {
		v.unchecked(AxisPrivacy, "whether every salt is still there")
	}
}

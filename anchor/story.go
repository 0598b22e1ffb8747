package anchor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"toolguardian/chain"
	"toolguardian/receipts"
)

// story follows calls and sessions through a chain: what has begun and not
// ended. It keeps eight bytes for each that is open.
type story struct {
	seed     maphash.Seed
	calls    map[uint64]struct{}
	sessions map[uint64]struct{}
	closed   map[sessionID]uint64 // seq of the close

	callsSeen, outcomes, twice int64
	afterClose, interrupted    int64
	gaps, notRun, notBefore    int64
	erased                     []erasure

	salts Salts             // nil: not asked
	gone  []receipts.Erased // salts that are not there, at most maxFindings and one
}

// gapNotRun begins a gap's reason where its calls did not run.
const gapNotRun = "calls not run"

// sessionID is half of a session's SHA-256: a receipt after a close fails a
// chain, so no two sessions may be taken for one.
type sessionID [16]byte

func idOfSession(name string) sessionID {
	sum := sha256.Sum256([]byte(name))
	return sessionID(sum[:len(sessionID{})])
}

type erasure struct {
	told   uint64 // seq of the erasure receipt
	of     receipts.Erased
	reason string
}

func newStory() *story {
	return &story{seed: maphash.MakeSeed(), calls: map[uint64]struct{}{}, sessions: map[uint64]struct{}{}, closed: map[sessionID]uint64{}}
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

// endsWithSession are the kinds that a session writes of itself. A late result
// and a gap are told by whoever comes next, under the session they concern.
func endsWithSession(k receipts.Kind) bool {
	switch k {
	case receipts.KindSessionOpen, receipts.KindSessionClose, receipts.KindDecision, receipts.KindDenied, receipts.KindRefused,
		receipts.KindQuestion, receipts.KindAnswer, receipts.KindOutcome, receipts.KindHeartbeat:
		return true
	}
	return false
}

// afterEnd finds a receipt of a session that has closed: no router writes one.
func (t *story) afterEnd(v *verdict, s *receipts.Statement, name string) {
	closed, over := t.closed[idOfSession(name)]
	if !over || !endsWithSession(s.Kind) {
		return
	}
	t.afterClose++
	v.find(Finding{Reason: Spliced, Axis: AxisCompleteness, Index: at(s.Seq),
		Detail: fmt.Sprintf("a %s receipt of a session that receipt %d had closed: no router writes one", s.Kind, closed)})
}

func (t *story) take(v *verdict, p *parsed) {
	s := p.statement
	if t.salts != nil {
		t.salted(s)
	}
	name, session := p.session, t.hash(p.session)
	if len(t.closed) > 0 {
		t.afterEnd(v, s, name)
	}
	if s.NotBefore != nil {
		t.notBefore++
	}
	switch s.Kind {
	case receipts.KindSessionOpen:
		t.sessions[session] = struct{}{}
	case receipts.KindSessionClose:
		delete(t.sessions, session)
		t.closed[idOfSession(name)] = s.Seq
		if s.Text("end") == receipts.EndInterrupted {
			t.interrupted++
		}
	case receipts.KindDecision:
		t.decision(t.hash(p.call))
	case receipts.KindOutcome:
		t.outcomes++
		delete(t.calls, t.hash(p.call))
	case receipts.KindGap:
		t.gaps++
		if strings.HasPrefix(s.Text("reason"), gapNotRun) {
			t.notRun++
		}
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
	v.checked(AxisCompleteness, "%s decided, %s, %s without an outcome", counted(t.callsSeen, "call", "calls"), counted(t.outcomes, "outcome", "outcomes"), counted(len(t.calls), "call", "calls"))
	v.checked(AxisCompleteness, "%s without an end (their end is unknown), %d interrupted", counted(len(t.sessions), "session", "sessions"), t.interrupted)
	t.tellGaps(v)
	if t.twice > 0 {
		v.checked(AxisCompleteness, "%d calls decided twice under one id (a retry)", t.twice)
	}
	v.unchecked(AxisCompleteness, "calls that never reached the router leave no receipt")
	v.rep.Counts["calls"], v.rep.Counts["outcomes"], v.rep.Counts["openCalls"] = t.callsSeen, t.outcomes, int64(len(t.calls))
	v.rep.Counts["gaps"], v.rep.Counts["retries"], v.rep.Counts["openSessions"] = t.gaps, t.twice, int64(len(t.sessions))
	v.rep.Counts["afterClose"], v.rep.Counts["notBefore"] = t.afterClose, t.notBefore
	t.tellErased(v)
}

// tellGaps says what the gaps stand for, as their reasons tell.
func (t *story) tellGaps(v *verdict) {
	var what []string
	if ran := t.gaps - t.notRun; ran > 0 {
		what = append(what, fmt.Sprintf("calls ran that were not recorded, or not whole (%d)", ran))
	}
	if t.notRun > 0 {
		what = append(what, fmt.Sprintf("calls were not run, since they could not be recorded (%d)", t.notRun))
	}
	if t.gaps > 0 {
		v.checked(AxisCompleteness, "%s: %s", counted(t.gaps, "gap receipt", "gap receipts"), strings.Join(what, ", "))
	}
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

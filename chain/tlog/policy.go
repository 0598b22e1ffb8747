package tlog

import (
	"errors"
	"time"
)

// Policy says which logs and cosigners make a checkpoint trusted (C2SP
// tlog-policy). It does not change after parsing.
type Policy struct {
	logs      []Vkey
	witnesses []PolicyWitness
	groups    []group
	quorum    voter
}

// PolicyWitness is a witness line. Its name belongs to the policy file alone,
// the key's name is what stands in notes.
type PolicyWitness struct {
	Name string
	Key  Vkey
	URL  string // empty when the line has none
}

// PolicyCosigner is a witness of the policy that cosigned, and when.
type PolicyCosigner struct {
	PolicyWitness
	Time time.Time
}

// voter is a witness or group by its place in the policy, or no one: a quorum
// that asks for nothing.
type voter struct {
	kind  voterKind
	index int
}

type voterKind int

const (
	voterNone voterKind = iota
	voterWitness
	voterGroup
)

// group is satisfied by k of its members, which stand before it in the file.
type group struct {
	k       int
	members []voter
}

// PolicyResult is what a policy finds in one note.
type PolicyResult struct {
	Log       *Vkey            // the log that signed, nil without
	Cosigned  []PolicyCosigner // valid cosignatures, in the policy's order
	Quorum    bool             // the quorum is met by Cosigned
	Ignored06 []Vkey           // ML-DSA-44 keys of the policy with a line here: not verified, not counted
	Bad       []Vkey           // keys of the policy with a line here that does not verify
}

// OK reports whether the note is trusted: signed by a log of the policy,
// cosigned by its quorum, and no line by a key of the policy fails.
func (r PolicyResult) OK() bool { return r.Log != nil && r.Quorum && len(r.Bad) == 0 }

// Logs returns the log keys in the file's order.
func (p *Policy) Logs() []Vkey { return append([]Vkey(nil), p.logs...) }

// Witnesses returns the witnesses in the file's order.
func (p *Policy) Witnesses() []PolicyWitness { return append([]PolicyWitness(nil), p.witnesses...) }

// Check judges a checkpoint. A log counts only for a checkpoint whose origin
// is the log's key name. A note that is no strict checkpoint, or that no
// known key has signed, gives a result that is not OK.
func (p *Policy) Check(n Note) PolicyResult {
	var r PolicyResult
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return r
	}
	for i, k := range p.logs {
		if k.Name != c.Origin {
			continue
		}
		if _, ok := r.judge(n, k); ok && r.Log == nil {
			r.Log = &p.logs[i]
		}
	}
	signed := make([]bool, len(p.witnesses))
	for i, w := range p.witnesses {
		var s Signature
		if s, signed[i] = r.judge(n, w.Key); signed[i] {
			at, _ := s.Time()
			r.Cosigned = append(r.Cosigned, PolicyCosigner{PolicyWitness: w, Time: at})
		}
	}
	r.Quorum = p.met(signed)
	return r
}

// judge reports whether k signed n, and records a line that fails or that
// cannot be verified.
func (r *PolicyResult) judge(n Note, k Vkey) (Signature, bool) {
	s, err := n.Verify(k)
	switch {
	case errors.Is(err, ErrUnsupported):
		r.Ignored06 = append(r.Ignored06, k)
	case errors.Is(err, ErrBadSignature):
		r.Bad = append(r.Bad, k)
	}
	return s, err == nil
}

// met reports whether the witnesses that signed make the quorum. Members stand
// before their group, so one pass in order settles every group.
func (p *Policy) met(signed []bool) bool {
	groups := make([]bool, len(p.groups))
	holds := func(v voter) bool {
		switch v.kind {
		case voterWitness:
			return signed[v.index]
		case voterGroup:
			return groups[v.index]
		}
		return true
	}
	for i, g := range p.groups {
		count := 0
		for _, m := range g.members {
			if holds(m) {
				count++
			}
		}
		groups[i] = count >= g.k
	}
	return holds(p.quorum)
}

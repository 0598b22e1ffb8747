package witness

import (
	"slices"
	"time"

	"toolguardian/witness/api"
)

// timeView is how the page speaks of time.
type timeView struct {
	TimeStatus
	Age     time.Duration // of the newest token
	Waiting time.Duration // of the first head without one; zero: none waits
	Missing bool          // one waits for more than two rounds, or no authority answers
	Short   bool          // fewer operators than asked for
	Tokens  stampRecords  // of the newest stamped checkpoint
}

// unstampedLooked bounds the leaves that are read to find since when a head
// waits.
const unstampedLooked = 64

// timeView says when a timestamp is missing: nothing but time leaves is never
// stamped, so the newest token may be old although nothing is amiss.
func (s *Server) timeView(p published, now time.Time) (v timeView, err error) {
	if v.TimeStatus, err = s.timeStatus(p); err != nil {
		return v, err
	}
	if v.Size > 0 {
		v.Age = max(0, now.Sub(v.At))
		if v.Tokens, err = readStamps(p, v.Size); err != nil {
			return v, err
		}
	}
	v.Short = v.Size > 0 && v.Full < v.Size
	since, err := p.waitingSince(v.Size, v.Unstamped)
	if err != nil {
		return v, err
	}
	if !since.IsZero() {
		v.Waiting = max(0, now.Sub(since))
	}
	v.Missing = v.Waiting > 2*s.o.StampEvery || v.Unstamped > 0 && v.failing()
	return v, nil
}

// failing says that no authority answered in the last round.
func (v timeView) failing() bool {
	return len(v.Authorities) > 0 && !slices.ContainsFunc(v.Authorities, func(a AuthorityStatus) bool { return a.Error == "" })
}

// AuthorityView is one authority's part in the newest timestamp.
type AuthorityView struct {
	AuthorityStatus
	SelfIssued bool
	Age        time.Duration
}

// Parts is every authority, with what it stamped.
func (v timeView) Parts(now time.Time) (parts []AuthorityView) {
	for _, a := range v.Authorities {
		part := AuthorityView{AuthorityStatus: a, Age: max(0, now.Sub(a.At))}
		for _, t := range v.Tokens {
			part.SelfIssued = part.SelfIssued || t.Authority == a.Name && t.SelfIssued
		}
		parts = append(parts, part)
	}
	return parts
}

// waitingSince is the time of the first head leaf from size on, as its
// cosignature says; zero when none is found.
func (p published) waitingSince(size, unstamped uint64) (time.Time, error) {
	for i := size; i < min(p.size, size+unstamped, size+unstampedLooked); i++ {
		l, err := p.leaf(i)
		if err != nil {
			return time.Time{}, err
		}
		if at, ok := headTime(i, l); ok {
			return at, nil
		}
	}
	return time.Time{}, nil
}

// leaf reads a leaf of the snapshot.
func (p published) leaf(index uint64) (api.Leaf, error) {
	entries, err := p.Entries(index, 1)
	if err != nil {
		return api.Leaf{}, err
	}
	return api.ParseLeaf(entries[0])
}

// headTime is when a head leaf was cosigned.
func headTime(index uint64, l api.Leaf) (time.Time, bool) {
	if l.Type != api.LeafHead {
		return time.Time{}, false
	}
	h, err := api.ParseHeadLeaf(index, l)
	if err != nil {
		return time.Time{}, false
	}
	return h.Note.Signatures[len(h.Note.Signatures)-1].Time()
}

package api

import (
	"bytes"
	"errors"
	"fmt"

	"toolguardian/chain/tlog"
)

// What refuses an act on an origin's keys; callers decide on them.
var (
	// ErrKeyOrder: the act does not follow the one before it.
	ErrKeyOrder = errors.New("the act does not follow the keys so far")
	// ErrKeyReused: a key that was in force before never comes again.
	ErrKeyReused = errors.New("the key was in force before")
	// ErrKeyRevoked: after a revocation only an operator's rotation goes on.
	ErrKeyRevoked = errors.New("the key was revoked")
)

// KeyStatus says what a key was worth at a leaf of the log, as of the key
// leaves that were shown: never "not revoked since".
type KeyStatus string

// The statuses of a key at a leaf.
const (
	KeyForeign  KeyStatus = "foreign"    // never a key of this origin
	KeyNotYet   KeyStatus = "not yet"    // put in force by a later leaf
	KeyInForce  KeyStatus = "in force"   //
	KeyDoubtful KeyStatus = "doubtful"   // between a revocation's since and its leaf
	KeyRotated  KeyStatus = "rotated"    // a rotation came before
	KeyIsClosed KeyStatus = "is revoked" // a revocation came before
)

// KeyEntry is one head key of an origin, as its key leaves tell it.
type KeyEntry struct {
	Key      tlog.Vkey
	From     uint64 // size of the smallest head it signs
	Index    uint64 // of the leaf that put it in force
	Operator bool   // by the operator's word, not by the keys' own
	Closed   Ref    // the leaf that ended it
	Since    Ref    // of a revocation: its heads from that leaf on are doubtful
}

// KeyHistory is what the key leaves of one origin say, read in their order.
// The zero value is an origin without a key.
type KeyHistory struct {
	Entries []KeyEntry // the last may be in force
	Newest  Ref        // key leaf read last
}

// Apply reads the next key leaf, at index. Whose signatures it bears is for
// KeyNote.SignedBy to say; operator is its answer. On an error h is unchanged.
func (h *KeyHistory) Apply(index uint64, k KeyNote, operator bool) error {
	if err := h.allows(index, k, operator); err != nil {
		return err
	}
	if n := len(h.Entries); n > 0 && !h.Entries[n-1].Closed.Present {
		h.Entries[n-1].Closed, h.Entries[n-1].Since = At(index), k.Since
	}
	if k.New != nil {
		h.Entries = append(h.Entries, KeyEntry{Key: *k.New, From: k.FromSize, Index: index, Operator: operator})
	}
	h.Newest = At(index)
	return nil
}

// allows states the rules between one key leaf and those before it.
func (h KeyHistory) allows(index uint64, k KeyNote, operator bool) error {
	n := len(h.Entries)
	switch {
	case h.Newest.Present && index <= h.Newest.Index:
		return fmt.Errorf("%w: leaf %d after leaf %d", ErrKeyOrder, index, h.Newest.Index)
	case n == 0 && k.Act != KeyEnrol:
		return fmt.Errorf("%w: the first is a %s, not an enrolment", ErrKeyOrder, k.Act)
	case n == 0:
		return CheckFirstKey(*k.New)
	case k.Act == KeyEnrol && h.everHeld(*k.New):
		return fmt.Errorf("%w: %s", ErrKeyReused, k.New)
	case k.Act == KeyEnrol:
		return fmt.Errorf("%w: a second enrolment; a key is changed by a rotation", ErrKeyOrder)
	}
	last := h.Entries[n-1]
	switch {
	case !k.Old.Equal(last.Key):
		return fmt.Errorf("%w: it ends %s, the last key is %s", ErrKeyOrder, k.Old, last.Key)
	case k.Act == KeyRevoke:
		return last.allowsRevoke(operator)
	case last.Closed.Present && !operator:
		return fmt.Errorf("%w by leaf %s: an operator's rotation or a successor chain goes on", ErrKeyRevoked, last.Closed)
	case h.everHeld(*k.New):
		return fmt.Errorf("%w: %s", ErrKeyReused, k.New)
	case k.FromSize <= last.From:
		return fmt.Errorf("%w: from-size %d, the key before signs from %d", ErrKeyOrder, k.FromSize, last.From)
	}
	return nil
}

// allowsRevoke does not judge since: of a leaf that was copied into a shard it
// counts in the shard before.
func (e KeyEntry) allowsRevoke(operator bool) error {
	switch {
	case !operator:
		return fmt.Errorf("%w: a revocation is an operator's act", ErrKeyOrder)
	case e.Closed.Present:
		return fmt.Errorf("%w already by leaf %s", ErrKeyRevoked, e.Closed)
	}
	return nil
}

// everHeld compares the raw keys: a key has one name per origin.
func (h KeyHistory) everHeld(key tlog.Vkey) bool {
	for _, e := range h.Entries {
		if bytes.Equal(e.Key.Key, key.Key) {
			return true
		}
	}
	return false
}

// Find gives the entry of a key.
func (h KeyHistory) Find(key tlog.Vkey) (KeyEntry, bool) {
	for _, e := range h.Entries {
		if e.Key.Equal(key) {
			return e, true
		}
	}
	return KeyEntry{}, false
}

// InForce is the key in force after the leaves read; false before the first
// and after a revocation.
func (h KeyHistory) InForce() (KeyEntry, bool) {
	if n := len(h.Entries); n > 0 && !h.Entries[n-1].Closed.Present {
		return h.Entries[n-1], true
	}
	return KeyEntry{}, false
}

// Signed is the key whose head of that size came before the leaf that closed
// it: at the size of a rotation both may have signed, and the older one counts,
// which is the worse for who relies on it.
func (h KeyHistory) Signed(size uint64) (KeyEntry, bool) {
	for i := len(h.Entries) - 1; i >= 0; i-- {
		if e := h.Entries[i]; i == 0 || e.From < size {
			return e, true
		}
	}
	return KeyEntry{}, false
}

// Status is what key was worth at the leaf of that index.
func (h KeyHistory) Status(key tlog.Vkey, index uint64) KeyStatus {
	e, ok := h.Find(key)
	switch {
	case !ok:
		return KeyForeign
	case index <= e.Index:
		return KeyNotYet
	case !e.Closed.Present:
		return KeyInForce
	case e.Since.Present && index > e.Closed.Index:
		return KeyIsClosed
	case index > e.Closed.Index:
		return KeyRotated
	case e.Since.Present && index >= e.Since.Index:
		return KeyDoubtful
	}
	return KeyInForce
}

// Doubtful says whether some leaf under the key may be a thief's: it was
// revoked, and not just since the revocation itself.
func (e KeyEntry) Doubtful() bool { return e.Since.Present && e.Since != e.Closed }

package anchor

import (
	"errors"
	"fmt"
	"slices"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// keyring holds the head keys of one chain, each with the size from which it
// signs, as told by its own receipts, by key leaves, or by pins.
type keyring struct {
	origin   string
	keys     []headKeyAt
	known    uint64 // told by receipts: how many of them were looked at for keys
	leaves   bool   // told by key leaves
	operator bool   // an operator's act is among them
}

// inForce is the key that signs a head of that size.
func (r keyring) inForce(size uint64) (tlog.Vkey, bool) {
	var key tlog.Vkey
	found := false
	for _, k := range r.keys {
		if k.from <= size {
			key, found = k.key, true
		}
	}
	return key, found
}

func (r keyring) holds(key tlog.Vkey) bool {
	for _, k := range r.keys {
		if k.key.Equal(key) {
			return true
		}
	}
	return false
}

// keyLeaves judges the key leaves up to the one in force for a head leaf: each
// included in the same checkpoint, linked back, the first an enrolment by the
// key that names the origin, each next signed by old and new or by the log.
func (v *verdict) keyLeaves(ev *Evidence, head api.Leaf, ring *keyring, logKey *tlog.Vkey) bool {
	if len(ev.Keys) == 0 {
		v.find(Finding{Reason: Absent, Axis: AxisKey, Index: at(ev.Leaf.Index), Detail: "no key leaf of " + head.Origin + " comes with its head leaf"})
		return false
	}
	ring.leaves = true
	before := api.Ref{}
	for i := range ev.Keys {
		k := &ev.Keys[i]
		if !v.keyLeaf(ev, k, before, head.Origin, ring, logKey) {
			return false
		}
		before = api.At(k.Proof.Index)
	}
	if head.Keys != before {
		v.find(Finding{Reason: Spliced, Axis: AxisKey, Index: at(ev.Leaf.Index),
			Detail: fmt.Sprintf("the head leaf names key leaf %s, the last one shown is %s", head.Keys, before)})
		return false
	}
	if ring.operator {
		v.unchecked(AxisKey, "the chain's own consent to its key: an operator of the witness put it in force")
	}
	v.checkedAt(AxisKey, fmt.Sprintf("%s of the chain, from its enrolment at leaf %d, as of log size", counted(len(ev.Keys), "key leaf", "key leaves"), ev.Keys[0].Proof.Index), logSizeOf(ev.Leaf), "")
	return true
}

// logSizeOf is the size of the log in a proof that has been parsed before.
func logSizeOf(p tlog.Proof) uint64 {
	cp, _, err := tlog.ParseSignedCheckpoint(p.Checkpoint)
	if err != nil {
		return 0
	}
	return cp.Size
}

func (v *verdict) keyLeaf(ev *Evidence, k *KeyEvidence, before api.Ref, origin string, ring *keyring, logKey *tlog.Vkey) bool {
	index := at(k.Proof.Index)
	refuse := func(r Reason, format string, args ...any) bool {
		v.find(Finding{Reason: r, Axis: AxisKey, Index: index, Have: tlog.LeafHash(k.Bytes).Hex(), Detail: "key leaf: " + fmt.Sprintf(format, args...)})
		return false
	}
	leaf, err := api.ParseLeaf(k.Bytes)
	if err != nil {
		return refuse(parseReason(err), "%v", err)
	}
	if string(k.Proof.Checkpoint) != string(ev.Leaf.Checkpoint) {
		return refuse(Malformed, "proved at another checkpoint than the head leaf")
	}
	if _, _, err := k.Proof.Verify(tlog.LeafHash(k.Bytes)); err != nil {
		return refuse(Absent, "%v", err)
	}
	if leaf.Type != api.LeafKey || leaf.Origin != origin || leaf.Keys != before {
		return refuse(Spliced, "a %s leaf of %s with keys %s, want a key leaf of %s with keys %s", leaf.Type, leaf.Origin, leaf.Keys, origin, before)
	}
	note, signed, err := api.ParseKeyNote(leaf.Body)
	if err != nil {
		return refuse(parseReason(err), "%v", err)
	}
	if note.Origin != origin {
		return refuse(Spliced, "its note is of %s", note.Origin)
	}
	return v.keyAct(note, signed, ring, logKey, refuse)
}

// keyAct judges what a key note does, and by whose signature.
func (v *verdict) keyAct(note api.KeyNote, signed tlog.Note, ring *keyring, logKey *tlog.Vkey, refuse func(Reason, string, ...any) bool) bool {
	var operatorKey tlog.Vkey
	if logKey != nil {
		operatorKey = *logKey
	}
	operator, err := note.SignedBy(signed, operatorKey)
	first := len(ring.keys) == 0
	switch {
	case err != nil && logKey != nil:
		return refuse(Altered, "%v", err)
	case err != nil:
		// Only the log's own line can be missing a key to judge it by.
		v.unchecked(AxisKey, "who signed the %s of the key: no log key is pinned", note.Act)
		operator = true
	}
	switch {
	case first && note.Act != api.KeyEnrol:
		return refuse(Spliced, "the first is a %s, not an enrolment", note.Act)
	case first:
		if err := api.CheckFirstKey(*note.New); err != nil {
			return refuse(Spliced, "%v", err)
		}
	case note.Act == api.KeyRevoke:
		return refuse(Revoked, "the key %s was revoked", note.Old)
	case note.Act != api.KeyRotate || !note.Old.Equal(ring.keys[len(ring.keys)-1].key):
		return refuse(Spliced, "a %s that does not follow the key before", note.Act)
	}
	// An operator's enrolment puts in force a key that its origin names anyway.
	ring.operator = ring.operator || operator && !first
	ring.keys = append(ring.keys, headKeyAt{from: note.FromSize, key: *note.New})
	return true
}

func parseReason(err error) Reason {
	if errors.Is(err, api.ErrUnknownVersion) {
		return UnknownVersion
	}
	return Malformed
}

// pins judges the keyring against what the auditor pinned; with several pins
// all must hold.
func (v *verdict) pins(ring keyring) {
	if v.trust.Origin != "" && v.trust.Origin != ring.origin {
		v.find(Finding{Reason: Spliced, Axis: AxisKey, Have: ring.origin, Want: v.trust.Origin, Detail: "another chain than the one pinned by --origin"})
		return
	}
	if n := len(ring.keys); n > 0 && v.rep.Key == nil {
		v.rep.Key = &KeyStatus{Key: ring.keys[n-1].key.String()}
	}
	held := !slices.ContainsFunc(v.trust.ChainKeys, func(k tlog.Vkey) bool { return k.Name != ring.origin })
	pins := v.trust.chainPins(ring.origin)
	for _, pin := range pins {
		if ring.holds(pin) {
			v.checked(AxisKey, "pinned chain key %s", pin)
			continue
		}
		held = false
	}
	switch {
	case v.trust.pinsChain() && !held:
		v.find(Finding{Reason: Absent, Axis: AxisKey, Detail: "a pinned chain key is none of the keys of " + ring.origin,
			Next: "check which chain the key was given for"})
	case v.trust.Origin != "" && ring.operator:
		v.find(Finding{Reason: Unpinned, Axis: AxisKey, Detail: "an operator of the witness rotated the key: the origin alone does not pin the new one", Next: "pin it with --chain-key"})
	case len(pins) > 0 || v.trust.Origin != "":
		v.state(AxisKey, StatePinned)
		if v.trust.Origin != "" {
			v.checked(AxisKey, "pinned origin %s, which is the hash of the first head key", ring.origin)
		}
	default:
		v.unpinnedChain(ring)
	}
}

func (v *verdict) unpinnedChain(ring keyring) {
	f := Finding{Reason: Unpinned, Axis: AxisKey, Detail: "the chain's key comes from what is being verified, not from you",
		Next: "pin the chain with --chain-key, --chain-policy or --origin"}
	if ring.leaves {
		f.Detail = "the chain's key is enrolled by the witness, not pinned by you"
		v.state(AxisKey, StateEnrolled)
	}
	if n := len(ring.keys); n > 0 {
		f.Detail += ": " + ring.keys[n-1].key.String()
	}
	v.find(f)
}

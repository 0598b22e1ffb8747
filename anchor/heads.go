package anchor

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// head judges a head note: the chain's key in force at its size, then the
// cosigners. It returns whether the head may be relied on.
func (v *verdict) head(n tlog.Note, cp tlog.Checkpoint, ring keyring, source string) bool {
	key, ok := ring.inForce(cp.Size)
	if !ok {
		v.find(Finding{Reason: Unpinned, Axis: AxisKey, Detail: "no key is known for " + cp.Origin + " at size " + uintText(cp.Size),
			Next: "pin the chain with --chain-key"})
		return false
	}
	if !v.signedBy(n, key, AxisSignatures, cp.Size, source) {
		return false
	}
	v.checkedAt(AxisSignatures, "head of size", cp.Size, " signed by the chain's key "+key.String())
	if v.trust.ChainPolicy != nil {
		return v.headPolicy(n, cp, source)
	}
	return v.headCosigned(n, cp, source)
}

// signedBy states why a required signature is not there.
func (v *verdict) signedBy(n tlog.Note, key tlog.Vkey, axis AxisName, index uint64, source string) bool {
	_, err := n.Verify(key)
	switch {
	case err == nil:
		return true
	case errors.Is(err, tlog.ErrNoSignature):
		v.find(Finding{Reason: Absent, Axis: axis, Index: at(index), Detail: fmt.Sprintf("%s: no signature line of %s", source, key)})
	default:
		v.find(Finding{Reason: Altered, Axis: axis, Index: at(index), Detail: fmt.Sprintf("%s: %v: %s", source, err, key)})
	}
	return false
}

func (v *verdict) headPolicy(n tlog.Note, cp tlog.Checkpoint, source string) bool {
	res := v.trust.ChainPolicy.Check(n)
	if !v.noBad(res.Bad, cp.Size, source) {
		return false
	}
	if !res.Quorum {
		v.find(Finding{Reason: Absent, Axis: AxisWitness, Index: at(cp.Size), Detail: fmt.Sprintf("%s: the quorum of the chain policy is not met: %d cosigned", source, len(res.Cosigned))})
		return false
	}
	switch {
	case len(res.Cosigned) > 0:
	case v.flat:
		v.alone++
	default:
		v.find(Finding{Reason: Unprotected, Axis: AxisWitness, Index: at(cp.Size), Detail: source + ": the chain policy asks for no cosignature and none by its witnesses is here: the chain vouches for itself",
			Next: "name the witness and a quorum in the policy"})
		return false
	}
	for _, c := range res.Cosigned {
		v.cosigned(c.Key, c.Time, cp.Size)
	}
	return true
}

func (v *verdict) noBad(bad []tlog.Vkey, size uint64, source string) bool {
	for _, k := range bad {
		v.find(Finding{Reason: Altered, Axis: AxisWitness, Index: at(size), Detail: fmt.Sprintf("%s: signature line of %s does not verify", source, k)})
	}
	return len(bad) == 0
}

// headCosigned is the default chain policy: a pinned cosigner signed, and no
// line of a pinned name fails.
func (v *verdict) headCosigned(n tlog.Note, cp tlog.Checkpoint, source string) bool {
	pinned := v.trust.cosigners()
	if len(pinned) == 0 {
		v.find(Finding{Reason: Unpinned, Axis: AxisWitness, Index: at(cp.Size), Detail: source + ": no cosigner key is pinned: who witnessed this head was not judged",
			Next: "pin the witness with --witness-key (its 04 line)"})
		return true
	}
	good, bad := cosignatures(n, pinned)
	if !v.noBad(bad, cp.Size, source) {
		return false
	}
	if len(good) == 0 {
		v.find(Finding{Reason: Absent, Axis: AxisWitness, Index: at(cp.Size), Detail: source + ": no cosignature by a pinned cosigner", Want: pinned[0].String()})
		return false
	}
	for key, when := range good {
		v.cosigned(pinned[key], when, cp.Size)
	}
	return true
}

// cosignatures verifies the lines of pinned keys; good is by index in pinned.
func cosignatures(n tlog.Note, pinned []tlog.Vkey) (good map[int]time.Time, bad []tlog.Vkey) {
	good = map[int]time.Time{}
	for i, k := range pinned {
		sig, err := n.Verify(k)
		switch {
		case err == nil:
			good[i], _ = sig.Time()
		case !errors.Is(err, tlog.ErrNoSignature):
			bad = append(bad, k)
		}
	}
	return good, bad
}

func (v *verdict) cosigned(k tlog.Vkey, when time.Time, size uint64) {
	v.dated(when)
	v.checked(AxisWitness, "head of size %d cosigned by pinned %s at %s (its clock)%s", size, k.Name, when.UTC().Format(time.RFC3339), v.age(when))
}

// age says how old a stored checkpoint is.
func (v *verdict) age(when time.Time) string {
	if v.trust.Now.IsZero() {
		return ""
	}
	return fmt.Sprintf(", %s old", lasted(v.trust.Now.Sub(when)))
}

// checkpoint judges the witness log's own checkpoint. The quorum of a policy is
// asked for unless the checkpoint is shown to be a prefix of one that meets it:
// stamping does not wait for cosigners.
func (v *verdict) checkpoint(n tlog.Note, cp tlog.Checkpoint, quorum bool) bool {
	good, bad := cosignatures(n, v.trust.cosigners())
	if !v.noBad(bad, cp.Size, "log checkpoint") {
		return false
	}
	for _, when := range good {
		v.dated(when)
	}
	if quorum && v.trust.Policy != nil && !v.checkpointPolicy(n, cp) {
		return false
	}
	keys := v.trust.logKeys(cp.Origin)
	if len(keys) == 0 {
		v.find(Finding{Reason: Unpinned, Axis: AxisWitness, Detail: "no log key named " + cp.Origin + " is pinned: who signed the log's checkpoint was not judged",
			Next: "pin the log with --witness-key (its 01 line) or --policy"})
		return true
	}
	for _, k := range keys {
		if !v.signedBy(n, k, AxisWitness, cp.Size, "log checkpoint") {
			return false
		}
		v.checkedAt(AxisWitness, "log checkpoint of size", cp.Size, " signed by pinned "+k.String())
	}
	return true
}

func (v *verdict) checkpointPolicy(n tlog.Note, cp tlog.Checkpoint) bool {
	res := v.trust.Policy.Check(n)
	if !v.noBad(res.Bad, cp.Size, "log checkpoint") {
		return false
	}
	if res.Log == nil && len(v.trust.Policy.Logs()) > 0 {
		v.find(Finding{Reason: Absent, Axis: AxisWitness, Index: at(cp.Size), Detail: "log checkpoint: not signed by a log of the policy"})
		return false
	}
	if !res.Quorum {
		v.find(Finding{Reason: Absent, Axis: AxisWitness, Index: at(cp.Size),
			Detail: fmt.Sprintf("log checkpoint: the policy's quorum is not met: %d cosigned, %d ML-DSA-44 keys not judged", len(res.Cosigned), len(res.Ignored06))})
		return false
	}
	v.checkedAt(AxisWitness, "log checkpoint of size", cp.Size, fmt.Sprintf(": the policy's quorum is met, %d cosigned", len(res.Cosigned)))
	return true
}

// headLeaf is a head as the witness log holds it.
type headLeaf struct {
	head tlog.Checkpoint
	note tlog.Note
	log  tlog.Checkpoint
	sig  tlog.Note // the log's checkpoint note
}

// evidence judges what a witness log holds on one head of the chain: the leaf,
// its inclusion, the key leaves, the head's signatures, the checkpoint. With
// want it is the leaf of that very head. Nil when it cannot be relied on.
func (v *verdict) evidence(ev *Evidence, origin string, ring *keyring, want *tlog.Checkpoint, quorum bool) *headLeaf {
	leaf, h := v.openLeaf(ev, origin, want)
	if h == nil {
		return nil
	}
	var logKey *tlog.Vkey
	if keys := v.trust.logKeys(h.log.Origin); len(keys) > 0 {
		logKey = &keys[0]
	}
	told := keyring{origin: origin}
	if !v.keyLeaves(ev, leaf, &told, logKey) {
		return nil
	}
	if !v.agree(*ring, told) {
		return nil
	}
	*ring = told
	source := fmt.Sprintf("leaf %d", ev.Leaf.Index)
	if !v.head(h.note, h.head, told, source) || !v.checkpoint(h.sig, h.log, quorum) {
		return nil
	}
	v.keyInForce(told, ev, h)
	v.checkedAt(AxisWitness, fmt.Sprintf("leaf %d, the head of size %d, is included in the log %s at size", ev.Leaf.Index, h.head.Size, h.log.Origin), h.log.Size, "")
	return h
}

// agree compares the keys told by the chain's own receipts with those of the
// key leaves: as far as the receipts go, the witness knows no key that they do
// not bring.
func (v *verdict) agree(own, told keyring) bool {
	if len(own.keys) == 0 {
		return true
	}
	for _, k := range told.keys {
		if k.from <= own.known && !own.holds(k.key) && !told.operator {
			v.find(Finding{Reason: Spliced, Axis: AxisKey, Have: own.keys[len(own.keys)-1].key.String(), Want: k.key.String(),
				Detail: "the witness holds a head key that no receipt of this chain brings"})
			return false
		}
	}
	return true
}

// openLeaf parses a head leaf, its body and its proof.
func (v *verdict) openLeaf(ev *Evidence, origin string, want *tlog.Checkpoint) (api.Leaf, *headLeaf) {
	index := at(ev.Leaf.Index)
	refuse := func(r Reason, format string, args ...any) (api.Leaf, *headLeaf) {
		v.find(Finding{Reason: r, Axis: AxisWitness, Index: index, Have: tlog.LeafHash(ev.LeafBytes).Hex(), Detail: "head leaf: " + fmt.Sprintf(format, args...)})
		return api.Leaf{}, nil
	}
	leaf, err := api.ParseLeaf(ev.LeafBytes)
	if err != nil {
		return refuse(parseReason(err), "%v", err)
	}
	if leaf.Type != api.LeafHead || leaf.Origin != origin {
		return refuse(Spliced, "a %s leaf of %s, want a head leaf of %s", leaf.Type, leaf.Origin, origin)
	}
	head, note, err := tlog.ParseSignedCheckpoint(leaf.Body)
	if err != nil {
		return refuse(Malformed, "%v", err)
	}
	if head.Origin != origin || want != nil && !bytes.Equal(head.Text(), want.Text()) {
		return refuse(Spliced, "it holds the head of %s at size %d with root %s", head.Origin, head.Size, head.Root.Hex())
	}
	logCP, logNote, err := tlog.ParseSignedCheckpoint(ev.Leaf.Checkpoint)
	if err != nil {
		return refuse(Malformed, "its checkpoint: %v", err)
	}
	if last := len(note.Signatures) - 1; last != 1 || note.Signatures[last].Name != logCP.Origin+"/cosigner" {
		return refuse(Malformed, "its note does not hold the chain's line and the log's cosignature alone")
	}
	if _, _, err := ev.Leaf.Verify(tlog.LeafHash(ev.LeafBytes)); err != nil {
		return refuse(Absent, "not included in the log at size %d: %v", logCP.Size, err)
	}
	return leaf, &headLeaf{head: head, note: note, log: logCP, sig: logNote}
}

// consistent judges two checkpoints of one log against each other. What no path
// joins may be two logs: that never passes.
func (v *verdict) consistent(a, b tlog.Checkpoint, links []LogLink) bool {
	if a.Size > b.Size {
		a, b = b, a
	}
	if a.Size == b.Size && a.Root != b.Root {
		v.find(Finding{Reason: WitnessFork, Axis: AxisWitness, Index: at(a.Size), Have: a.Root.Hex(), Want: b.Root.Hex(),
			Detail: "the log signed two roots for one size"})
		return false
	}
	if a.Size == b.Size {
		return true
	}
	for _, l := range links {
		if l.From != a.Size || l.To != b.Size {
			continue
		}
		if err := tlog.VerifyConsistency(l.From, l.To, l.Path, a.Root, b.Root); err != nil {
			v.find(Finding{Reason: WitnessFork, Axis: AxisWitness, Index: at(a.Size), Have: a.Root.Hex(), Want: b.Root.Hex(),
				Detail: fmt.Sprintf("checkpoint %d is no prefix of checkpoint %d by the path the log gave: %v", a.Size, b.Size, err)})
			return false
		}
		v.checked(AxisWitness, "log checkpoint %d is a prefix of checkpoint %d", a.Size, b.Size)
		return true
	}
	v.find(Finding{Reason: Unprotected, Axis: AxisWitness, Index: at(a.Size), Have: a.Root.Hex(), Want: b.Root.Hex(),
		Detail: fmt.Sprintf("no path shows that log checkpoint %d grew out of checkpoint %d: the log may have been forked between them", b.Size, a.Size),
		Next:   "ask the witness again; keep both checkpoints if it gives no path"})
	return false
}

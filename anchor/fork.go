package anchor

import (
	"bytes"
	"fmt"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// evidenceFile judges a file that convicts by itself, told by its first line;
// false when b is none.
func (v *verdict) evidenceFile(b []byte) bool {
	header, _, _ := bytes.Cut(b, []byte("\n"))
	switch string(header) {
	case api.ForkHeader:
		if ring := v.forkFile(b); ring.origin != "" {
			v.pins(ring)
		}
	case api.RollbackHeader:
		v.rollbackFile(b)
	case api.WitnessForkHeader:
		v.witnessForkFile(b)
	default:
		return false
	}
	v.state(AxisCompleteness, StateLimited)
	v.unchecked(AxisCompleteness, "what else the accused signed: such a file holds the two notes that convict")
	return true
}

// forkFile judges a fork file: that the heads contradict each other, and
// whether the keys under them convict the chain. It returns the keys that were
// judged.
func (v *verdict) forkFile(b []byte) (ring keyring) {
	f, err := api.ParseForkFile(b)
	var x, y api.Head
	if err == nil {
		x, y, err = f.Heads()
	}
	v.rep.Origin = x.Origin
	if err != nil {
		v.find(Finding{Reason: parseReason(err), Axis: AxisStructure, Detail: fmt.Sprintf("fork file: %v", err)})
		return ring
	}
	v.checked(AxisStructure, "fork file: known frames in order, byte for byte")
	v.checked(AxisChain, "heads of size %d and %d cannot both be of one chain%s", x.Size, y.Size, byPath(f.Path))
	keys, ring, ok := v.forkKeys(f, x.Origin)
	if !ok {
		return ring
	}
	worthX, okX := v.convicts("a", x, keys)
	worthY, okY := v.convicts("b", y, keys)
	if !okX || !okY {
		return ring
	}
	finding := Finding{Reason: Fork, Axis: AxisChain, Index: at(x.Size), Have: x.Root.Hex(), Want: y.Root.Hex(),
		Detail: fmt.Sprintf("the chain signed two histories: heads of size %d and %d that contradict each other", x.Size, y.Size),
		Next:   "keep this file: it convicts by itself; ask whoever ran the chain for both histories"}
	for _, why := range []string{worthX, worthY} {
		if why != "" {
			finding.Reason, finding.Detail = Doubtful, finding.Detail+"; "+why
			finding.Next = "a thief of the key may have signed one of them: ask who held the key when"
		}
	}
	v.find(finding)
	return ring
}

func byPath(path []tlog.Hash) string {
	if len(path) == 0 {
		return ": one size, two roots"
	}
	return ": the path from one to the other gives another root"
}

// forkTrust is whose word counts on the keys of an accused chain.
type forkTrust struct {
	history api.KeyHistory // by key leaves in a pinned log; empty: none
	pins    []tlog.Vkey    // count for every size where there is no history
	known   time.Time      // when the key leaves were seen by a pinned cosigner, zero: unknown
}

// forkKeys reads the key leaves of a fork file and judges them against the
// pins. Without a pinned log or a pinned key nobody is convicted: the keys in
// the file are the accuser's word.
func (v *verdict) forkKeys(f api.ForkFile, origin string) (k forkTrust, ring keyring, ok bool) {
	k.pins = v.trust.chainPins(origin)
	ring = keyring{origin: origin, keys: pinnedKeys(k.pins)}
	if len(f.Keys) == 0 {
		return k, ring, v.pinnedAlone(k.pins, "the file has no key leaves")
	}
	cp, note, err := tlog.ParseSignedCheckpoint(f.Keys[0].Proof.Checkpoint)
	if err != nil {
		v.find(Finding{Reason: Malformed, Axis: AxisKey, Detail: fmt.Sprintf("the checkpoint of the key leaves: %v", err)})
		return k, ring, false
	}
	if !v.checkpoint(note, cp, false) {
		return k, ring, false
	}
	logKeys := v.trust.logKeys(cp.Origin)
	told := keyring{origin: origin, leaves: true}
	history, ok := v.readKeys(f.Keys, origin, &told, logKeys)
	if !ok {
		return k, ring, false
	}
	if len(logKeys) == 0 {
		return k, told, v.pinnedAlone(k.pins, "no log key is pinned")
	}
	k.history = history
	k.known = seenAt(note, v.trust.cosigners())
	v.checked(AxisKey, "%d key leaves of the chain, as of checkpoint size %d of %s", len(f.Keys), cp.Size, cp.Origin)
	return k, told, true
}

// pinnedAlone says what a pinned chain key is worth without key leaves.
func (v *verdict) pinnedAlone(pins []tlog.Vkey, why string) bool {
	if len(pins) == 0 {
		return false
	}
	v.unchecked(AxisKey, "whether the pinned key was in force: %s, so it counts for every size", why)
	return true
}

// seenAt is the earliest time at which a pinned cosigner saw a checkpoint.
func seenAt(n tlog.Note, pinned []tlog.Vkey) (first time.Time) {
	good, _ := cosignatures(n, pinned)
	for _, when := range good {
		if first.IsZero() || when.Before(first) {
			first = when
		}
	}
	return first
}

// readKeys judges key leaves that come without a head leaf.
func (v *verdict) readKeys(leaves []api.KeyProof, origin string, ring *keyring, logKeys []tlog.Vkey) (h api.KeyHistory, ok bool) {
	ev := &Evidence{Leaf: leaves[0].Proof}
	var logKey *tlog.Vkey
	if len(logKeys) > 0 {
		logKey = &logKeys[0]
	}
	before := api.Ref{}
	for _, l := range leaves {
		k := KeyEvidence{Bytes: l.Bytes, Proof: l.Proof}
		revokes := isRevocation(l.Bytes)
		if !revokes && !v.keyLeaf(ev, &k, before, origin, ring, logKey) {
			return h, false
		}
		if err := applyKeyLeaf(&h, k, logKey); err != nil {
			v.find(Finding{Reason: Spliced, Axis: AxisKey, Index: at(l.Proof.Index), Have: tlog.LeafHash(l.Bytes).Hex(), Detail: fmt.Sprintf("key leaf: %v", err)})
			return h, false
		}
		if _, _, err := l.Proof.Verify(tlog.LeafHash(l.Bytes)); err != nil {
			v.find(Finding{Reason: Absent, Axis: AxisKey, Index: at(l.Proof.Index), Detail: fmt.Sprintf("key leaf: %v", err)})
			return h, false
		}
		before = api.At(l.Proof.Index)
	}
	return h, true
}

func isRevocation(leafBytes []byte) bool {
	l, err := api.ParseLeaf(leafBytes)
	if err != nil {
		return false
	}
	k, _, err := api.ParseKeyNote(l.Body)
	return err == nil && k.Act == api.KeyRevoke
}

// applyKeyLeaf reads one more key leaf into a history. Without a log key an
// operator's line cannot be told from a false one, and counts.
func applyKeyLeaf(h *api.KeyHistory, k KeyEvidence, logKey *tlog.Vkey) error {
	l, err := api.ParseLeaf(k.Bytes)
	if err != nil {
		return err
	}
	if l.Type != api.LeafKey || l.Keys != h.Newest {
		return fmt.Errorf("a %s leaf with keys %s, want a key leaf with keys %s", l.Type, l.Keys, h.Newest)
	}
	note, signed, err := api.ParseKeyNote(l.Body)
	if err != nil {
		return err
	}
	if note.Origin != l.Origin {
		return fmt.Errorf("its note is of %s", note.Origin)
	}
	var operatorKey tlog.Vkey
	if logKey != nil {
		operatorKey = *logKey
	}
	operator, err := note.SignedBy(signed, operatorKey)
	if err != nil && logKey != nil {
		return err
	}
	return h.Apply(k.Proof.Index, note, operator || err != nil)
}

// convicts judges the one line under a head. doubt says why the line, though
// good, leaves room for a thief; ok is false where it does not count at all.
func (v *verdict) convicts(name string, h api.Head, k forkTrust) (doubt string, ok bool) {
	line := h.Line()
	for _, c := range v.trust.cosigners() {
		if line.Name == c.Name && line.ID == c.ID {
			return v.convictsByCosigner(name, h, c, k)
		}
	}
	for _, e := range k.history.Entries {
		if line.Name != e.Key.Name || line.ID != e.Key.ID {
			continue
		}
		if !v.signedBy(h.Note, e.Key, AxisSignatures, h.Size, "head "+name) {
			return "", false
		}
		v.checked(AxisSignatures, "head %s, size %d, signed by the chain's key %s", name, h.Size, e.Key)
		if e.Closed.Present {
			return fmt.Sprintf("head %s is signed by a key that leaf %s closed", name, e.Closed), true
		}
		return "", true
	}
	for _, pin := range k.pins {
		if len(k.history.Entries) == 0 && line.Name == pin.Name && line.ID == pin.ID {
			ok = v.signedBy(h.Note, pin, AxisSignatures, h.Size, "head "+name)
			if ok {
				v.checked(AxisSignatures, "head %s, size %d, signed by the pinned key %s", name, h.Size, pin)
			}
			return "", ok
		}
	}
	v.find(Finding{Reason: Unpinned, Axis: AxisSignatures, Index: at(h.Size), Detail: fmt.Sprintf("head %s is signed by %.200s, a key that you have not pinned and no key leaf brings", name, line.Name),
		Next: "pin the chain with --chain-key, or the witness with --witness-key (both its lines)"})
	return "", false
}

// convictsByCosigner counts a pinned cosigner's word that the key in force then
// had signed. It must be older than the leaf that closed the key.
func (v *verdict) convictsByCosigner(name string, h api.Head, c tlog.Vkey, k forkTrust) (doubt string, ok bool) {
	if !v.signedBy(h.Note, c, AxisSignatures, h.Size, "head "+name) {
		return "", false
	}
	when, _ := h.Line().Time()
	v.checked(AxisSignatures, "head %s, size %d, cosigned by pinned %s at %s", name, h.Size, c.Name, when.UTC().Format(time.RFC3339))
	e, found := k.history.Signed(h.Size)
	switch {
	case !found:
		v.unchecked(AxisKey, "which key signed head %s: the file has no key leaves in a pinned log", name)
		return fmt.Sprintf("no key leaf says by which key head %s was signed", name), true
	case e.Doubtful():
		return fmt.Sprintf("the key of head %s was revoked by leaf %s, since leaf %s", name, e.Closed, e.Since), true
	case e.Closed.Present && !k.known.IsZero() && when.After(k.known):
		return fmt.Sprintf("head %s was cosigned after the leaf %s that closed its key", name, e.Closed), true
	case e.Closed.Present:
		v.unchecked(AxisKey, "that the cosignature of head %s is older than leaf %s, which closed its key: the cosigner's word, who signs no head by a closed key", name, e.Closed)
	}
	return "", true
}

// witnessForkFile judges two head leaves of one log.
func (v *verdict) witnessForkFile(b []byte) {
	f, err := api.ParseWitnessForkFile(b)
	var log tlog.Checkpoint
	var note tlog.Note
	if err == nil {
		log, note, err = f.Judge()
	}
	if err != nil {
		v.find(Finding{Reason: parseReason(err), Axis: AxisStructure, Detail: fmt.Sprintf("witness-fork file: %v", err)})
		return
	}
	v.checked(AxisStructure, "witness-fork file: known frames in order, byte for byte")
	if l, err := api.ParseLeaf(f.A.Bytes); err == nil {
		v.rep.Origin = l.Origin
	}
	if v.checkpoint(note, log, false) && v.pinsLog(log.Origin) {
		v.find(contradictingLeaves(f, log))
	}
}

func (v *verdict) pinsLog(name string) bool {
	if len(v.trust.logKeys(name)) > 0 {
		return true
	}
	return v.trust.Policy != nil && len(v.trust.Policy.Logs()) > 0
}

func contradictingLeaves(f api.WitnessForkFile, log tlog.Checkpoint) Finding {
	return Finding{Reason: WitnessFork, Axis: AxisWitness, Index: at(f.A.Proof.Index), To: at(f.B.Proof.Index),
		Have: tlog.LeafHash(f.A.Bytes).Hex(), Want: tlog.LeafHash(f.B.Bytes).Hex(),
		Detail: fmt.Sprintf("the log %s holds two heads of one chain that contradict each other, in its checkpoint of size %d", log.Origin, log.Size),
		Next:   "keep this file: it convicts the witness by itself"}
}

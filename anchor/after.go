package anchor

import (
	"context"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// maxForkFiles bounds the fork files that are fetched: one convicts.
const maxForkFiles = 1

// fetchAfter reads the origin's leaves behind its newest head, as of the same
// log size, and the fork files that accuse it. The places are a witness's
// hints: one that holds a leaf back is found by whoever walks the whole log.
func (s *Snapshot) fetchAfter(ctx context.Context, c *api.Client, head, size uint64) error {
	places, err := c.Places(ctx, s.Origin)
	if err != nil {
		return err
	}
	for at, n := places.Last, 0; at > head && at < size; n++ {
		if n == maxWalk {
			return fmt.Errorf("more than %d leaves follow the newest head", maxWalk)
		}
		k := KeyEvidence{}
		var leaf api.Leaf
		if k.Bytes, k.Proof, leaf, err = fetchLeaf(ctx, c, at, size); err != nil {
			return err
		}
		s.After = append([]KeyEvidence{k}, s.After...)
		if !leaf.Prev.Present || leaf.Prev.Index >= at {
			return fmt.Errorf("leaf %d: the back links do not lead to the head", at)
		}
		at = leaf.Prev.Index
	}
	for i, index := range places.Forks {
		if i == maxForkFiles {
			break
		}
		b, err := c.ForkFile(ctx, index)
		if err != nil {
			return err
		}
		s.Forks = append(s.Forks, b)
	}
	return nil
}

// after judges what the log says of the chain since its newest head: a key
// that was revoked makes earlier heads doubtful, and a fork file convicts.
func (v *verdict) after(s *Snapshot) {
	for i, b := range s.Forks {
		v.forkFile(b)
		v.rep.Origin = s.Origin
		v.rep.Proofs = append(v.rep.Proofs, ProofFile{Name: fmt.Sprintf("fork-%d.txt", i+1), Bytes: b})
	}
	var logKey *tlog.Vkey
	if cp, _, err := tlog.ParseSignedCheckpoint(s.Newest.Leaf.Checkpoint); err == nil {
		if keys := v.trust.logKeys(cp.Origin); len(keys) > 0 {
			logKey = &keys[0]
		}
	}
	history, ok := v.keysSince(s, logKey)
	if !ok {
		return
	}
	for _, ev := range []*Evidence{s.Newest, s.Stamped} {
		if ev != nil {
			v.keyAsOf(history, ev)
		}
	}
}

// keysSince is the key history up to the newest leaf shown. What is wrong with
// the leaves up to the head is found where the head is judged.
func (v *verdict) keysSince(s *Snapshot, logKey *tlog.Vkey) (h api.KeyHistory, ok bool) {
	for _, k := range s.Newest.Keys {
		if applyKeyLeaf(&h, k, logKey) != nil {
			return h, false
		}
	}
	before := s.Newest.Leaf.Index
	for _, k := range s.After {
		refuse := func(r Reason, format string, args ...any) (api.KeyHistory, bool) {
			v.find(Finding{Reason: r, Axis: AxisKey, Index: at(k.Proof.Index), Have: tlog.LeafHash(k.Bytes).Hex(),
				Detail: "leaf after the newest head: " + fmt.Sprintf(format, args...)})
			return h, false
		}
		leaf, err := api.ParseLeaf(k.Bytes)
		if err != nil {
			return refuse(parseReason(err), "%v", err)
		}
		if string(k.Proof.Checkpoint) != string(s.Newest.Leaf.Checkpoint) {
			return refuse(Malformed, "proved at another checkpoint than the head leaf")
		}
		if _, _, err := k.Proof.Verify(tlog.LeafHash(k.Bytes)); err != nil {
			return refuse(Absent, "%v", err)
		}
		if leaf.Origin != s.Origin || leaf.Prev != api.At(before) {
			return refuse(Spliced, "a %s leaf of %s after leaf %s, want one of %s after leaf %d", leaf.Type, leaf.Origin, leaf.Prev, s.Origin, before)
		}
		before = k.Proof.Index
		if leaf.Type != api.LeafKey {
			continue
		}
		if err := applyKeyLeaf(&h, k, logKey); err != nil {
			return refuse(Spliced, "%v", err)
		}
	}
	return h, true
}

// keyAsOf says what the key under a head leaf is worth by the key leaves that
// came later. That the head's signature holds is judged elsewhere.
func (v *verdict) keyAsOf(h api.KeyHistory, ev *Evidence) {
	cp, note, err := headOfLeaf(ev.LeafBytes)
	if err != nil {
		return
	}
	for _, e := range h.Entries {
		if _, err := note.Verify(e.Key); err != nil {
			continue
		}
		switch status := h.Status(e.Key, ev.Leaf.Index); status {
		case api.KeyDoubtful:
			v.find(Finding{Reason: Doubtful, Axis: AxisKey, Index: at(ev.Leaf.Index), Have: e.Key.String(),
				Detail: fmt.Sprintf("the key of the head of size %d was revoked by leaf %s, since leaf %s: a thief may have signed this head", cp.Size, e.Closed, e.Since),
				Next:   "rely on heads before that leaf only"})
		case api.KeyIsClosed, api.KeyRotated, api.KeyNotYet:
			v.find(Finding{Reason: Revoked, Axis: AxisKey, Index: at(ev.Leaf.Index), Have: e.Key.String(),
				Detail: fmt.Sprintf("the key of the head of size %d was not in force at its leaf: %s", cp.Size, status)})
		case api.KeyInForce:
			if e.Since.Present {
				v.checked(AxisKey, "the key was revoked by leaf %s, since leaf %s: the head at leaf %d is older and stands", e.Closed, e.Since, ev.Leaf.Index)
			}
		}
		return
	}
}

package anchor

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// renewals judges later tokens over earlier ones: the time leaf of a token,
// included in a later checkpoint of the same log, and the token over that one.
// They say that the earlier token existed before its authority's key or
// algorithm could fail.
func (v *verdict) renewals(c Container, h *headLeaf) {
	if len(c.Renewals) == 0 {
		return
	}
	if h == nil {
		v.unchecked(AxisTime, "%d renewals of timestamps: what they renew does not hold", len(c.Renewals))
		return
	}
	// The note that each token shown so far stamps, by the token's hash.
	stamped := map[tlog.Hash][]byte{}
	for _, t := range c.Evidence.Times {
		stamped[sha256.Sum256(t.Token)] = stampedNote(h)
	}
	blobs := v.blobs(c.times(), c.Evidence.Blobs)
	for i := range c.Renewals {
		r := &c.Renewals[i]
		later, ok := v.renewalLeaf(i, r, h.log.Origin, stamped)
		if !ok {
			return
		}
		if !v.renewalToken(i, r, later, blobs) {
			return
		}
		stamped[sha256.Sum256(r.Time.Token)] = later
	}
}

// times lists every token of the container, renewals too.
func (c Container) times() []TimeEvidence {
	all := append([]TimeEvidence(nil), c.Evidence.Times...)
	for _, r := range c.Renewals {
		all = append(all, r.Time)
	}
	return all
}

// renewalLeaf judges the time leaf and its place in the log, and returns the
// note of the later checkpoint as a token stamps it.
func (v *verdict) renewalLeaf(i int, r *Renewal, log string, stamped map[tlog.Hash][]byte) (note []byte, ok bool) {
	refuse := func(reason Reason, format string, args ...any) ([]byte, bool) {
		v.find(Finding{Reason: reason, Axis: AxisTime, Index: at(r.Proof.Index), Have: tlog.LeafHash(r.Bytes).Hex(),
			Detail: fmt.Sprintf("renewal %d: ", i+1) + fmt.Sprintf(format, args...)})
		return nil, false
	}
	leaf, err := api.ParseLeaf(r.Bytes)
	if err != nil {
		return refuse(parseReason(err), "%v", err)
	}
	if leaf.Type != api.LeafTime || leaf.Origin != log {
		return refuse(Spliced, "a %s leaf of %s, want a time leaf of %s", leaf.Type, leaf.Origin, log)
	}
	body, err := api.ParseTimeBody(leaf.Body)
	if err != nil {
		return refuse(parseReason(err), "%v", err)
	}
	if before, known := stamped[body.Token]; !known || !bytes.Equal(body.Note(log), before) {
		return refuse(Spliced, "its leaf names token %s over size %d, which is not what it renews", short(body.Token.Hex()), body.Size)
	}
	cp, n, err := tlog.ParseSignedCheckpoint(r.Proof.Checkpoint)
	if err != nil {
		return refuse(Malformed, "its checkpoint: %v", err)
	}
	if cp.Origin != log {
		return refuse(Spliced, "its checkpoint is of the log %s", cp.Origin)
	}
	if _, _, err := r.Proof.Verify(tlog.LeafHash(r.Bytes)); err != nil {
		return refuse(Absent, "its time leaf is not included in the log at size %d: %v", cp.Size, err)
	}
	return stampedNote(&headLeaf{log: cp, sig: n}), v.checkpoint(n, cp, false)
}

func (v *verdict) renewalToken(i int, r *Renewal, note []byte, blobs map[api.BlobKind][][]byte) bool {
	if v.trust.TSARoots == nil {
		v.unchecked(AxisTime, "renewal %d: %s", i+1, unpinnedToken(r.Time))
		return true
	}
	tok, err := v.token(r.Time, note, blobs)
	if err != nil {
		f := tokenFinding(i, r.Time.Authority, err)
		f.Detail = fmt.Sprintf("renewal %d: %s", i+1, f.Detail)
		if f.Reason == BadTime && v.rep.NotAfter != "" {
			f.Exit = ExitIncomplete
		}
		v.find(f)
		return false
	}
	v.checked(AxisTime, "renewal %d: the token before was logged and stamped again by %s", i+1, boundText(tok))
	return true
}

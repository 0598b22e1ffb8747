package anchor

import (
	"context"
	"errors"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// Walk is every leaf of one origin in a witness log, in the log's order, each
// with its tlog-proof at one checkpoint. It is a stranger's until VerifyWalk.
type Walk struct {
	Origin string
	Leaves []KeyEvidence
}

// FetchWalk reads an origin's leaves along their back links, from the newest
// that the witness names, as of its newest checkpoint. It refuses more than
// most leaves.
func FetchWalk(ctx context.Context, c *api.Client, origin string, most int) (*Walk, error) {
	places, err := c.Places(ctx, origin)
	if err != nil {
		return nil, err
	}
	note, err := c.CheckpointLatest(ctx)
	if err != nil {
		return nil, err
	}
	cp, _, err := tlog.ParseSignedCheckpoint(note)
	if err != nil {
		return nil, fmt.Errorf("its checkpoint: %w", err)
	}
	w := &Walk{Origin: origin}
	for next := api.At(places.Last); next.Present; {
		if len(w.Leaves) == most {
			return nil, fmt.Errorf("%s has more than %d leaves", origin, most)
		}
		k := KeyEvidence{}
		var leaf api.Leaf
		if k.Bytes, k.Proof, leaf, err = fetchLeaf(ctx, c, next.Index, cp.Size); err != nil {
			return nil, err
		}
		if leaf.Prev.Present && leaf.Prev.Index >= next.Index {
			return nil, fmt.Errorf("leaf %d: its back link leads forward", next.Index)
		}
		w.Leaves, next = append(w.Leaves, k), leaf.Prev
	}
	for i, j := 0, len(w.Leaves)-1; i < j; i, j = i+1, j-1 {
		w.Leaves[i], w.Leaves[j] = w.Leaves[j], w.Leaves[i]
	}
	return w, nil
}

// VerifyWalk judges all that a log holds of one chain, offline: links, keys,
// every head under the key in force at its leaf, and that each head extends
// the one before. A log that holds contradicting heads convicts itself: the
// report has the file.
func VerifyWalk(w Walk, t Trust) Report {
	v := newVerdict("walk of "+w.Origin, "", t)
	v.rep.Origin = w.Origin
	j := walkJudge{v: v, w: w, ring: keyring{origin: w.Origin, leaves: true}}
	j.run()
	v.state(AxisCompleteness, StateLimited)
	v.unchecked(AxisCompleteness, "leaves that the log holds and did not link: only a reader of the whole log finds them")
	return v.close()
}

// walkJudge goes once over the leaves, oldest first.
type walkJudge struct {
	v    *verdict
	w    Walk
	log  tlog.Checkpoint
	ring keyring

	logKey  *tlog.Vkey
	history api.KeyHistory
	prev    api.Ref
	head    *api.HeadLeaf // newest so far
	at      int           // its place in w.Leaves
	byLeaf  []headMark
	heads   int
}

// headMark remembers under which key a head was signed.
type headMark struct {
	index, size uint64
	key         tlog.Vkey
}

func (j *walkJudge) run() {
	if len(j.w.Leaves) == 0 {
		j.v.find(Finding{Reason: Absent, Axis: AxisWitness, Detail: "the log shows no leaf of this chain"})
		return
	}
	cp, note, err := tlog.ParseSignedCheckpoint(j.w.Leaves[0].Proof.Checkpoint)
	if err != nil {
		j.v.find(Finding{Reason: Malformed, Axis: AxisWitness, Detail: fmt.Sprintf("the checkpoint: %v", err)})
		return
	}
	if j.log = cp; !j.v.checkpoint(note, cp, false) {
		return
	}
	if keys := j.v.trust.logKeys(cp.Origin); len(keys) > 0 {
		j.logKey = &keys[0]
	}
	for i := range j.w.Leaves {
		if !j.leaf(i) {
			return
		}
	}
	for _, e := range j.history.Entries {
		j.ring.keys = append(j.ring.keys, headKeyAt{from: e.From, key: e.Key})
		j.ring.operator = j.ring.operator || e.Operator && e.Index > j.history.Entries[0].Index
	}
	j.doubts()
	j.v.pins(j.ring)
	j.v.checked(AxisWitness, "%d leaves of the chain in the log %s at size %d, linked to the first; %d heads, each extending the one before", len(j.w.Leaves), cp.Origin, cp.Size, j.heads)
}

// refuse finds a fault that leaves nothing after it to be judged.
func (j *walkJudge) refuse(i int, r Reason, axis AxisName, format string, args ...any) bool {
	k := j.w.Leaves[i]
	j.v.find(Finding{Reason: r, Axis: axis, Index: at(k.Proof.Index), Have: tlog.LeafHash(k.Bytes).Hex(), Detail: fmt.Sprintf(format, args...)})
	return false
}

func (j *walkJudge) leaf(i int) bool {
	k := j.w.Leaves[i]
	l, err := api.ParseLeaf(k.Bytes)
	if errors.Is(err, api.ErrUnknownVersion) {
		j.refuse(i, UnknownVersion, AxisStructure, "%v", err)
		return false
	}
	if err != nil {
		return j.refuse(i, Malformed, AxisStructure, "%v", err)
	}
	if string(k.Proof.Checkpoint) != string(j.w.Leaves[0].Proof.Checkpoint) {
		return j.refuse(i, Malformed, AxisWitness, "proved at another checkpoint than the first leaf")
	}
	if _, _, err := k.Proof.Verify(tlog.LeafHash(k.Bytes)); err != nil {
		return j.refuse(i, Absent, AxisWitness, "%v", err)
	}
	if l.Origin != j.w.Origin || l.Prev != j.prev || l.Keys != j.history.Newest {
		return j.refuse(i, Spliced, AxisWitness, "a %s leaf of %s with prev %s and keys %s; want %s, %s and %s",
			l.Type, l.Origin, l.Prev, l.Keys, j.w.Origin, j.prev, j.history.Newest)
	}
	j.prev = api.At(k.Proof.Index)
	return j.body(i, l)
}

func (j *walkJudge) body(i int, l api.Leaf) bool {
	switch l.Type {
	case api.LeafKey:
		if err := applyKeyLeaf(&j.history, j.w.Leaves[i], j.logKey); err != nil {
			return j.refuse(i, keyReason(err), AxisKey, "key leaf: %v", err)
		}
	case api.LeafHead:
		return j.headLeaf(i, l)
	case api.LeafFork:
		f, err := api.ParseForkFile(l.Body)
		if err != nil {
			return j.refuse(i, parseReason(err), AxisStructure, "fork leaf: %v", err)
		}
		f.Keys = j.keyProofs()
		j.v.forkFile(f.Bytes())
		j.v.rep.Proofs = append(j.v.rep.Proofs, ProofFile{Name: fmt.Sprintf("fork-%d.txt", j.w.Leaves[i].Proof.Index), Bytes: f.Bytes()})
	case api.LeafRollback:
		j.v.rollbackFile(l.Body)
	case api.LeafEvent:
		return j.ownNote(i, func() (tlog.Note, string, error) { e, n, err := api.ParseEvent(l.Body); return n, e.Log, err })
	case api.LeafStamp:
		return j.ownNote(i, func() (tlog.Note, string, error) { s, n, err := api.ParseStamp(l.Body); return n, s.Log, err })
	}
	return true
}

func keyReason(err error) Reason {
	switch {
	case errors.Is(err, api.ErrKeyRevoked), errors.Is(err, api.ErrKeyReused):
		return Revoked
	case errors.Is(err, api.ErrForbidden):
		return Altered
	case errors.Is(err, api.ErrMalformed):
		return Malformed
	}
	return Spliced
}

// keyProofs are the key leaves seen so far.
func (j *walkJudge) keyProofs() (keys []api.KeyProof) {
	for _, k := range j.w.Leaves {
		if l, err := api.ParseLeaf(k.Bytes); err == nil && l.Type == api.LeafKey && api.At(k.Proof.Index).Index <= j.history.Newest.Index {
			keys = append(keys, api.KeyProof(k))
		}
	}
	return keys
}

// ownNote judges an event or a stamp: by the key in force, for this log.
func (j *walkJudge) ownNote(i int, parse func() (tlog.Note, string, error)) bool {
	note, log, err := parse()
	if err != nil {
		return j.refuse(i, parseReason(err), AxisStructure, "%v", err)
	}
	if log != j.log.Origin {
		return j.refuse(i, Spliced, AxisWitness, "a note for the log %s", log)
	}
	_, ok := j.signed(i, note)
	return ok
}

// signed wants the line of the key in force.
func (j *walkJudge) signed(i int, note tlog.Note) (tlog.Vkey, bool) {
	e, ok := j.history.InForce()
	if !ok {
		return e.Key, j.refuse(i, Revoked, AxisKey, "no key was in force at this leaf")
	}
	for _, old := range j.history.Entries {
		if _, err := note.Verify(old.Key); err == nil && !old.Key.Equal(e.Key) {
			return e.Key, j.refuse(i, Revoked, AxisKey, "signed by %s, which leaf %s closed", old.Key, old.Closed)
		}
	}
	return e.Key, j.v.signedBy(note, e.Key, AxisSignatures, j.w.Leaves[i].Proof.Index, "leaf")
}

func (j *walkJudge) headLeaf(i int, l api.Leaf) bool {
	h, err := api.ParseHeadLeaf(j.w.Leaves[i].Proof.Index, l)
	if err != nil {
		return j.refuse(i, Malformed, AxisStructure, "%v", err)
	}
	key, ok := j.signed(i, h.Note)
	if !ok {
		return false
	}
	if _, bad := cosignatures(h.Note, j.v.trust.cosigners()); !j.v.noBad(bad, h.Head.Size, fmt.Sprintf("leaf %d", h.Index)) {
		return false
	}
	if j.head != nil && !j.extends(i, h) {
		return false
	}
	if e, _ := j.history.InForce(); h.Head.Size < e.From {
		return j.refuse(i, Spliced, AxisKey, "a head of size %d by a key that signs from %d", h.Head.Size, e.From)
	}
	j.byLeaf = append(j.byLeaf, headMark{h.Index, h.Head.Size, key})
	j.head, j.at, j.heads = &h, i, j.heads+1
	return true
}

// extends compares a head with the one before it in the log.
func (j *walkJudge) extends(i int, h api.HeadLeaf) bool {
	before := j.head.Head
	if before == h.Head {
		return j.refuse(i, Duplicate, AxisWitness, "size %d and its root stand twice in the log", h.Head.Size)
	}
	if h.Head.Size > before.Size {
		if before.Size == 0 {
			return true
		}
		if err := tlog.VerifyConsistency(before.Size, h.Head.Size, h.Proof, before.Root, h.Head.Root); err == nil {
			return true
		}
	}
	f := api.WitnessForkFile{A: api.KeyProof(j.w.Leaves[j.at]), B: api.KeyProof(j.w.Leaves[i])}
	j.v.find(contradictingLeaves(f, j.log))
	if _, _, err := f.Judge(); err == nil {
		name := fmt.Sprintf("witness-fork-%d-%d.txt", f.A.Proof.Index, f.B.Proof.Index)
		j.v.rep.Proofs = append(j.v.rep.Proofs, ProofFile{Name: name, Bytes: f.Bytes()})
	}
	return false
}

// doubts tells of the heads between a revocation's since and its leaf.
func (j *walkJudge) doubts() {
	for _, m := range j.byLeaf {
		if j.history.Status(m.key, m.index) == api.KeyDoubtful {
			e, _ := j.history.Find(m.key)
			j.v.find(Finding{Reason: Doubtful, Axis: AxisKey, Index: at(m.index), Have: m.key.String(),
				Detail: fmt.Sprintf("the head of size %d lies between leaf %s, since which its key is revoked, and the revocation, leaf %s", m.size, e.Since, e.Closed)})
		}
	}
}

package anchor

import (
	"fmt"
	"iter"
	"slices"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// Lines is a chain folder to verify, read once from its first line.
// *chain.Reader is one.
type Lines interface {
	Lines(from uint64) iter.Seq2[chain.Line, error]
}

// Salts tells whether a committed field can still be opened: chain.ErrErased or
// chain.ErrNotFound where it cannot. *chain.Reader is one.
type Salts interface {
	Salt(seq uint64, f receipts.FieldID) ([32]byte, error)
}

// Source is what is verified: a chain or a proof container, and against what.
// All of it is a stranger's bytes.
type Source struct {
	Target string // how the report names it

	// Chain and Container: exactly one. A nil Chain without a container is a
	// chain that is not there, which is a failure and not nothing to check.
	Chain     Lines
	Container []byte

	// Salts, if not nil, is asked for the salt of every committed field, to find
	// those that are gone.
	Salts Salts

	// Against: at most one of them.
	Against    string // how the report names it
	Witness    *Snapshot
	Checkpoint []byte // a signed note
	Flat       []byte // a flat anchor file

	// From and To limit what is judged of a chain to these receipts, ends
	// included; nil is open. The whole chain is read all the same.
	From, To *uint64

	// Progress is told the receipts judged so far, if not nil.
	Progress func(receipts uint64)
}

// Verify judges a source by what the auditor holds. It reads no clock, no
// network, and no file but through s.Chain; it never panics on hostile bytes.
func Verify(s Source, t Trust) Report {
	v := newVerdict(s.Target, s.Against, t)
	if s.Container != nil {
		v.container(s)
		return v.close()
	}
	v.chain(s)
	return v.close()
}

func (s Source) consults() bool {
	return s.Witness != nil || s.Checkpoint != nil || s.Flat != nil
}

func (v *verdict) chain(s Source) {
	heads := v.heads(s)
	marks := make([]mark, len(heads))
	for i, h := range heads {
		marks[i] = mark{size: h.checkpoint.Size, want: h.checkpoint.Root}
	}
	j := newLineJudge(v, marks)
	j.story.salts = s.Salts
	if s.Chain != nil {
		j.prune = newPrune(s.Chain)
		j.run(s)
	}
	j.finish()
	ring := keyring{origin: j.origin, keys: j.headKeys, known: j.next}
	if ring.origin == "" {
		ring.origin = v.claimedOrigin(s, heads)
		v.rep.Origin = ring.origin
	}
	v.chainAgainst(s, j, heads, ring)
}

// claimedOrigin names the chain when the chain itself cannot.
func (v *verdict) claimedOrigin(s Source, heads []witnessedHead) string {
	switch {
	case v.trust.Origin != "":
		return v.trust.Origin
	case s.Witness != nil:
		return s.Witness.Origin
	case len(v.trust.ChainKeys) > 0:
		return v.trust.ChainKeys[0].Name
	case len(heads) > 0:
		return heads[0].checkpoint.Origin
	}
	return ""
}

// run streams the lines through the judge in bounded memory.
func (j *lineJudge) run(s Source) {
	stop := make(chan struct{})
	defer close(stop)
	read, failed := readAhead(s.Chain.Lines(0), stop)
	for batch := range judgeAhead(read, stop) {
		j.take(batch)
		if s.Progress != nil {
			s.Progress(j.next)
		}
	}
	if err := failed(); err != nil {
		j.broken = true
		j.find(Finding{Reason: Malformed, Axis: AxisStructure, Index: at(j.next), Detail: fmt.Sprintf("reading stopped: %v", err)})
	}
}

// heads reads what the chain is held against, before any of it is judged.
func (v *verdict) heads(s Source) []witnessedHead {
	switch {
	case s.Witness != nil:
		return v.snapshotHeads(s.Witness)
	case s.Checkpoint != nil:
		cp, note, err := tlog.ParseSignedCheckpoint(s.Checkpoint)
		if err != nil {
			v.find(Finding{Reason: Malformed, Axis: AxisWitness, Detail: fmt.Sprintf("checkpoint %s: %v", s.Against, err)})
			return nil
		}
		return []witnessedHead{{checkpoint: cp, note: note, source: "checkpoint file"}}
	case s.Flat != nil:
		return v.flatHeads(s.Flat)
	}
	return nil
}

// snapshotHeads reads the heads in a snapshot's leaves. What cannot be read is
// found when the leaves are judged.
func (v *verdict) snapshotHeads(s *Snapshot) []witnessedHead {
	var heads []witnessedHead
	for _, ev := range []*Evidence{s.Newest, s.Stamped} {
		if ev == nil {
			continue
		}
		if cp, note, err := headOfLeaf(ev.LeafBytes); err == nil {
			heads = append(heads, witnessedHead{checkpoint: cp, note: note, source: fmt.Sprintf("leaf %d", ev.Leaf.Index)})
		}
	}
	if s.Head == nil {
		return heads
	}
	cp, note, err := tlog.ParseSignedCheckpoint(s.Head)
	if err == nil && (len(heads) == 0 || heads[0].checkpoint != cp) {
		heads = append(heads, witnessedHead{checkpoint: cp, note: note, source: answeredHead})
	}
	return heads
}

// answeredHead is a cosigned head that the witness serves beside its log.
const answeredHead = "head the witness answers with"

func (v *verdict) flatHeads(b []byte) []witnessedHead {
	flat := ParseFlat(b)
	if flat.Torn > 0 {
		v.unchecked(AxisWitness, "%d torn or unreadable lines of the anchor file, skipped", flat.Torn)
	}
	var heads []witnessedHead
	for _, n := range flat.Notes {
		cp, err := tlog.ParseCheckpoint(n.Text)
		if err == nil {
			heads = append(heads, witnessedHead{checkpoint: cp, note: n, source: "anchor file"})
		}
	}
	return heads
}

// chainAgainst judges the heads, then the chain by the heads that hold.
func (v *verdict) chainAgainst(s Source, j *lineJudge, heads []witnessedHead, ring keyring) {
	var good []witnessedHead
	switch {
	case !s.consults():
		v.find(Finding{Reason: Unprotected, Axis: AxisWitness, Detail: "no witness was consulted: only the files themselves were checked, and whoever holds the key can rewrite them all",
			Next: "verify --against the witness's URL, a cosigned checkpoint or an anchor file, with --witness-key"})
	case s.Witness != nil:
		good = v.snapshot(s.Witness, heads, &ring)
	default:
		good = v.keptHeads(s, heads, ring)
	}
	if len(ring.keys) > 0 || j.next > 0 {
		v.pins(ring)
	}
	good = slices.DeleteFunc(good, func(h witnessedHead) bool { return h.checkpoint.Size == 0 }) // covers nothing
	v.lengths(s, j, good)
	matched := v.roots(j, good)
	v.tooOld(s.consults())
	v.narrow(window{s.From, s.To}, matched)
}

// keptHeads judges the heads of a checkpoint file or an anchor file.
func (v *verdict) keptHeads(s Source, heads []witnessedHead, ring keyring) []witnessedHead {
	if len(ring.keys) == 0 {
		ring.keys = pinnedKeys(v.trust.chainPins(ring.origin))
	}
	var own, good []witnessedHead
	for _, h := range heads {
		if h.checkpoint.Origin == ring.origin {
			own = append(own, h)
		}
	}
	if foreign := len(heads) - len(own); foreign > 0 {
		v.unchecked(AxisWitness, "%s of other origins than %s", counted(foreign, "head", "heads"), ring.origin)
	}
	if s.Flat != nil && v.trust.ChainPolicy == nil {
		good = v.flatHolds(own, ring)
	} else {
		v.flat = s.Flat != nil
		for _, h := range own {
			if v.head(h.note, h.checkpoint, ring, h.source) {
				good = append(good, h)
			}
		}
		v.keptAlone(v.alone)
	}
	if len(good) > 0 {
		v.unchecked(AxisWitness, "that these heads lie in a public log: only their signatures were judged")
	}
	v.forked(good)
	return good
}

func pinnedKeys(pins []tlog.Vkey) []headKeyAt {
	var keys []headKeyAt
	for _, k := range pins {
		keys = append(keys, headKeyAt{key: k})
	}
	return keys
}

// flatHolds judges heads the auditor kept: the chain's signature on each, and
// the cosignatures of pinned names that are there.
func (v *verdict) flatHolds(heads []witnessedHead, ring keyring) []witnessedHead {
	var good []witnessedHead
	alone := 0
	for _, h := range heads {
		key, ok := ring.inForce(h.checkpoint.Size)
		if !ok {
			v.find(Finding{Reason: Unpinned, Axis: AxisKey, Detail: "no key is known for " + h.checkpoint.Origin, Next: "pin the chain with --chain-key"})
			return nil
		}
		cosigned, bad := cosignatures(h.note, v.trust.cosigners())
		if !v.signedBy(h.note, key, AxisSignatures, h.checkpoint.Size, h.source) || !v.noBad(bad, h.checkpoint.Size, h.source) {
			continue
		}
		if len(cosigned) == 0 {
			alone++
		}
		good = append(good, h)
	}
	v.checked(AxisSignatures, "anchor file: %d heads signed by the chain's key", len(good))
	v.checked(AxisWitness, "anchor file: %d of %d heads cosigned by a pinned witness", len(good)-alone, len(good))
	v.keptAlone(alone)
	return good
}

// keptAlone tells of heads that nobody but the chain and the keeper vouch for.
func (v *verdict) keptAlone(n int) {
	if n > 0 {
		v.unchecked(AxisWitness, "%d heads of the anchor file carry no cosignature by a pinned witness: they are worth what the keeping of the file is worth", n)
	}
}

// forked looks for two roots of one size, both signed by the chain.
func (v *verdict) forked(heads []witnessedHead) {
	bySize := map[uint64]witnessedHead{}
	for _, h := range heads {
		other, seen := bySize[h.checkpoint.Size]
		bySize[h.checkpoint.Size] = h
		if !seen || other.checkpoint.Root == h.checkpoint.Root {
			continue
		}
		v.find(Finding{Reason: Fork, Axis: AxisChain, Index: at(h.checkpoint.Size), Have: other.checkpoint.Root.Hex(), Want: h.checkpoint.Root.Hex(),
			Detail: "the chain's key signed two roots for one size", Next: "keep the fork file, which convicts by itself: --json has it under proofs"})
		v.rep.Proofs = append(v.rep.Proofs, ProofFile{Name: fmt.Sprintf("fork-%d.txt", h.checkpoint.Size), Bytes: forkFile(other, h)})
	}
}

// forkFile holds both notes stripped to the chain's line (fork/v1, m = n).
func forkFile(a, b witnessedHead) []byte {
	strip := func(h witnessedHead) []byte {
		return h.note.Only(func(s tlog.Signature) bool { return s.Name == h.checkpoint.Origin }).Bytes()
	}
	return tlog.FormatSections("tool-guardian/fork/v1", []tlog.Section{{Name: "a", Data: strip(a)}, {Name: "b", Data: strip(b)}})
}

// snapshot judges what a witness answered and returns the heads that hold.
func (v *verdict) snapshot(s *Snapshot, heads []witnessedHead, ring *keyring) []witnessedHead {
	if s.Origin != ring.origin {
		v.find(Finding{Reason: Spliced, Axis: AxisWitness, Have: s.Origin, Want: ring.origin, Detail: "the witness was asked about another chain"})
		return nil
	}
	if s.Newest == nil {
		return v.unlogged(s, heads, *ring)
	}
	var good []witnessedHead
	newest := v.evidence(s.Newest, ring.origin, ring, nil, true)
	if newest != nil {
		good = append(good, witnessedHead{checkpoint: newest.head, note: newest.note, source: "newest head the witness showed"})
	}
	for _, h := range heads {
		if h.source == answeredHead && newest != nil && v.head(h.note, h.checkpoint, *ring, answeredHead) {
			good = append(good, h)
		}
	}
	v.after(s)
	if s.Stamped == nil {
		v.noTime("the witness has no timestamp over a head of this chain yet")
	} else {
		stamped := v.stampedHead(s, newest, *ring)
		if stamped != nil {
			good = append(good, witnessedHead{checkpoint: stamped.head, note: stamped.note, source: "timestamped head"})
		}
		v.times(s.Stamped, stamped)
	}
	v.forked(good)
	return good
}

// stampedHead judges the head below a timestamped checkpoint.
func (v *verdict) stampedHead(s *Snapshot, newest *headLeaf, ring keyring) *headLeaf {
	stamped := v.evidence(s.Stamped, ring.origin, &ring, nil, false)
	if stamped == nil || newest == nil {
		return nil
	}
	if stamped.log.Origin != newest.log.Origin {
		v.find(Finding{Reason: Spliced, Axis: AxisTime, Have: stamped.log.Origin, Want: newest.log.Origin, Detail: "the timestamp is of another log"})
		return nil
	}
	if !v.consistent(stamped.log, newest.log, s.Links) {
		return nil
	}
	return stamped
}

// unlogged judges a witness that cosigns and keeps no log of heads.
func (v *verdict) unlogged(s *Snapshot, heads []witnessedHead, ring keyring) []witnessedHead {
	if s.Head == nil {
		v.unchecked(AxisWitness, "%s has no head of this chain", s.Witness)
		return nil
	}
	if len(heads) == 0 {
		v.find(Finding{Reason: Malformed, Axis: AxisWitness, Detail: "the witness's head is no signed checkpoint"})
		return nil
	}
	if len(ring.keys) == 0 {
		ring.keys = pinnedKeys(v.trust.chainPins(ring.origin))
	}
	v.unchecked(AxisWitness, "inclusion in a log: this head is cosigned, not shown to be logged")
	v.noTime("a head that is not logged has no timestamp")
	h := heads[0]
	if h.checkpoint.Origin != ring.origin {
		v.find(Finding{Reason: Spliced, Axis: AxisWitness, Have: h.checkpoint.Origin, Want: ring.origin, Detail: "the witness answered with a head of another chain"})
		return nil
	}
	if !v.head(h.note, h.checkpoint, ring, h.source) {
		return nil
	}
	return heads[:1]
}

// lengths compares how long the chain is with how long it was seen to be.
func (v *verdict) lengths(s Source, j *lineJudge, good []witnessedHead) {
	var longest uint64
	for _, h := range good {
		longest = max(longest, h.checkpoint.Size)
	}
	v.rep.Witnessed = min(longest, j.next)
	v.rep.Tail = j.next - v.rep.Witnessed
	switch {
	case j.next < longest:
		v.find(Finding{Reason: Truncated, Axis: AxisChain, Index: at(j.next), To: at(longest - 1),
			Detail: fmt.Sprintf("%d receipts are here, a witnessed head covers %d: the last %d are gone", j.next, longest, longest-j.next),
			Next:   "look for a backup or another copy of the chain; the witness keeps proof that they existed"})
	case j.next == 0:
		v.find(Finding{Reason: Absent, Axis: AxisChain, Detail: "there is no chain here: no receipt was found", Next: "check the path"})
	case len(good) == 0 && s.consults() && !v.failed():
		v.find(Finding{Reason: Unprotected, Axis: AxisWitness, Index: at(0), To: at(j.next - 1), Detail: "no witnessed head that holds covers any of these receipts"})
	}
	if len(good) > 0 {
		v.pruneCovered(j, longest)
	}
	v.tail(len(good) > 0)
}

func (v *verdict) tail(witnessed bool) {
	if !witnessed || v.rep.Receipts == 0 {
		return
	}
	v.checked(AxisWitness, "receipts 0 to %d lie below a witnessed head", int64(v.rep.Witnessed)-1)
	if v.rep.Tail == 0 {
		return
	}
	v.checked(AxisWitness, "%d receipts (%d to %d) came after the last witnessed head: signed and linked, not yet witnessed", v.rep.Tail, v.rep.Witnessed, v.rep.Receipts-1)
	if v.trust.MaxLag != nil && v.rep.Tail > *v.trust.MaxLag {
		v.find(Finding{Reason: Unprotected, Axis: AxisWitness, Index: at(v.rep.Witnessed), To: at(v.rep.Receipts - 1),
			Detail: fmt.Sprintf("%d receipts lie outside any witnessed head, more than --max-lag %d", v.rep.Tail, *v.trust.MaxLag)})
	}
}

// roots compares the chain's tree with each head that holds. The first root
// that differs, with nothing else to explain it, is a rewritten history. It
// returns the largest size at which the roots are equal.
func (v *verdict) roots(j *lineJudge, good []witnessedHead) uint64 {
	hold := map[tlog.Checkpoint]bool{}
	for _, h := range good {
		hold[tlog.Checkpoint{Size: h.checkpoint.Size, Root: h.checkpoint.Root}] = true
	}
	judged := func(m mark) bool { return m.met && hold[tlog.Checkpoint{Size: m.size, Root: m.want}] }
	equal, matched := map[uint64]bool{}, uint64(0)
	for _, m := range j.marks {
		if judged(m) && m.have == m.want {
			equal[m.size] = true
		}
	}
	for _, m := range j.marks {
		switch {
		case !judged(m):
		case equal[m.size]: // where another head of that size differs, it is a fork
			matched = m.size
		case v.broken:
			v.checked(AxisChain, "the root at size %d differs from the witnessed one, as the reasons explain", m.size)
			return matched
		default:
			v.rewritten(m, matched)
			return matched
		}
	}
	switch len(equal) {
	case 0:
	case 1:
		v.checked(AxisChain, "the root at size %d equals the witnessed one", matched)
	default:
		v.checked(AxisChain, "the roots at %d sizes, the last %d, equal the witnessed ones", len(equal), matched)
	}
	return matched
}

func (v *verdict) rewritten(m mark, matched uint64) {
	v.find(Finding{Reason: Rewritten, Axis: AxisChain, Index: at(matched), To: at(m.size - 1), Have: m.have.Hex(), Want: m.want.Hex(),
		Detail: fmt.Sprintf("every signature verifies, yet the root at size %d is not the witnessed one: receipts between %d and %d were replaced", m.size, matched, m.size-1),
		Next:   "the witnessed head is the proof; ask for the copy of the chain it was made from"})
}

package anchor

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// mark is a root that the chain must have at a size.
type mark struct {
	size uint64
	want tlog.Hash
	have tlog.Hash
	met  bool // the chain reached that size with every line in place
}

// headKeyAt is a head key and the size from which it signs.
type headKeyAt struct {
	from uint64
	key  tlog.Vkey
}

// lineJudge judges the lines of one chain in order. One goroutine uses it.
type lineJudge struct {
	*verdict
	story *story

	origin   string
	next     uint64      // seq expected of the next line
	last     [32]byte    // SHA-256 of the line before
	linked   bool        // last is of a line that was good
	pending  []tlog.Hash // leaf hashes of the broken lines since the last good one
	lastBad  int         // where the report lists the last of them
	gaps     []span
	key      ed25519.PublicKey
	keySeq   uint64
	retired  map[[32]byte]ed25519.PublicKey // by key id
	headKeys []headKeyAt
	heads    map[string]bool // vkey lines of headKeys

	tree    tlog.Frontier
	aligned bool   // the tree holds a leaf for every seq so far, in place
	marks   []mark // by size
	mark    int    // the first one not reached
	judged  uint64 // signatures
	prune   prune
}

type span struct{ from, to uint64 }

func newLineJudge(v *verdict, marks []mark) *lineJudge {
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.size, b.size) })
	return &lineJudge{verdict: v, story: newStory(), aligned: true, marks: marks,
		retired: map[[32]byte]ed25519.PublicKey{}, heads: map[string]bool{}}
}

// take judges a batch whose lines have been parsed. The genesis is judged by
// the key that it brings.
func (j *lineJudge) take(batch []parsed) {
	for i := range batch {
		p, key := &batch[i], j.key
		if s := p.statement; j.fresh() && s != nil && s.Kind.OpensChain() {
			key = s.ReceiptKey
		}
		p.verifiedBy(key)
		j.line(p)
	}
}

// fresh reports that no line has been seen.
func (j *lineJudge) fresh() bool { return j.next == 0 && len(j.pending) == 0 }

// line judges envelope, signature, payload and links, in this order: the first
// that fails is the line's one reason.
func (j *lineJudge) line(p *parsed) {
	seq := j.next + uint64(len(j.pending))
	switch {
	case p.lineErr != nil && p.line.Torn:
		j.find(Finding{Reason: Torn, Axis: AxisStructure, Index: at(seq), Have: hexOf(p.sum),
			Detail: fmt.Sprintf("torn tail at byte %d of %s: %d bytes without a newline after %d good receipts",
				p.line.Offset, p.line.Segment, len(p.line.Bytes), j.next),
			Next: "not tampering: a crash leaves this; tool-guardian chain repair shows what would be set aside"})
		return
	case p.lineErr != nil:
		j.bad(p, Finding{Reason: Malformed, Axis: AxisStructure, Index: at(seq), Detail: where(p, p.lineErr)})
	case p.signature != nil && !errors.Is(p.signature, errNotJudged):
		j.badSignature(p, seq)
	case errors.Is(p.payload, receipts.ErrVersion):
		j.find(Finding{Reason: UnknownVersion, Axis: AxisStructure, Index: at(seq), Have: hexOf(p.sum), Detail: where(p, p.payload),
			Next: "verify with a newer tool-guardian"})
		j.opaque(p)
	case p.payload != nil:
		j.bad(p, Finding{Reason: Malformed, Axis: AxisStructure, Index: at(seq), Detail: where(p, p.payload)})
	default:
		j.links(p)
	}
}

func where(p *parsed, err error) string {
	return fmt.Sprintf("%s, byte %d: %v", p.line.Segment, p.line.Offset, err)
}

// bad records a line that cannot be trusted to say where it belongs.
func (j *lineJudge) bad(p *parsed, f Finding) {
	f.Have = hexOf(p.sum)
	j.lastBad = j.find(f)
	j.broken, j.linked = true, false
	j.pending = append(j.pending, p.leaf)
}

func (j *lineJudge) badSignature(p *parsed, seq uint64) {
	f := Finding{Reason: Altered, Axis: AxisSignatures, Index: at(seq), Detail: where(p, p.signature),
		Next: "compare this line with the opening, a backup, or an export of the same receipt"}
	if s := p.statement; s != nil && j.origin != "" && s.Origin != j.origin {
		f.Detail += "; the line calls itself a receipt of " + s.Origin
	}
	old, replaced := j.retired[p.envelope.KeyID]
	if s := p.statement; replaced && s != nil && s.Seq >= j.next && p.envelope.Verify(old) == nil {
		f.Reason, f.Axis, f.Next = Revoked, AxisKey, ""
		f.Detail = fmt.Sprintf("signed by receipt key %x, which a rotation had replaced", p.envelope.KeyID)
	}
	j.bad(p, f)
}

// opaque takes a line of a newer format at its place, without reading it.
func (j *lineJudge) opaque(p *parsed) {
	j.settle(j.next + uint64(len(j.pending)))
	j.place(p, j.next)
}

// links judges a line that is well formed and signed.
func (j *lineJudge) links(p *parsed) {
	if j.fresh() && p.statement.Seq == 0 && !p.statement.Kind.OpensChain() {
		j.bad(p, Finding{Reason: Malformed, Axis: AxisChain, Index: at(p.statement.Seq),
			Detail: "the chain does not begin with a genesis receipt"})
		return
	}
	s := p.statement
	if j.origin == "" {
		j.origin = s.Origin
	}
	if f, ok := j.elsewhere(p); ok {
		f.Axis, f.Reason, f.Have = AxisChain, Spliced, cmp.Or(f.Have, hexOf(p.sum))
		j.lastBad = j.find(f)
		j.broken = j.broken || s.Origin != j.origin
		// It keeps the place of the line that was due there.
		j.linked, j.pending = false, append(j.pending, p.leaf)
		return
	}
	if s.Seq < j.next {
		j.again(p)
		return
	}
	if len(j.pending) == 1 && s.Seq == j.next+1 && j.lastBad >= 0 {
		// What the next line says of the broken one is what it was.
		j.rep.Reasons[j.lastBad].Want = hexOf(s.Prev)
	}
	j.settle(s.Seq)
	if j.linked && s.Prev != j.last {
		j.find(Finding{Reason: Spliced, Axis: AxisChain, Index: at(s.Seq), Have: hexOf(s.Prev), Want: hexOf(j.last),
			Detail: "prev is not the SHA-256 of the line before"})
	}
	j.place(p, s.Seq)
	j.keys(p)
	j.prune.take(s)
	j.story.take(j.verdict, p)
}

// elsewhere says what in a signed line belongs to another place or chain.
func (j *lineJudge) elsewhere(p *parsed) (Finding, bool) {
	s := p.statement
	opens := s.Kind.OpensChain()
	switch {
	case j.origin != "" && s.Origin != j.origin:
		return Finding{Index: at(s.Seq), Detail: fmt.Sprintf("a receipt of chain %s inside %s", s.Origin, j.origin)}, true
	case opens && j.fresh():
		return j.firstLine(s)
	case opens && s.Seq >= j.next:
		return Finding{Index: at(s.Seq), Detail: "a second " + string(s.Kind) + " receipt"}, true
	case s.KeySeq != j.keySeq && j.key != nil && s.Seq >= j.next:
		return Finding{Index: at(s.Seq), Detail: fmt.Sprintf("keySeq %d, but the key in force came with receipt %d", s.KeySeq, j.keySeq)}, true
	}
	return Finding{}, false
}

// firstLine judges what a genesis says of itself: origin and link come from
// its own head key.
func (j *lineJudge) firstLine(s *receipts.Statement) (Finding, bool) {
	pub, _ := receipts.HeadPublicKey(s.HeadKey)
	label, _, _ := strings.Cut(s.Origin, "/")
	want := sha256.Sum256([]byte(s.HeadKey))
	switch {
	case s.Seq != 0 || s.KeySeq != 0:
		return Finding{Index: at(s.Seq), Detail: "a " + string(s.Kind) + " receipt that is not seq 0"}, true
	case receipts.Origin(label, pub) != s.Origin:
		return Finding{Index: at(0), Detail: "the origin " + s.Origin + " is not named after its head key"}, true
	case s.Prev != want:
		return Finding{Index: at(0), Have: hexOf(s.Prev), Want: hexOf(want), Detail: "prev is not the SHA-256 of its headKey"}, true
	}
	return Finding{}, false
}

// again judges a line whose seq has been passed: out of place when it fills a
// gap, else there twice.
func (j *lineJudge) again(p *parsed) {
	seq := p.statement.Seq
	j.broken = true
	i, _ := slices.BinarySearchFunc(j.gaps, seq, func(g span, seq uint64) int { return cmp.Compare(g.to, seq) })
	if i == len(j.gaps) || seq < j.gaps[i].from || len(j.gaps) > maxFindings {
		j.find(Finding{Reason: Duplicate, Axis: AxisChain, Index: at(seq), Have: hexOf(p.sum), Detail: "this seq stands twice"})
		return
	}
	j.gaps = slices.Replace(j.gaps, i, i+1, j.gaps[i].without(seq)...)
	j.find(Finding{Reason: Spliced, Axis: AxisChain, Index: at(seq), Have: hexOf(p.sum),
		Detail: fmt.Sprintf("out of place: stands after receipt %d", j.next-1)})
}

func (g span) without(seq uint64) []span {
	var out []span
	if g.from < seq {
		out = append(out, span{g.from, seq - 1})
	}
	if seq < g.to {
		out = append(out, span{seq + 1, g.to})
	}
	return out
}

// settle decides on the broken lines before a good one of that seq: they stood
// in place of the seqs between, or were put in between.
func (j *lineJudge) settle(seq uint64) {
	held := j.next + uint64(len(j.pending))
	switch {
	case seq > held && j.bridge(held, seq):
	case seq > held:
		j.gaps = append(j.gaps, span{held, seq - 1})
		j.broken, j.linked, j.aligned = true, false, false
	case seq < held:
		j.aligned = j.aligned && seq == j.next
		if j.aligned {
			j.pending = nil
		}
	}
	for _, leaf := range j.pending {
		j.grow(leaf)
	}
	j.pending, j.next = nil, seq
}

// place puts a good line at its seq.
func (j *lineJudge) place(p *parsed, seq uint64) {
	j.grow(p.leaf)
	j.next, j.last, j.linked = seq+1, p.sum, true
	if p.signature == nil {
		j.judged++
	}
}

// grow appends a leaf and compares the root where one is known.
func (j *lineJudge) grow(leaf tlog.Hash) {
	if !j.aligned {
		return
	}
	j.tree.Append(leaf)
	j.prune.reached(&j.tree)
	for j.mark < len(j.marks) && j.marks[j.mark].size <= j.tree.Size() {
		if m := &j.marks[j.mark]; m.size == j.tree.Size() {
			m.have, m.met = j.tree.Root(), true
		}
		j.mark++
	}
}

// keys puts in force what a good genesis or rotation brings, from the next
// line on. A key that was replaced never comes back.
func (j *lineJudge) keys(p *parsed) {
	s := p.statement
	if !s.Kind.BringsKeys() || p.signature != nil {
		return
	}
	head, err := tlog.ParseVkey(s.HeadKey)
	if err != nil {
		return // ParseStatement has read it already
	}
	_, back := j.retired[receipts.KeyID(s.ReceiptKey)]
	if j.heads[s.HeadKey] && !head.Equal(j.headKeys[len(j.headKeys)-1].key) {
		back = true
	}
	if back {
		j.find(Finding{Reason: Revoked, Axis: AxisKey, Index: at(s.Seq), Have: hexOf(p.sum), Detail: "the rotation brings back a key that an earlier one had replaced"})
	}
	if j.key != nil && !j.key.Equal(s.ReceiptKey) {
		j.retired[receipts.KeyID(j.key)] = j.key
	}
	j.key, j.keySeq = s.ReceiptKey, s.Seq
	j.headKeys, j.heads[s.HeadKey] = append(j.headKeys, headKeyAt{from: s.Seq + 1, key: head}), true
}

// finish states gaps and what the whole run was checked for.
func (j *lineJudge) finish() {
	// Broken lines at the end stand in the place of receipts.
	j.settle(j.next + uint64(len(j.pending)))
	j.judgePrune()
	for _, g := range j.gaps {
		j.find(Finding{Reason: Gap, Axis: AxisChain, Index: at(g.from), To: at(g.to),
			Detail: fmt.Sprintf("receipts %d to %d are missing", g.from, g.to)})
	}
	j.rep.Origin, j.rep.Receipts = j.origin, j.next
	j.checked(AxisStructure, "%d lines read: envelope byte for byte, payload by the rules of format 1", j.next-j.prune.removed())
	if j.judged > 0 {
		j.checked(AxisSignatures, "%d receipts verified with the receipt key in force, of genesis or rotation; %d rotations", j.judged, max(len(j.headKeys), 1)-1)
	}
	if j.judged == 0 && j.next > 0 {
		j.unchecked(AxisSignatures, "no signature was judged: the genesis receipt, which holds the key, is not there")
	}
	j.checked(AxisChain, "origin, seq and prev of %d receipts", j.next-j.prune.removed())
	if j.aligned {
		j.checked(AxisChain, "root at size %d is %s", j.tree.Size(), j.tree.Root().Base64())
	}
	j.story.tell(j.verdict)
}

package anchor

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/tsa"
)

// container judges a proof container in the one order: the genesis first, then
// the receipt, its tree, head, leaf, checkpoint, time.
func (v *verdict) container(s Source) {
	if v.evidenceFile(s.Container) {
		return
	}
	c, err := ParseContainer(s.Container)
	if err != nil {
		v.find(Finding{Reason: Malformed, Axis: AxisStructure, Detail: err.Error()})
		return
	}
	v.checked(AxisStructure, "container: known sections in order, byte for byte")
	if missing := c.missing(); missing != "" {
		v.find(Finding{Reason: Absent, Axis: AxisStructure, Detail: "section " + missing + " is missing"})
		return
	}
	head, _, err := tlog.ParseSignedCheckpoint(c.Head.Checkpoint)
	if err != nil {
		v.find(Finding{Reason: Malformed, Axis: AxisChain, Detail: fmt.Sprintf("section head: %v", err)})
		return
	}
	v.rep.Origin, v.rep.Receipts = head.Origin, 1
	k := v.keyLines(c, head)
	st := v.provedReceipt(c, head, k)
	v.provedHead(s, c, head, k)
	if st != nil {
		v.openings(c, st)
		v.before(c, st)
	}
	v.state(AxisCompleteness, StateLimited)
	v.unchecked(AxisCompleteness, "the neighbours of this receipt: a container proves one receipt; a call is two")
}

// LogSize is the size of the witness log that a container's proof is made at,
// from which Fetch can show that the log has only grown; 0 where the bytes say
// none.
func LogSize(container []byte) uint64 {
	c, err := ParseContainer(container)
	if err != nil {
		return 0
	}
	return logSizeOf(c.Evidence.Leaf)
}

func (c Container) missing() string {
	for name, absent := range map[string]bool{
		"receipt": c.Receipt == nil, "head": c.Head.Checkpoint == nil, "key-line/1": len(c.KeyLines) == 0,
		"leaf-bytes": c.Evidence.LeafBytes == nil, "leaf": c.Evidence.Leaf.Checkpoint == nil, "key-bytes/1": len(c.Evidence.Keys) == 0,
	} {
		if absent {
			return name
		}
	}
	return ""
}

// provedKeys is what the key lines of a container bring.
type provedKeys struct {
	line *receipts.Statement // the last one that holds
	ring keyring
	dead bool // one does not hold: no later signature is judged
}

// keyLines judges every genesis and rotation line: the genesis under its own
// key, each next under the one before, each included in the same head.
func (v *verdict) keyLines(c Container, head tlog.Checkpoint) provedKeys {
	k := provedKeys{ring: keyring{origin: head.Origin}}
	for i := range c.KeyLines {
		if k.dead = !v.keyLine(&c.KeyLines[i], i, c, head, &k); k.dead {
			v.unchecked(AxisSignatures, "no signature after key line %d: its key does not hold", i+1)
			return k
		}
	}
	v.checked(AxisSignatures, "%s, each signed by the key before", counted(len(c.KeyLines), "genesis or rotation line", "genesis and rotation lines"))
	return k
}

func (v *verdict) keyLine(l *KeyLine, i int, c Container, head tlog.Checkpoint, k *provedKeys) bool {
	sum := sha256.Sum256(l.Line)
	refuse := func(r Reason, axis AxisName, format string, args ...any) bool {
		v.find(Finding{Reason: r, Axis: axis, Index: at(l.Proof.Index), Have: hexOf(sum), Detail: fmt.Sprintf("key line %d: ", i+1) + fmt.Sprintf(format, args...)})
		return false
	}
	e, err := receipts.ParseLine(l.Line)
	if err != nil {
		return refuse(Malformed, AxisStructure, "%v", err)
	}
	st, perr := receipts.ParseStatement(e.Payload)
	key := keyOf(k.line, st)
	if key == nil {
		return refuse(statementReason(perr), AxisStructure, "%v", perr)
	}
	if err := e.Verify(key); err != nil {
		return refuse(Altered, AxisSignatures, "%v", err)
	}
	if perr != nil {
		return refuse(statementReason(perr), AxisStructure, "%v", perr)
	}
	if why := keyLineElsewhere(st, k.line, l, head); why != "" {
		return refuse(Spliced, AxisChain, "%s", why)
	}
	if !bytes.Equal(l.Proof.Checkpoint, c.Head.Checkpoint) {
		return refuse(Malformed, AxisStructure, "proved at another head than the receipt")
	}
	if _, _, err := l.Proof.Verify(tlog.LeafHash(l.Line)); err != nil {
		return refuse(Absent, AxisChain, "%v", err)
	}
	k.line, k.ring.known = st, st.Seq+1
	if vk, err := tlog.ParseVkey(st.HeadKey); err == nil {
		from := uint64(0)
		if i > 0 {
			from = st.Seq + 1
		}
		k.ring.keys = append(k.ring.keys, headKeyAt{from: from, key: vk})
	}
	return true
}

// keyOf is the key that signs a key line: the one before's, of the first its
// own.
func keyOf(before, own *receipts.Statement) []byte {
	switch {
	case before != nil:
		return before.ReceiptKey
	case own != nil:
		return own.ReceiptKey
	}
	return nil
}

func statementReason(err error) Reason {
	if errors.Is(err, receipts.ErrVersion) {
		return UnknownVersion
	}
	return Malformed
}

func keyLineElsewhere(st, before *receipts.Statement, l *KeyLine, head tlog.Checkpoint) string {
	switch {
	case st.Origin != head.Origin:
		return "a receipt of chain " + st.Origin
	case !st.Kind.BringsKeys() || st.Kind.OpensChain() != (before == nil):
		return "a " + string(st.Kind) + " receipt does not belong there"
	case st.Seq != l.Proof.Index:
		return fmt.Sprintf("seq %d proved at index %d", st.Seq, l.Proof.Index)
	case before != nil && st.KeySeq != before.Seq:
		return fmt.Sprintf("keySeq %d, the key line before is receipt %d", st.KeySeq, before.Seq)
	case before != nil:
		return ""
	}
	if f, bad := (&lineJudge{}).firstLine(st); bad {
		return f.Detail
	}
	return ""
}

// provedReceipt judges the receipt itself and its place in the chain's tree.
func (v *verdict) provedReceipt(c Container, head tlog.Checkpoint, k provedKeys) *receipts.Statement {
	sum := sha256.Sum256(c.Receipt)
	refuse := func(r Reason, axis AxisName, format string, args ...any) *receipts.Statement {
		v.find(Finding{Reason: r, Axis: axis, Index: at(c.Head.Index), Have: hexOf(sum), Detail: "receipt: " + fmt.Sprintf(format, args...)})
		return nil
	}
	e, err := receipts.ParseLine(c.Receipt)
	if err != nil {
		return refuse(Malformed, AxisStructure, "%v", err)
	}
	if k.dead || k.line == nil {
		return nil
	}
	st, perr := receipts.ParseStatement(e.Payload)
	keySeq := k.line.Seq
	if err := e.Verify(k.line.ReceiptKey); err != nil {
		return refuse(Altered, AxisSignatures, "%v", err)
	}
	if perr != nil {
		return refuse(statementReason(perr), AxisStructure, "%v", perr)
	}
	switch {
	case st.Origin != head.Origin:
		return refuse(Spliced, AxisChain, "of chain %s, the head is of %s", st.Origin, head.Origin)
	case st.Seq != c.Head.Index:
		return refuse(Spliced, AxisChain, "seq %d proved at index %d", st.Seq, c.Head.Index)
	case st.KeySeq != keySeq:
		return refuse(Spliced, AxisChain, "keySeq %d, the key in force came with receipt %d", st.KeySeq, keySeq)
	}
	if _, _, err := c.Head.Verify(tlog.LeafHash(c.Receipt)); err != nil {
		return refuse(Absent, AxisChain, "not included in the head of size %d: %v", head.Size, err)
	}
	v.checked(AxisSignatures, "receipt %d (%s) signed by the receipt key of line %d", st.Seq, st.Kind, keySeq)
	v.checked(AxisChain, "receipt %d is included in the head of size %d", st.Seq, head.Size)
	return st
}

// provedHead judges the head in the witness log and against anything else the
// auditor has.
func (v *verdict) provedHead(s Source, c Container, head tlog.Checkpoint, k provedKeys) {
	ring := k.ring
	h := v.evidence(&c.Evidence, head.Origin, &ring, &head, true)
	v.namedBlobs(c)
	_, note, _ := tlog.ParseSignedCheckpoint(c.Head.Checkpoint)
	if h != nil && v.head(note, head, ring, "head") {
		v.rep.Witnessed = 1
		v.times(&c.Evidence, h)
		v.renewals(c, h)
	}
	v.pins(ring)
	v.containerAgainst(s, head, h)
	v.tooOld(true)
}

// namedBlobs refuses validation data that no token names.
func (v *verdict) namedBlobs(c Container) {
	named := map[tlog.Hash]bool{}
	for _, t := range c.times() {
		for _, ref := range t.Blobs {
			named[ref.Hash] = true
		}
	}
	for i, b := range c.Evidence.Blobs {
		if !named[sha256.Sum256(b)] {
			v.find(Finding{Reason: Malformed, Axis: AxisStructure, Detail: fmt.Sprintf("blob/%d is named by no time section", i+1)})
		}
	}
}

// containerAgainst compares the container's head and log checkpoint with what
// else is at hand.
func (v *verdict) containerAgainst(s Source, head tlog.Checkpoint, h *headLeaf) {
	if !s.consults() {
		v.unchecked(AxisWitness, "no witness was asked now: the proof carries the witness's own checkpoint")
		return
	}
	if s.Witness != nil {
		v.containerLog(s.Witness, h)
		return
	}
	compared := false
	for _, other := range v.heads(s) {
		if other.checkpoint.Origin != head.Origin || other.checkpoint.Size != head.Size {
			continue
		}
		compared = true
		if other.checkpoint.Root != head.Root {
			v.find(Finding{Reason: Rewritten, Axis: AxisChain, Index: at(head.Size), Have: head.Root.Hex(), Want: other.checkpoint.Root.Hex(),
				Detail: "the head of this proof has another root than " + other.source})
			return
		}
		v.checked(AxisWitness, "the head equals the one of %s", other.source)
	}
	if !compared {
		v.unchecked(AxisWitness, "%s holds no head of this chain at size %d", s.Against, head.Size)
	}
}

// containerLog shows that the log the proof was made from is a prefix of the
// log as it is now.
func (v *verdict) containerLog(s *Snapshot, h *headLeaf) {
	if s.Newest == nil || h == nil {
		v.unchecked(AxisWitness, "the log as it is now: the witness showed no head of this chain")
		return
	}
	now, note, err := tlog.ParseSignedCheckpoint(s.Newest.Leaf.Checkpoint)
	if err != nil {
		v.find(Finding{Reason: Malformed, Axis: AxisWitness, Detail: fmt.Sprintf("the witness's checkpoint: %v", err)})
		return
	}
	if now.Origin != h.log.Origin {
		v.find(Finding{Reason: Spliced, Axis: AxisWitness, Have: h.log.Origin, Want: now.Origin, Detail: "the proof is of another log"})
		return
	}
	if v.checkpoint(note, now, true) {
		v.consistent(h.log, now, s.Links)
	}
}

// openings checks each disclosed field against its commitment.
func (v *verdict) openings(c Container, st *receipts.Statement) {
	for _, o := range c.Openings {
		f := Finding{Reason: Altered, Axis: AxisPrivacy, Index: at(st.Seq), Have: hexOf(sha256.Sum256(o.Bytes)),
			Detail: "opening of " + o.Field + " is not what the receipt commits to"}
		opened, err := receipts.ParseOpening(o.Bytes)
		committed := false
		for _, sub := range st.Subjects {
			if sub.Name == o.Field {
				f.Want = hexOf(sub.Digest)
				committed = err == nil && opened.Field == o.Field && f.Want == f.Have
			}
		}
		if !committed {
			v.find(f)
			continue
		}
		v.checked(AxisPrivacy, "opening of %s: %d bytes, equal to the commitment", o.Field, len(opened.Data))
		if field := receipts.FieldNamed(o.Field); field >= receipts.FieldPrincipal {
			v.checked(AxisPrivacy, "%s is disclosed here and thereby in every receipt", o.Field)
		}
	}
	if len(c.Openings) == 0 {
		v.checked(AxisPrivacy, "nothing is disclosed: commitments only")
	}
}

// before judges the lower bound: the token and the note that notBefore names.
func (v *verdict) before(c Container, st *receipts.Statement) {
	switch {
	case c.BeforeNote == nil && c.BeforeToken == nil:
		if st.NotBefore != nil {
			v.unchecked(AxisTime, "the lower bound: the receipt names a token that is not here")
		}
		return
	case st.NotBefore == nil || c.BeforeNote == nil || c.BeforeToken == nil:
		v.find(Finding{Reason: Malformed, Axis: AxisTime, Index: at(st.Seq), Detail: "before-note and before-token go together with the receipt's notBefore"})
		return
	}
	token, note := sha256.Sum256(c.BeforeToken), sha256.Sum256(c.BeforeNote)
	if token != st.NotBefore.Token || note != st.NotBefore.Checkpoint {
		v.find(Finding{Reason: Altered, Axis: AxisTime, Index: at(st.Seq), Have: hexOf(token), Want: hexOf(st.NotBefore.Token), Detail: "not the token and note that the receipt's notBefore names"})
		return
	}
	v.lowerBound(c, note)
}

func (v *verdict) lowerBound(c Container, imprint [32]byte) {
	cp, n, err := tlog.ParseSignedCheckpoint(c.BeforeNote)
	if err != nil {
		v.find(Finding{Reason: Malformed, Axis: AxisTime, Detail: fmt.Sprintf("before-note: %v", err)})
		return
	}
	keys := v.trust.logKeys(cp.Origin)
	if len(keys) == 0 || v.trust.TSARoots == nil {
		v.unchecked(AxisTime, "the lower bound: no pinned log key for %s, or no --tsa-ca", cp.Origin)
		return
	}
	for _, k := range keys {
		if !v.signedBy(n, k, AxisTime, cp.Size, "before-note") {
			return
		}
	}
	tok, err := tsa.Verify(c.BeforeToken, tsa.VerifyOptions{Digest: imprint, Roots: v.trust.TSARoots, Now: v.trust.Now})
	if err != nil {
		v.find(tokenFinding(0, "before-token", err))
		return
	}
	v.rep.NotBeforeBy = boundOf(tok.Time.Add(-tok.Accuracy), tok)
	v.rep.NotBefore = v.rep.NotBeforeBy.Time
	v.checked(AxisTime, "the receipt was made after %s: it names that token", v.rep.NotBeforeBy.text())
}

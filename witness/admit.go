package witness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// admitted is a head that a worker has judged against the durable state it
// read, with the cosignature made for it. It still has to be put in order: the
// sequencer compares again.
type admitted struct {
	key     tlog.Vkey // in force when it was judged
	keys    uint64    // the key leaf that put it in force
	old     uint64
	oldRoot tlog.Hash // the root that the proof starts from
	proof   []tlog.Hash
	head    tlog.Checkpoint
	text    []byte
	line    tlog.Signature // by key, valid
	others  string         // lines by anybody else, not judged, never in a leaf
	cosig   tlog.Signature
	at      time.Time
	foreign bool // of a log that is configured, not of a chain
}

// Added is what is told to the sender of a head, and is durable.
type Added struct {
	Line  tlog.Signature // our cosignature
	Index uint64         // of the head leaf; the older one's for a head sent again
	Size  uint64         // a size of the log that holds it

	// Unlogged: the checkpoint of another log, cosigned and recorded; there is
	// no leaf of it.
	Unlogged bool
}

// AddCheckpoint judges the body of an add-checkpoint request (C2SP
// tlog-witness) and answers once the head is durable. Errors are those of
// witness/api.
func (s *Server) AddCheckpoint(ctx context.Context, body []byte) (Added, error) {
	if err := s.workers.Acquire(ctx, 1); err != nil {
		return Added{}, err
	}
	a, err := s.admit(ctx, body)
	s.workers.Release(1)
	var done durable[Added]
	if err == nil {
		done, err = submit(ctx, s.seq, func(b *batch) (accepted[Added], error) { return s.accept(b, a) })
	}
	if err != nil && a.authentic() && !a.foreign {
		s.contradicted(ctx, a, err)
	}
	return done.value, err
}

func (s *Server) accept(b *batch, a admitted) (accepted[Added], error) {
	if a.foreign {
		return s.acceptForeign(b, a)
	}
	return s.acceptHead(b, a)
}

// admit makes every check of the page that needs no order. The order of the
// checks is the page's. What it returns beside an error is authentic if the
// head was signed by the key in force.
func (s *Server) admit(ctx context.Context, body []byte) (admitted, error) {
	req, cp, note, err := parseAdd(body)
	if err != nil {
		return admitted{}, err
	}
	a := admitted{old: req.Old, proof: req.Proof, head: cp, text: note.Text}
	if s.foreign[cp.Origin] != nil {
		a.foreign = true
		return a, s.admitForeign(&a, note)
	}
	rec, err := s.readOrigin(cp.Origin)
	if err != nil {
		return admitted{}, err
	}
	if err := a.signedBy(rec, note); err != nil {
		return admitted{}, err
	}
	if err := s.limits.take(cp.Origin, s.o.Now()); err != nil {
		return admitted{}, err
	}
	if err := s.lostHead(ctx, cp, note); err != nil {
		return admitted{}, err
	}
	if err := a.extends(rec); err != nil {
		return a, err
	}
	a.others = s.othersOf(note, a.key)
	return a, a.cosign(s.keys.cosigner, rec, s.o.Now())
}

func parseAdd(body []byte) (req api.AddRequest, cp tlog.Checkpoint, note tlog.Note, err error) {
	if len(body) > api.MaxBody {
		return req, cp, note, fmt.Errorf("%w: a body of more than %d bytes", api.ErrTooLarge, api.MaxBody)
	}
	if req, err = api.ParseAddRequest(body); err != nil {
		return req, cp, note, fmt.Errorf("%w: %w", api.ErrBadRequest, err)
	}
	if len(req.Head) > tlog.MaxNote {
		return req, cp, note, fmt.Errorf("%w: a checkpoint of more than %d bytes", api.ErrTooLarge, tlog.MaxNote)
	}
	cp, note, err = tlog.ParseSignedCheckpoint(req.Head)
	if errors.Is(err, tlog.ErrEmptyTreeRoot) {
		cp, note, err = parseFalseEmpty(req.Head)
	}
	if err != nil {
		return req, cp, note, fmt.Errorf("%w: checkpoint: %w", api.ErrBadRequest, err)
	}
	return req, cp, note, nil
}

// parseFalseEmpty reads a checkpoint of size 0 with another root than the empty
// tree's, which is no checkpoint; the page wants origin and signature judged
// before it answers 422.
func parseFalseEmpty(b []byte) (cp tlog.Checkpoint, note tlog.Note, err error) {
	if note, err = tlog.ParseNote(b); err != nil {
		return cp, note, err
	}
	lines := strings.Split(string(note.Text), "\n")
	root, err := tlog.ParseHashBase64(lines[2])
	return tlog.Checkpoint{Origin: lines[0], Root: root}, note, err
}

func (s *Server) readOrigin(origin string) (rec *originRecord, err error) {
	if rec := s.seq.cache.get(origin); rec != nil && rec.Key != "" {
		return rec, nil
	}
	err = s.view(func(r store.Reader) error {
		rec, err = readOrigin(r, origin)
		return err
	})
	return rec, err
}

// view tells a stranger who meets a failed store to come again later.
func (s *Server) view(fn func(store.Reader) error) error {
	err := s.store.View(fn)
	if errors.Is(err, store.ErrBroken) {
		s.o.Logger.Error("a request met a failed store", "err", err)
		return fmt.Errorf("%w: its store failed; the operator must restart it", api.ErrUnavailable)
	}
	return err
}

// signedBy finds the signature of the key in force. No line by it, and a line
// by it that does not verify, are both 403.
func (a *admitted) signedBy(rec *originRecord, note tlog.Note) (err error) {
	if err := rec.mayWrite(); err != nil {
		return err
	}
	if a.key, err = tlog.ParseVkey(rec.Key); err != nil {
		return fmt.Errorf("%w: the key of %s: %w", store.ErrDamaged, rec.Origin, err)
	}
	a.keys = rec.Keys
	if a.line, err = note.Verify(a.key); err != nil {
		return fmt.Errorf("%w: %w", api.ErrForbidden, err)
	}
	return nil
}

// authentic says that the key in force signed the head.
func (a *admitted) authentic() bool { return len(a.line.Bytes) > 0 }

// extends judges sizes, roots and proof against a record.
func (a *admitted) extends(rec *originRecord) error {
	if a.old > a.head.Size {
		return fmt.Errorf("%w: old size %d is above the checkpoint's, %d", api.ErrBadRequest, a.old, a.head.Size)
	}
	size, root := rec.latest()
	if a.old != size {
		return api.ErrConflict{Size: size}
	}
	a.oldRoot = root
	switch {
	case a.head.Size == 0 && a.head.Root != tlog.EmptyRoot():
		return fmt.Errorf("%w: a checkpoint of size 0 with another root than the empty tree's", api.ErrUnprocessable)
	case a.old == 0 && len(a.proof) > 0:
		return fmt.Errorf("%w: a proof of %d hashes from size 0, want none", api.ErrUnprocessable, len(a.proof))
	case a.old == a.head.Size && root != a.head.Root:
		return fmt.Errorf("%w: size %d was cosigned with the root %s, this one has %s",
			api.ErrUnprocessable, size, root, a.head.Root)
	case a.head.Size < rec.From:
		return fmt.Errorf("%w: the key %s signs heads of size %d and more", api.ErrUnprocessable, rec.Key, rec.From)
	case a.old == 0:
		return nil // the empty tree is consistent with any
	}
	if err := tlog.VerifyConsistency(a.old, a.head.Size, a.proof, root, a.head.Root); err != nil {
		return fmt.Errorf("%w: consistency from %d to %d: %w", api.ErrUnprocessable, a.old, a.head.Size, err)
	}
	return nil
}

// othersOf keeps foreign lines for whoever asks for the head: not ours, which
// we make afresh, and no more than leave room in a note.
func (s *Server) othersOf(note tlog.Note, key tlog.Vkey) string {
	const most, mostBytes = 90, 100 << 10
	var lines strings.Builder
	n := 0
	for _, sig := range note.Signatures {
		if isBy(sig, key) || isBy(sig, s.keys.cosigner.Vkey()) || isBy(sig, s.keys.log.Vkey()) {
			continue
		}
		line := sig.Line()
		if n++; n > most || lines.Len()+len(line) > mostBytes {
			break
		}
		lines.WriteString(line)
	}
	return lines.String()
}

func isBy(sig tlog.Signature, k tlog.Vkey) bool { return sig.Name == k.Name && sig.ID == k.ID }

// cosign makes the cosignature, dated max(clock, the origin's last time): the
// times of one origin never run backwards.
func (a *admitted) cosign(cosigner *tlog.Signer, rec *originRecord, now time.Time) (err error) {
	a.at = time.Unix(now.Unix(), 0)
	if rec.Head != nil && rec.Head.Time > a.at.Unix() {
		a.at = time.Unix(rec.Head.Time, 0)
	}
	a.cosig, err = cosigner.Cosign(a.text, a.at)
	return err
}

// acceptHead is the compare half of compare-and-swap, in the sequencer: what
// the worker judged must still be the latest state, here within the batch.
func (s *Server) acceptHead(b *batch, a admitted) (accepted[Added], error) {
	rec, err := b.recordUnder(a.head.Origin, a.keys)
	if err != nil {
		return accepted[Added]{}, err
	}
	if size, root := rec.latest(); size != a.old || root != a.oldRoot {
		return accepted[Added]{}, api.ErrConflict{Size: size}
	}
	if rec.Head != nil && rec.Head.Time > a.at.Unix() {
		if err := a.cosign(s.keys.cosigner, rec, b.now); err != nil {
			return accepted[Added]{}, err
		}
	}
	if rec.Head != nil && rec.Head.Size == a.head.Size {
		return a.again(b, rec), nil
	}
	return a.first(b, rec)
}

// again refreshes the cosignature of the head that is the latest already: no
// new leaf, the index of the existing one.
func (a admitted) again(b *batch, rec *originRecord) accepted[Added] {
	head := *rec.Head
	head.Time, head.Cosig, head.Others = a.at.Unix(), a.cosig.Line(), a.others
	rec.Head = &head
	b.keep(rec)
	return accepted[Added]{Added{Line: a.cosig, Index: head.Index, Size: max(b.base.Size, head.Index+1)}}
}

func (a admitted) first(b *batch, rec *originRecord) (accepted[Added], error) {
	leaf := api.Leaf{Type: api.LeafHead, Origin: a.head.Origin, Prev: api.At(rec.Prev), Keys: api.At(rec.Keys), Proof: a.proof}
	leaf.Body = tlog.Note{Text: a.text, Signatures: []tlog.Signature{a.line, a.cosig}}.Bytes()
	index, err := b.append(leaf)
	if err != nil {
		return accepted[Added]{}, err
	}
	b.put(store.Heads, headKey(rec.Origin, a.head.Size), store.Key64(index))
	rec.Prev = index
	rec.Head = &headRecord{Index: index, Size: a.head.Size, Root: a.head.Root, Time: a.at.Unix(), Cosig: a.cosig.Line(), Others: a.others}
	b.keep(rec)
	return accepted[Added]{Added{Line: a.cosig, Index: index, Size: index + 1}}, nil
}

// asBadRequest marks what does not parse as the sender's fault.
func asBadRequest(err error) error {
	if errors.Is(err, api.ErrMalformed) || errors.Is(err, api.ErrUnknownVersion) {
		return fmt.Errorf("%w: %w", api.ErrBadRequest, err)
	}
	return err
}

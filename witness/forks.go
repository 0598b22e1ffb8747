package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// maxForks bounds the fork leaves against one origin: whoever holds its key
// could sign them without end, and one convicts.
const maxForks = 16

// contradicted looks for the proof that a refused head, signed by the key in
// force, contradicts one that was recorded. It is logged before the refusal is
// told. Any other refusal is counted.
func (s *Server) contradicted(ctx context.Context, a admitted, refusal error) {
	var conflict api.ErrConflict
	if !errors.As(refusal, &conflict) && !errors.Is(refusal, api.ErrUnprocessable) {
		return
	}
	found, known, err := s.findFork(a)
	if known {
		return // sent again, its answer was lost
	}
	if err == nil && found {
		_, err = submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) { return s.accuse(b, a) })
		if err == nil {
			s.o.Logger.Error("FORK: a chain signed two histories", "origin", a.head.Origin, "size", a.head.Size, "root", a.head.Root.Hex())
			return
		}
	}
	if err != nil {
		s.o.Logger.Warn("a refused head was not compared with those recorded", "origin", a.head.Origin, "err", err)
	}
	s.conflict(ctx, a.head.Origin)
}

// findFork reads a snapshot, so that conflicts that are none of a fork's take
// no place in the sequencer. Known is a head that is recorded as it stands.
func (s *Server) findFork(a admitted) (found, known bool, err error) {
	err = s.rehearse(func(b *batch) error {
		same, err := b.recordedHead(a.head.Origin, a.head.Size)
		if known = err == nil && same != nil && same.Head == a.head; known || err != nil {
			return err
		}
		other, _, err := b.contradiction(a)
		found = other != nil
		return err
	})
	return found, known, err
}

// contradiction gives the recorded head that a contradicts, and the path that
// shows it: one of its size with another root, or one at the size from which
// a's proof leads to a's own root, over another root than the recorded.
func (b *batch) contradiction(a admitted) (*api.HeadLeaf, []tlog.Hash, error) {
	if a.head.Size == 0 {
		return nil, nil, nil // of no chain, whatever its root
	}
	other, err := b.recordedHead(a.head.Origin, a.head.Size)
	if err != nil || other != nil && api.Contradict(other.Head, a.head, nil) == nil {
		return other, nil, err
	}
	if a.old == 0 || a.old >= a.head.Size || api.IsPowerOfTwo(a.old) {
		return nil, nil, nil // the proof does not hold the root at its old size
	}
	if other, err = b.recordedHead(a.head.Origin, a.old); err != nil || other == nil {
		return nil, nil, err
	}
	if api.Contradict(other.Head, a.head, a.proof) != nil {
		return nil, nil, nil
	}
	return other, a.proof, nil
}

// recordedHead is the head leaf of that size, nil when there is none.
func (b *batch) recordedHead(origin string, size uint64) (*api.HeadLeaf, error) {
	value, err := b.get(store.Heads, headKey(origin, size))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l, err := b.leafAt(sizeOf(value))
	if err != nil {
		return nil, err
	}
	h, err := api.ParseHeadLeaf(sizeOf(value), l)
	if err != nil || h.Head.Origin != origin || h.Head.Size != size {
		return nil, fmt.Errorf("%w: leaf %d is not the head of size %d of %s: %w; run witness fsck", store.ErrDamaged, sizeOf(value), size, origin, err)
	}
	return &h, nil
}

// accuse writes the fork leaf, once for the same two heads.
func (s *Server) accuse(b *batch, a admitted) (accepted[uint64], error) {
	rec, err := b.recordUnder(a.head.Origin, a.keys)
	if err != nil {
		return accepted[uint64]{}, err
	}
	other, path, err := b.contradiction(a)
	if err != nil || other == nil {
		return accepted[uint64]{}, errors.Join(err, api.ErrNoContradiction)
	}
	body := api.ForkFile{Path: path}
	if body.A, err = convicting(*other, rec, s.keys.cosigner.Vkey()); err != nil {
		return accepted[uint64]{}, err
	}
	body.B = tlog.Note{Text: a.text, Signatures: []tlog.Signature{a.line}}.Bytes()
	if index, ok, err := b.accused(rec, body); ok || err != nil {
		return accepted[uint64]{index}, err
	}
	if len(rec.Forks) >= maxForks {
		return accepted[uint64]{}, fmt.Errorf("%w: %d forks of %s are logged, no more are", api.ErrUnprocessable, maxForks, rec.Origin)
	}
	index, err := b.append(api.Leaf{Type: api.LeafFork, Origin: rec.Origin, Prev: api.At(rec.Prev), Keys: api.At(rec.Keys), Body: body.Bytes()})
	if err != nil {
		return accepted[uint64]{}, err
	}
	rec.Prev = index
	rec.Forks = append(slices.Clone(rec.Forks), index)
	b.keep(rec)
	return accepted[uint64]{index}, nil
}

// convicting strips a recorded head to its text and the line that convicts:
// the chain's own where its key is still in force, else our cosignature, which
// was made before the leaf that closed the key.
func convicting(h api.HeadLeaf, rec *originRecord, cosigner tlog.Vkey) ([]byte, error) {
	line := h.Note.Signatures[0]
	if h.Keys != api.At(rec.Keys) {
		var err error
		if line, err = h.Note.Verify(cosigner); err != nil {
			return nil, fmt.Errorf("%w: head leaf %d: our cosignature: %w", store.ErrDamaged, h.Index, err)
		}
	}
	return tlog.Note{Text: h.Note.Text, Signatures: []tlog.Signature{line}}.Bytes(), nil
}

// accused finds the fork leaf that holds these heads already.
func (b *batch) accused(rec *originRecord, f api.ForkFile) (index uint64, ok bool, err error) {
	for _, index := range rec.Forks {
		l, err := b.leafAt(index)
		if err != nil {
			return 0, false, err
		}
		was, err := api.ParseForkFile(l.Body)
		if err != nil {
			return 0, false, fmt.Errorf("%w: fork leaf %d: %w", store.ErrDamaged, index, err)
		}
		if sameText(was.A, f.A) && sameText(was.B, f.B) {
			return index, true, nil
		}
	}
	return 0, false, nil
}

func sameText(a, b []byte) bool {
	x, errA := tlog.ParseNote(a)
	y, errB := tlog.ParseNote(b)
	return errA == nil && errB == nil && string(x.Text) == string(y.Text)
}

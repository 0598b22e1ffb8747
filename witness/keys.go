package witness

import (
	"context"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// maxKeyLeaves bounds the key leaves of one origin: whoever verifies a head
// reads them all.
const maxKeyLeaves = 1000

// Key judges the body of POST /key, a rotation signed by the old and the new
// key, and gives the index of its leaf. Sent again after a lost answer it gives
// the same index.
func (s *Server) Key(ctx context.Context, body []byte) (uint64, error) {
	k, note, err := api.ParseKeyNote(body)
	if err != nil {
		return 0, asBadRequest(err)
	}
	if k.Act != api.KeyRotate {
		return 0, fmt.Errorf("%w: %s is not taken here: a chain enrols at /enroll, and only the operator revokes", api.ErrBadRequest, k.Act)
	}
	rec, err := s.readOrigin(k.Origin)
	if err != nil {
		return 0, err
	}
	if len(note.Signatures) != 2 {
		return 0, fmt.Errorf("%w: a rotation has two signatures, by the old key and the new", api.ErrBadRequest)
	}
	if operator, err := k.SignedBy(note, s.keys.log.Vkey()); err != nil || operator {
		return 0, fmt.Errorf("%w: a rotation is signed by the old key and the new: %w", api.ErrForbidden, err)
	}
	if err := s.limits.take(k.Origin, s.o.Now()); err != nil {
		return 0, err
	}
	if rec.Key != k.Old.String() && rec.Key != k.New.String() {
		return 0, fmt.Errorf("%w: the key of %s is %s", api.ErrForbidden, k.Origin, rec.Key)
	}
	done, err := submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) {
		return b.changeKey(k, body, false, s.keys.log.Vkey())
	})
	return done.value, err
}

// RevokeAgent ends the key in force of an origin by the operator's word. Its
// heads from leaf since on, inclusive, are doubtful; with no since none is. It
// gives the index of the key leaf.
func (s *Server) RevokeAgent(ctx context.Context, origin string, since api.Ref) (uint64, error) {
	done, err := submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) {
		rec, err := b.record(origin)
		if err != nil {
			return accepted[uint64]{}, err
		}
		key, err := tlog.ParseVkey(rec.Key)
		if err != nil {
			return accepted[uint64]{}, fmt.Errorf("%w: the key of %s: %w", store.ErrDamaged, origin, err)
		}
		size, _ := rec.latest()
		k := api.KeyNote{Act: api.KeyRevoke, Origin: origin, FromSize: size, Old: &key, Since: since}
		if !since.Present {
			k.Since = api.At(b.next())
		}
		return b.operatorAct(k, s.keys.log)
	})
	return done.value, err
}

// RotateAgent puts a new key in force by the operator's word, for an origin
// whose key is lost or was revoked. The new key is named after the origin and
// signs heads from fromSize on: the seq of the chain's rotation receipt plus 1.
// It gives the index of the key leaf.
func (s *Server) RotateAgent(ctx context.Context, vkey string, fromSize uint64) (uint64, error) {
	key, err := tlog.ParseVkey(vkey)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", api.ErrBadRequest, err)
	}
	done, err := submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) {
		rec, err := b.record(key.Name)
		if err != nil {
			return accepted[uint64]{}, err
		}
		old, err := tlog.ParseVkey(rec.Key)
		if err != nil {
			return accepted[uint64]{}, fmt.Errorf("%w: the key of %s: %w", store.ErrDamaged, key.Name, err)
		}
		return b.operatorAct(api.KeyNote{Act: api.KeyRotate, Origin: key.Name, FromSize: fromSize, Old: &old, New: &key}, s.keys.log)
	})
	return done.value, err
}

func (b *batch) operatorAct(k api.KeyNote, log *tlog.Signer) (accepted[uint64], error) {
	note, err := k.Sign(log)
	if err != nil {
		return accepted[uint64]{}, err
	}
	if _, _, err := api.ParseKeyNote(note); err != nil {
		return accepted[uint64]{}, asBadRequest(err)
	}
	return b.changeKey(k, note, true, log.Vkey())
}

// changeKey writes the key leaf of a rotation or revocation whose signatures
// were verified, if the rules between an origin's key leaves allow it.
func (b *batch) changeKey(k api.KeyNote, note []byte, operator bool, log tlog.Vkey) (accepted[uint64], error) {
	rec, err := b.record(k.Origin)
	if err != nil {
		return accepted[uint64]{}, err
	}
	if again, err := b.sameKeyLeaf(rec, k); err != nil || again {
		return accepted[uint64]{rec.Keys}, err
	}
	history, err := b.keyHistory(rec, log)
	if err != nil {
		return accepted[uint64]{}, err
	}
	if err := history.Apply(b.next(), k, operator); err != nil {
		return accepted[uint64]{}, fmt.Errorf("%w: %w", api.ErrForbidden, err)
	}
	if e, ok := history.Find(*k.Old); k.Act == api.KeyRevoke && (!ok || k.Since.Index < e.Index || k.Since.Index > b.next()) {
		return accepted[uint64]{}, fmt.Errorf("%w: since %s is not between leaf %d, which put the key in force, and the revocation, leaf %d",
			api.ErrUnprocessable, k.Since, e.Index, b.next())
	}
	if size, _ := rec.latest(); k.Act == api.KeyRotate && size > k.FromSize {
		return accepted[uint64]{}, fmt.Errorf("%w: from-size %d, but a head of size %d was signed by the old key", api.ErrUnprocessable, k.FromSize, size)
	}
	index, err := b.append(api.Leaf{Type: api.LeafKey, Origin: k.Origin, Prev: api.At(rec.Prev), Keys: api.At(rec.Keys), Body: note})
	if err != nil {
		return accepted[uint64]{}, err
	}
	rec.Prev = index
	rec.applyKey(index, k)
	b.keep(rec)
	return accepted[uint64]{index}, nil
}

// applyKey is what a key leaf changes in its origin's record.
func (r *originRecord) applyKey(index uint64, k api.KeyNote) {
	r.Keys = index
	if k.Act == api.KeyRevoke {
		r.Revoked = &revocation{Index: index, Since: k.Since.Index}
		return
	}
	r.Key, r.From, r.Revoked = k.New.String(), k.FromSize, nil
}

// sameKeyLeaf says whether the newest key leaf says just what k says: the note
// was sent again.
func (b *batch) sameKeyLeaf(rec *originRecord, k api.KeyNote) (bool, error) {
	if k.New == nil || rec.Key != k.New.String() || rec.Revoked != nil {
		return false, nil
	}
	l, err := b.leafAt(rec.Keys)
	if err != nil {
		return false, err
	}
	was, _, err := api.ParseKeyNote(l.Body)
	if err != nil {
		return false, fmt.Errorf("%w: key leaf %d: %w", store.ErrDamaged, rec.Keys, err)
	}
	return string(was.Text()) == string(k.Text()), nil
}

// keyHistory reads the key leaves of an origin along their back links.
func (b *batch) keyHistory(rec *originRecord, log tlog.Vkey) (h api.KeyHistory, err error) {
	type keyLeaf struct {
		index    uint64
		note     api.KeyNote
		operator bool
	}
	var leaves []keyLeaf
	for at := api.At(rec.Keys); at.Present; {
		if len(leaves) == maxKeyLeaves {
			return h, fmt.Errorf("%w: %s has %d key leaves, no more are taken; a successor chain goes on", api.ErrUnprocessable, rec.Origin, maxKeyLeaves)
		}
		l, err := b.leafAt(at.Index)
		if err != nil {
			return h, err
		}
		k, note, err := api.ParseKeyNote(l.Body)
		if err != nil {
			return h, fmt.Errorf("%w: key leaf %d: %w", store.ErrDamaged, at.Index, err)
		}
		// Judged when it came into the log. A line by neither its own keys nor
		// the log is a former shard's: an operator's act too.
		operator, err := k.SignedBy(note, log)
		leaves = append(leaves, keyLeaf{at.Index, k, operator || err != nil})
		at = l.Keys
	}
	for i := len(leaves) - 1; i >= 0; i-- {
		if err := h.Apply(leaves[i].index, leaves[i].note, leaves[i].operator); err != nil {
			return h, fmt.Errorf("%w: key leaf %d: %w", store.ErrDamaged, leaves[i].index, err)
		}
	}
	return h, nil
}

// next is the index of the next leaf of the batch.
func (b *batch) next() uint64 { return b.base.Size + uint64(len(b.entries)) }

// leafAt reads a leaf of the log or of the batch itself.
func (b *batch) leafAt(index uint64) (api.Leaf, error) {
	entry := []byte(nil)
	if index >= b.base.Size && index < b.next() {
		entry = b.entries[index-b.base.Size]
	} else {
		entries, err := b.view.Entries(index, 1)
		if err != nil {
			return api.Leaf{}, fmt.Errorf("leaf %d: %w", index, err)
		}
		entry = entries[0]
	}
	l, err := api.ParseLeaf(entry)
	if err != nil {
		return l, fmt.Errorf("%w: leaf %d: %w", store.ErrDamaged, index, err)
	}
	return l, nil
}

package witness

import (
	"context"
	"crypto/sha256"
	"fmt"

	"toolguardian/witness/api"
)

// StampCommitments judges the body of POST /stamp, a stamp note by the head
// key, and gives the index of its leaf. The newest note sent again gives the
// same index.
func (s *Server) StampCommitments(ctx context.Context, body []byte) (uint64, error) {
	st, note, err := api.ParseStamp(body)
	if err != nil {
		return 0, asBadRequest(err)
	}
	if st.Log != s.origin {
		return 0, fmt.Errorf("%w: the stamp is for the log %.255q, this is %q", api.ErrBadRequest, st.Log, s.origin)
	}
	rec, err := s.readOrigin(st.Origin)
	if err != nil {
		return 0, err
	}
	if body, err = s.noteByKey(rec, note); err != nil {
		return 0, err
	}
	text := sha256.Sum256(note.Text)
	done, err := submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) { return b.seal(st.Origin, rec.Keys, text, body) })
	return done.value, err
}

// seal writes a stamp leaf.
func (b *batch) seal(origin string, keys uint64, text [32]byte, body []byte) (accepted[uint64], error) {
	rec, err := b.recordUnder(origin, keys)
	if err != nil {
		return accepted[uint64]{}, err
	}
	if rec.Sealed != nil && rec.Sealed.Text == text {
		return accepted[uint64]{rec.Sealed.Index}, nil
	}
	index, err := b.append(api.Leaf{Type: api.LeafStamp, Origin: origin, Prev: api.At(rec.Prev), Keys: api.At(rec.Keys), Body: body})
	if err != nil {
		return accepted[uint64]{}, err
	}
	rec.Prev = index
	rec.Sealed = &sealRecord{Index: index, Text: text}
	b.keep(rec)
	return accepted[uint64]{index}, nil
}

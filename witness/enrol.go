package witness

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// tokenLife is how long an enrolment token is good for.
const tokenLife = 24 * time.Hour

// tokenRecord is kept under the SHA-256 of the token: the store never holds
// the token itself.
type tokenRecord struct {
	Expires int64  `json:"expires"`           // POSIX seconds
	UsedBy  string `json:"used_by,omitempty"` // origin
}

func tokenKey(t api.Token) []byte {
	sum := sha256.Sum256([]byte(t.String()))
	return sum[:]
}

// NewToken makes an enrolment token: one use, 24 hours.
func (s *Server) NewToken(ctx context.Context) (string, error) {
	t := api.NewToken(s.keys.log.Vkey(), s.keys.cosigner.Vkey())
	done, err := submit(ctx, s.seq, func(b *batch) (accepted[api.Token], error) {
		rec := tokenRecord{Expires: b.now.Add(tokenLife).Unix()}
		return accepted[api.Token]{t}, b.putToken(t, rec)
	})
	if err != nil {
		return "", err
	}
	return done.value.String(), nil
}

func (b *batch) putToken(t api.Token, rec tokenRecord) error {
	value, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	b.put(store.Tokens, tokenKey(t), value)
	return nil
}

// AddAgent enrols an origin by the operator's word: the key leaf is signed by
// the log key, and reports say so. It gives the index of the leaf.
func (s *Server) AddAgent(ctx context.Context, vkey string) (uint64, error) {
	key, err := tlog.ParseVkey(vkey)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", api.ErrBadRequest, err)
	}
	if err := asBadRequest(api.CheckFirstKey(key)); err != nil {
		return 0, err
	}
	note, err := api.NewEnrol(key).Sign(s.keys.log)
	if err != nil {
		return 0, err
	}
	done, err := submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) { return b.enrol(key, note) })
	return done.value, err
}

// Enroll judges the body of POST /enroll and gives the index of the key leaf.
// Sent again after a lost answer it gives the same index.
func (s *Server) Enroll(ctx context.Context, body []byte) (uint64, error) {
	req, err := api.ParseEnrolRequest(body)
	if err != nil {
		return 0, asBadRequest(err)
	}
	k, note, err := api.ParseKeyNote(req.Note)
	if err != nil {
		return 0, asBadRequest(err)
	}
	if err := s.checkEnrol(req, k, note); err != nil {
		return 0, err
	}
	if err := s.rehearse(func(b *batch) error { _, err := b.enrolByToken(req.Token, *k.New, req.Note); return err }); err != nil {
		return 0, err
	}
	done, err := submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) {
		return b.enrolByToken(req.Token, *k.New, req.Note)
	})
	return done.value, err
}

// rehearse applies a request to a snapshot that nobody keeps. Strangers are
// refused here, before they take a place in the sequencer.
func (s *Server) rehearse(apply func(*batch) error) error {
	return s.read(func(p published) error {
		b := &batch{view: p, cache: s.seq.cache, base: store.State{Size: p.size}, origin: s.origin, now: s.o.Now(), records: map[string]*originRecord{}}
		return apply(b)
	})
}

func (s *Server) checkEnrol(req api.EnrolRequest, k api.KeyNote, note tlog.Note) error {
	if k.Act != api.KeyEnrol {
		return fmt.Errorf("%w: %s is not taken here: a rotation goes to /key", api.ErrBadRequest, k.Act)
	}
	if err := asBadRequest(api.CheckFirstKey(*k.New)); err != nil {
		return err
	}
	if req.Token != nil && !req.Token.Matches(s.keys.log.Vkey(), s.keys.cosigner.Vkey()) {
		return fmt.Errorf("%w: the token was made by another witness", api.ErrForbidden)
	}
	if len(note.Signatures) != 1 {
		return fmt.Errorf("%w: an enrolment has one signature, by the new key", api.ErrBadRequest)
	}
	if _, err := note.Verify(*k.New); err != nil {
		return fmt.Errorf("%w: %w", api.ErrForbidden, err)
	}
	return nil
}

// enrolByToken spends a token in the same commit as the key leaf: a crash
// leaves both or neither.
func (b *batch) enrolByToken(t *api.Token, key tlog.Vkey, note []byte) (accepted[uint64], error) {
	if index, ok, err := b.enrolled(key); ok || err != nil {
		return accepted[uint64]{index}, err
	}
	if t == nil {
		return accepted[uint64]{}, fmt.Errorf("%w: %s was not added by the operator; enrol with a token", api.ErrForbidden, key.Name)
	}
	rec, err := b.token(*t)
	if err != nil {
		return accepted[uint64]{}, err
	}
	done, err := b.enrol(key, note)
	if err != nil {
		return done, err
	}
	rec.UsedBy = key.Name
	return done, b.putToken(*t, rec)
}

// token gives a token's record, or why it is not good any more.
func (b *batch) token(t api.Token) (rec tokenRecord, err error) {
	value, err := b.get(store.Tokens, tokenKey(t))
	if errors.Is(err, store.ErrNotFound) {
		return rec, fmt.Errorf("%w: this witness has not made the token", api.ErrForbidden)
	}
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(value, &rec); err != nil {
		return rec, fmt.Errorf("%w: token record: %w", store.ErrDamaged, err)
	}
	switch {
	case rec.UsedBy != "":
		return rec, fmt.Errorf("%w: the token was used, a token is good for one chain; ask for another", api.ErrForbidden)
	case b.now.Unix() >= rec.Expires:
		return rec, fmt.Errorf("%w: the token expired at %s; ask for another", api.ErrForbidden,
			time.Unix(rec.Expires, 0).UTC().Format(time.RFC3339))
	}
	return rec, nil
}

// enrolled says whether this very key is in force already, and where.
func (b *batch) enrolled(key tlog.Vkey) (index uint64, ok bool, err error) {
	rec, err := b.record(key.Name)
	switch {
	case errors.Is(err, api.ErrUnknownOrigin):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case rec.Key != key.String():
		return 0, false, fmt.Errorf("%w: %s is enrolled with another key; a key is changed by a rotation", api.ErrForbidden, key.Name)
	}
	return rec.Keys, true, rec.mayWrite()
}

// enrol writes the key leaf; note is signed by the new key or by the log's.
func (b *batch) enrol(key tlog.Vkey, note []byte) (accepted[uint64], error) {
	if index, ok, err := b.enrolled(key); ok || err != nil {
		return accepted[uint64]{index}, err
	}
	index, err := b.append(api.Leaf{Type: api.LeafKey, Origin: key.Name, Body: note})
	if err != nil {
		return accepted[uint64]{}, err
	}
	b.keep(&originRecord{Origin: key.Name, Key: key.String(), Keys: index, Prev: index})
	return accepted[uint64]{index}, nil
}

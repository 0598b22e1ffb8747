package witness

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/tsa"
	"toolguardian/witness/store"
)

// stampRecord is one token kept for a checkpoint, beside the others of its
// size.
type stampRecord struct {
	Authority string    `json:"authority"`
	Token     tlog.Hash `json:"token"` // SHA-256 of the DER, a blob
	Time      time.Time `json:"time"`
	Leaf      uint64    `json:"leaf"`

	Key        tlog.Hash `json:"key"`                   // SHA-256 of the signer's public key: the operator
	Expires    time.Time `json:"expires,omitzero"`      // the first of its chain's certificates
	SelfIssued bool      `json:"self_issued,omitempty"` // no independent evidence
}

func (g stamped) record(token tlog.Hash, leaf uint64) stampRecord {
	r := stampRecord{Authority: g.authority.Name, Token: token, Time: g.token.Time, Leaf: leaf, SelfIssued: g.token.SelfIssued}
	if g.token.Signer != nil {
		r.Key = sha256.Sum256(g.token.Signer.RawSubjectPublicKeyInfo)
	}
	for _, cert := range g.token.Chain {
		if r.Expires.IsZero() || cert.NotAfter.Before(r.Expires) {
			r.Expires = cert.NotAfter.UTC()
		}
	}
	return r
}

// outside gives the certificates of a token's chain that the token itself does
// not carry.
func outside(t tsa.Token) (ders [][]byte) {
	for _, cert := range t.Chain {
		if !bytes.Contains(t.DER, cert.Raw) {
			ders = append(ders, cert.Raw)
		}
	}
	return ders
}

// stampRecords are the tokens of one checkpoint.
type stampRecords []stampRecord

// operators counts distinct operators by their keys: two names for one
// authority count once.
func (all stampRecords) operators() int {
	keys := map[tlog.Hash]bool{}
	for _, r := range all {
		keys[r.Key] = true
	}
	return len(keys)
}

// missing gives the authorities that have not stamped.
func (all stampRecords) missing(authorities []Authority) (left []Authority) {
	have := map[string]bool{}
	for _, r := range all {
		have[r.Authority] = true
	}
	for _, a := range authorities {
		if !have[a.Name] {
			left = append(left, a)
		}
	}
	return left
}

const (
	renewAfter  = 365 * 24 * time.Hour
	renewBefore = 30 * 24 * time.Hour // an expiry
	renewPause  = 24 * time.Hour      // between renewals before one expiry
)

// renewable says whether a token is old enough, or near enough to an expiry of
// its chain, for a newer checkpoint to be stamped over it although nothing but
// time leaves was added.
func (all stampRecords) renewable(now time.Time) bool {
	for _, r := range all {
		due := r.Time.Add(renewAfter)
		if early := r.Expires.Add(-renewBefore); !r.Expires.IsZero() && early.Before(due) {
			due = early
		}
		if pause := r.Time.Add(renewPause); due.Before(pause) {
			due = pause
		}
		if !now.Before(due) {
			return true
		}
	}
	return false
}

func (all stampRecords) newest() (at time.Time) {
	for _, r := range all {
		if r.Time.After(at) {
			at = r.Time
		}
	}
	return at
}

func readStamps(r store.Reader, size uint64) (stampRecords, error) {
	b, err := r.Get(store.Stamps, store.Key64(size))
	if err != nil {
		return nil, fmt.Errorf("timestamp of size %d: %w", size, err)
	}
	return decodeStamps(size, b)
}

func decodeStamps(size uint64, b []byte) (records stampRecords, err error) {
	if err := json.Unmarshal(b, &records); err != nil {
		return nil, fmt.Errorf("%w: stamps of size %d: %w", store.ErrDamaged, size, err)
	}
	return records, nil
}

// stampsAt gives the tokens of a checkpoint, none for one not yet stamped.
func (b *batch) stampsAt(size uint64) (stampRecords, error) {
	value, err := b.get(store.Stamps, store.Key64(size))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeStamps(size, value)
}

func (b *batch) putStamps(size uint64, records stampRecords) error {
	value, err := json.Marshal(records)
	if err != nil {
		return err
	}
	b.put(store.Stamps, store.Key64(size), value)
	return nil
}

func lastStamped(r store.Reader, origin string) (uint64, error) {
	place, err := stampedPlace(r, origin)
	return place.Size, err
}

// stampedPlace is zero while nothing was stamped.
func stampedPlace(r store.Reader, origin string) (stampPlace, error) {
	rec, err := readRecord(r, originKey(origin))
	if errors.Is(err, store.ErrNotFound) || err == nil && rec.Stamp == nil {
		return stampPlace{}, nil
	}
	if err != nil {
		return stampPlace{}, err
	}
	return *rec.Stamp, nil
}

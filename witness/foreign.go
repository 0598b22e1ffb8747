package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// foreignRecord is the latest checkpoint of another log that we cosign:
// recorded, not logged. It has no leaf and no index.
type foreignRecord struct {
	Origin string    `json:"origin"`
	Size   uint64    `json:"size"`
	Root   tlog.Hash `json:"root"`
	Time   int64     `json:"time"` // of our cosignature, POSIX seconds
	Note   []byte    `json:"note"` // the log's line and ours
}

// asHead lets the rules of heads judge it.
func (f *foreignRecord) asHead() *originRecord {
	rec := &originRecord{Origin: f.Origin}
	if f.Note != nil {
		rec.Head = &headRecord{Size: f.Size, Root: f.Root, Time: f.Time}
	}
	return rec
}

// foreignLogs are the keys of the logs that are configured, by origin.
func foreignLogs(keys []tlog.Vkey) map[string][]tlog.Vkey {
	by := map[string][]tlog.Vkey{}
	for _, k := range keys {
		by[k.Name] = append(by[k.Name], k)
	}
	return by
}

func readForeign(get func(store.Table, []byte) ([]byte, error), key []byte) (*foreignRecord, error) {
	b, err := get(store.Logs, key)
	if err != nil {
		return nil, err
	}
	rec := new(foreignRecord)
	if err := json.Unmarshal(b, rec); err != nil {
		return nil, fmt.Errorf("%w: record of another log: %w", store.ErrDamaged, err)
	}
	return rec, nil
}

// foreignLatest is empty for a log that was never cosigned.
func foreignLatest(get func(store.Table, []byte) ([]byte, error), origin string) (*foreignRecord, error) {
	rec, err := readForeign(get, originKey(origin))
	if errors.Is(err, store.ErrNotFound) {
		return &foreignRecord{Origin: origin}, nil
	}
	return rec, err
}

// admitForeign judges what needs no order. The rules are those of a chain's
// head (C2SP tlog-witness).
func (s *Server) admitForeign(a *admitted, note tlog.Note) error {
	if err := a.signedByAny(s.foreign[a.head.Origin], note); err != nil {
		return err
	}
	if err := s.limits.take(a.head.Origin, s.o.Now()); err != nil {
		return err
	}
	// Told even while nothing may be signed: two witnesses that cosign each
	// other ask for this size before they sign.
	return s.view(func(r store.Reader) error {
		rec, err := foreignLatest(r.Get, a.head.Origin)
		if err != nil {
			return err
		}
		return a.extends(rec.asHead())
	})
}

// signedByAny wants a valid line by one of the log's keys, and none that fails.
func (a *admitted) signedByAny(keys []tlog.Vkey, note tlog.Note) error {
	found := false
	for _, k := range keys {
		line, err := note.Verify(k)
		switch {
		case err == nil:
			a.key, a.line, found = k, line, true
		case !errors.Is(err, tlog.ErrNoSignature):
			return fmt.Errorf("%w: %w", api.ErrForbidden, err)
		}
	}
	if !found {
		return fmt.Errorf("%w: no signature by a key that is configured for %s", api.ErrForbidden, a.head.Origin)
	}
	return nil
}

// acceptForeign puts down the new size before anything is answered.
func (s *Server) acceptForeign(b *batch, a admitted) (accepted[Added], error) {
	rec, err := foreignLatest(b.get, a.head.Origin)
	if err != nil {
		return accepted[Added]{}, err
	}
	latest := rec.asHead()
	if err := a.extends(latest); err != nil {
		return accepted[Added]{}, err
	}
	if err := a.cosign(s.keys.cosigner, latest, b.now); err != nil {
		return accepted[Added]{}, err
	}
	next := foreignRecord{Origin: a.head.Origin, Size: a.head.Size, Root: a.head.Root, Time: a.at.Unix(),
		Note: tlog.Note{Text: a.text, Signatures: []tlog.Signature{a.line, a.cosig}}.Bytes()}
	value, err := json.Marshal(next)
	if err != nil {
		return accepted[Added]{}, err
	}
	b.put(store.Logs, originKey(next.Origin), value)
	return accepted[Added]{Added{Line: a.cosig, Unlogged: true}}, nil
}

// ForeignLog is another log that we cosign.
type ForeignLog struct {
	Origin string    `json:"origin"`
	Size   uint64    `json:"size"`
	Time   time.Time `json:"time,omitzero"` // of our newest cosignature
}

// foreignStatus lists the configured logs: cosigned, recorded, not logged.
func (s *Server) foreignStatus(p published) (logs []ForeignLog, err error) {
	for origin := range s.foreign {
		rec, err := foreignLatest(p.Get, origin)
		if err != nil {
			return nil, err
		}
		log := ForeignLog{Origin: origin, Size: rec.Size}
		if rec.Note != nil {
			log.Time = time.Unix(rec.Time, 0).UTC()
		}
		logs = append(logs, log)
	}
	return logs, nil
}

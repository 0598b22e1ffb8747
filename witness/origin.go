package witness

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// originRecord is what the store keeps about one origin: enough to judge the
// next head without reading the log. Fsck rebuilds it from the leaves.
type originRecord struct {
	Origin string `json:"origin"`
	Key    string `json:"key,omitempty"`  // newest vkey; none for the log itself
	From   uint64 `json:"from,omitempty"` // size of the smallest head that it signs
	Keys   uint64 `json:"keys"`           // index of the newest key leaf
	Prev   uint64 `json:"prev"`           // index of the newest leaf of any type

	Revoked *revocation `json:"revoked,omitempty"` // nil: Key is in force

	Head      *headRecord  `json:"head,omitempty"`
	Event     *eventRecord `json:"event,omitempty"`
	Sealed    *sealRecord  `json:"sealed,omitempty"`
	Forks     []uint64     `json:"forks,omitempty"`     // indexes of the fork leaves that accuse it
	Rollbacks []uint64     `json:"rollbacks,omitempty"` // of the rollback leaves over its heads
	Stamp     *stampPlace  `json:"stamp,omitempty"`     // of the log itself

	// Conflicts counts valid heads that were refused. No leaf tells of them.
	Conflicts uint64 `json:"conflicts,omitempty"`
}

// revocation is the leaf that revoked the key, and from which leaf on.
type revocation struct {
	Index uint64 `json:"index"`
	Since uint64 `json:"since"`
}

// sealRecord is the newest stamp leaf, so that a note sent again after a lost
// answer finds it.
type sealRecord struct {
	Index uint64    `json:"index"`
	Text  tlog.Hash `json:"text"` // SHA-256 of the note text
}

// headRecord is the latest cosigned head.
type headRecord struct {
	Index uint64    `json:"index"` // of its leaf
	Size  uint64    `json:"size"`
	Root  tlog.Hash `json:"root"`
	Time  int64     `json:"time"` // of the newest cosignature, POSIX seconds

	// Cosig is our newest line and Others the lines of other keys: with the
	// leaf's note they are what GET /<hex>/checkpoint serves.
	Cosig  string `json:"cosig"`
	Others string `json:"others,omitempty"`
}

// served is the note for GET /<hex>/checkpoint: the leaf's, with the newest
// cosignature and the lines of others, which are never in a leaf.
func (h *headRecord) served(r store.Reader) ([]byte, error) {
	entries, err := r.Entries(h.Index, 1)
	if err != nil {
		return nil, err
	}
	l, err := api.ParseLeaf(entries[0])
	if err != nil {
		return nil, fmt.Errorf("%w: head leaf %d: %w", store.ErrDamaged, h.Index, err)
	}
	note, err := tlog.ParseNote(l.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: head leaf %d: %w", store.ErrDamaged, h.Index, err)
	}
	b := tlog.Note{Text: note.Text, Signatures: note.Signatures[:1]}.Bytes()
	return append(b, h.Others+h.Cosig...), nil
}

// eventRecord is the newest event leaf.
type eventRecord struct {
	Index     uint64         `json:"index"`
	State     api.EventState `json:"state"`
	Heartbeat uint64         `json:"heartbeat"`
}

// stampPlace is the newest stamped checkpoint.
type stampPlace struct {
	Size uint64 `json:"size"`
	Full uint64 `json:"full,omitempty"` // newest size that the quorum of operators stamped; no leaf tells of it
}

// latest is the size and root that the next head must extend.
func (r *originRecord) latest() (size uint64, root tlog.Hash) {
	if r.Head == nil {
		return 0, tlog.EmptyRoot()
	}
	return r.Head.Size, r.Head.Root
}

// lastEvent is the index that a new event must know of: the newest event leaf,
// or the key leaf when there is none.
func (r *originRecord) lastEvent() uint64 {
	if r.Event == nil {
		return r.Keys
	}
	return r.Event.Index
}

// mayWrite refuses a chain whose key is not in force.
func (r *originRecord) mayWrite() error {
	if r.Revoked == nil {
		return nil
	}
	return fmt.Errorf("%w: the key of %s was revoked by leaf %d: an operator's rotation or a successor chain goes on",
		api.ErrForbidden, r.Origin, r.Revoked.Index)
}

// headKey is where the leaf of the head of that size is found.
func headKey(origin string, size uint64) []byte {
	return append(originKey(origin), store.Key64(size)...)
}

func originKey(origin string) []byte {
	sum := sha256.Sum256([]byte(origin))
	return sum[:]
}

// readOrigin gives the record of a chain, or api.ErrUnknownOrigin. The log's
// own record is not a chain's.
func readOrigin(r store.Reader, origin string) (*originRecord, error) {
	rec, err := readRecord(r, originKey(origin))
	if errors.Is(err, store.ErrNotFound) || err == nil && (rec.Origin != origin || rec.Key == "") {
		return nil, fmt.Errorf("%w: %.255q is not enrolled here; ask the operator for a token", api.ErrUnknownOrigin, origin)
	}
	return rec, err
}

func readRecord(r store.Reader, key []byte) (*originRecord, error) {
	b, err := r.Get(store.Origins, key)
	if err != nil {
		return nil, err
	}
	return decodeRecord(b)
}

func decodeRecord(b []byte) (*originRecord, error) {
	rec := new(originRecord)
	if err := json.Unmarshal(b, rec); err != nil {
		return nil, fmt.Errorf("%w: origin record: %w", store.ErrDamaged, err)
	}
	return rec, nil
}

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

// batch is the log as it will be if the next commit lands: a snapshot of the
// store and what was accepted on top of it. It belongs to the sequencer.
type batch struct {
	view   store.Reader
	cache  *recordCache
	base   store.State
	now    time.Time
	origin string // the log's

	records map[string]*originRecord // by origin, as accepted so far
	entries [][]byte
	leaves  []tlog.Hash
	puts    []store.Put
	active  uint64 // 1 + index of the newest leaf that is not a time leaf; 0: none here
}

// record gives a copy of an origin's record, to be changed and kept.
func (b *batch) record(origin string) (*originRecord, error) {
	rec := b.records[origin]
	if rec == nil {
		rec = b.cache.get(origin)
	}
	if rec == nil || rec.Key == "" {
		return readOrigin(b.view, origin)
	}
	c := *rec
	return &c, nil
}

// logRecord is the record of the log itself, of its time leaves.
func (b *batch) logRecord() (rec *originRecord, fresh bool, err error) {
	if rec, ok := b.records[b.origin]; ok {
		c := *rec
		return &c, false, nil
	}
	rec, err = readRecord(b.view, originKey(b.origin))
	if errors.Is(err, store.ErrNotFound) {
		return &originRecord{Origin: b.origin}, true, nil
	}
	return rec, false, err
}

// keep sets an origin's record; call it only once nothing can fail any more.
func (b *batch) keep(rec *originRecord) { b.records[rec.Origin] = rec }

// append adds a leaf and gives its index. On an error the batch is unchanged.
func (b *batch) append(l api.Leaf) (uint64, error) {
	entry, err := l.Bytes()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", api.ErrBadRequest, err)
	}
	index := b.base.Size + uint64(len(b.entries))
	b.entries = append(b.entries, entry)
	b.leaves = append(b.leaves, tlog.LeafHash(entry))
	if l.Type != api.LeafTime {
		b.active = index + 1
	}
	return index, nil
}

func (b *batch) put(t store.Table, key, value []byte) {
	b.puts = append(b.puts, store.Put{Table: t, Key: key, Value: value})
}

// get reads a key through what the batch has put.
func (b *batch) get(t store.Table, key []byte) ([]byte, error) {
	for i := len(b.puts) - 1; i >= 0; i-- {
		if p := b.puts[i]; p.Table == t && string(p.Key) == string(key) {
			return p.Value, nil
		}
	}
	return b.view.Get(t, key)
}

// empty says that nothing would change.
func (b *batch) empty() bool {
	return len(b.entries) == 0 && len(b.puts) == 0 && len(b.records) == 0
}

// sealed is the batch as a commit, and the edge of the tree it makes. The
// checkpoint over its leaves is signed last, after the stored tiles that the
// tree grows from were compared with the edge in memory: a tile that changed on
// disk shows before anything is signed over it.
func (b *batch) sealed(edge *tlog.Edge, log *tlog.Signer) (out store.Batch, next *tlog.Edge, err error) {
	out = store.Batch{Size: b.base.Size, Epoch: b.base.Epoch, Entries: b.entries, Checkpoint: b.base.Checkpoint, Puts: b.puts}
	for _, rec := range b.records {
		value, err := json.Marshal(rec)
		if err != nil {
			return out, nil, fmt.Errorf("origin record: %w", err)
		}
		out.Puts = append(out.Puts, store.Put{Table: store.Origins, Key: originKey(rec.Origin), Value: value})
	}
	if len(b.entries) == 0 {
		return out, edge, nil
	}
	if err := edge.Check(b.view); err != nil {
		return out, nil, fmt.Errorf("%w: at size %d: %w; run witness fsck", store.ErrDamaged, b.base.Size, err)
	}
	if out.Tiles, next, err = edge.Grow(b.leaves); err != nil {
		return out, nil, fmt.Errorf("grow the tree: %w", err)
	}
	cp := tlog.Checkpoint{Origin: b.origin, Size: next.Size(), Root: next.Root()}
	out, err = b.withCheckpoint(out, cp, log)
	return out, next, err
}

func (b *batch) withCheckpoint(out store.Batch, cp tlog.Checkpoint, log *tlog.Signer) (store.Batch, error) {
	signed, err := signCheckpoint(log, cp)
	if err != nil {
		return out, err
	}
	out.Checkpoint = signed
	out.Puts = append(out.Puts, store.Put{Table: store.Checkpoints, Key: store.Key64(cp.Size), Value: signed})
	return out, nil
}

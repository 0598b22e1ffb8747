package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/store"
)

// reader is one bbolt transaction. It copies what it hands out, since bbolt's
// slices point into the memory map and die with the transaction.
type reader struct{ tx *bbolt.Tx }

var _ store.Reader = reader{}

func (r reader) State() (s store.State, err error) {
	err = guard(func() error {
		s, err = readState(r.tx)
		return err
	})
	return s, err
}

func readState(tx *bbolt.Tx) (store.State, error) {
	b := tx.Bucket(bucketMeta).Get(keyState)
	if b == nil {
		return store.State{}, nil
	}
	if len(b) < 16 {
		return store.State{}, fmt.Errorf("%w: the state has %d bytes", store.ErrDamaged, len(b))
	}
	return store.State{
		Size:       binary.BigEndian.Uint64(b),
		Epoch:      binary.BigEndian.Uint64(b[8:]),
		Checkpoint: bytes.Clone(b[16:]),
	}, nil
}

func (r reader) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	data, err := r.get(bucketTiles, tileKey(id))
	if err != nil {
		return nil, fmt.Errorf("tile %d/%d: %w", id.Level, id.Index, err)
	}
	if width < 1 || len(data) < width*tlog.HashSize {
		return nil, fmt.Errorf("tile %d/%d: %w: %d hashes are kept, %d asked for",
			id.Level, id.Index, store.ErrNotFound, len(data)/tlog.HashSize, width)
	}
	return data[:width*tlog.HashSize], nil
}

func (r reader) Entries(index uint64, n int) (entries [][]byte, err error) {
	err = guard(func() error {
		c := r.tx.Bucket(bucketEntries).Cursor()
		k, v := c.Seek(store.Key64(index))
		for i := range uint64(n) {
			if !bytes.Equal(k, store.Key64(index+i)) {
				return fmt.Errorf("entry %d: %w", index+i, store.ErrNotFound)
			}
			entries = append(entries, bytes.Clone(v))
			k, v = c.Next()
		}
		return nil
	})
	return entries, err
}

func (r reader) Get(t store.Table, key []byte) ([]byte, error) {
	return r.get([]byte(t), key)
}

func (r reader) get(bucket, key []byte) (value []byte, err error) {
	err = guard(func() error {
		b := r.tx.Bucket(bucket)
		if b == nil {
			return fmt.Errorf("bucket %q: %w", bucket, store.ErrNotFound)
		}
		v := b.Get(key)
		if v == nil {
			return store.ErrNotFound
		}
		value = bytes.Clone(v)
		return nil
	})
	return value, err
}

func (r reader) Scan(t store.Table, from []byte, fn func(key, value []byte) bool) error {
	return guard(func() error {
		b := r.tx.Bucket([]byte(t))
		if b == nil {
			return fmt.Errorf("table %q: %w", t, store.ErrNotFound)
		}
		c := b.Cursor()
		for k, v := c.Seek(from); k != nil && fn(k, v); k, v = c.Next() {
		}
		return nil
	})
}

package chain

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"toolguardian/chain/tlog"
)

const tileSize = tlog.TileWidth * tlog.HashSize

// tree is the RFC 6962 tree over the chain's lines. Full tiles are files;
// the one partial tile of each level is here, and so are full ones whose
// lines are not synced yet: a tile on disk speaks only of durable lines.
type tree struct {
	at     layout
	leaves func(first uint64, n int) ([]byte, error) // leaf hashes from the lines

	mu    sync.RWMutex
	size  uint64
	edge  [][]byte // by level: hashes of the partial tile, only ever appended to
	ready map[tlog.TileID][]byte
}

func (l layout) tile(id tlog.TileID) string {
	return l.path(chainName, tilesName, filepath.FromSlash(id.Path(tlog.TileWidth)))
}

// savedTiles returns a number n such that tile n-1 of level 0 is on disk and
// tile n is not. Any boundary will do: what lies behind it is read from lines.
func (l layout) savedTiles() uint64 {
	has := func(i uint64) bool {
		ok, err := exists(l.fs, l.tile(tlog.TileID{Index: i}))
		return ok && err == nil
	}
	limit := uint64(1)
	for has(limit - 1) {
		limit *= 2
	}
	return uint64(sort.Search(int(limit), func(i int) bool { return !has(uint64(i)) }))
}

// newTree starts at the first n full tiles of level 0.
func newTree(at layout, n uint64, leaves func(uint64, int) ([]byte, error)) (*tree, error) {
	t := &tree{at: at, leaves: leaves, size: n * tlog.TileWidth, ready: make(map[tlog.TileID][]byte)}
	t.edge = [][]byte{nil}
	for level := 1; n > 0; level, n = level+1, n/tlog.TileWidth {
		var edge []byte
		for i := n - n%tlog.TileWidth; i < n; i++ {
			b, err := t.load(tlog.TileID{Level: level - 1, Index: i})
			if err != nil {
				return nil, err
			}
			root := subtreeRoot(b)
			edge = append(edge, root[:]...)
		}
		t.edge = append(t.edge, edge)
	}
	return t, nil
}

// subtreeRoot is the root over 2^k hashes.
func subtreeRoot(b []byte) tlog.Hash {
	if len(b) == tlog.HashSize {
		return tlog.Hash(b)
	}
	half := len(b) / 2
	return tlog.NodeHash(subtreeRoot(b[:half]), subtreeRoot(b[half:]))
}

// push adds the next line's leaf hash.
func (t *tree) push(leaf tlog.Hash) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size++
	for level := 0; ; level++ {
		if level == len(t.edge) {
			t.edge = append(t.edge, nil)
		}
		t.edge[level] = append(t.edge[level], leaf[:]...)
		if len(t.edge[level]) < tileSize {
			return
		}
		full := t.edge[level]
		index := t.size>>(8*(level+1)) - 1
		t.ready[tlog.TileID{Level: level, Index: index}] = full
		t.edge[level] = nil
		leaf = subtreeRoot(full)
	}
}

// ReadTile is tlog.TileReader over every size up to the tree's own.
func (t *tree) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	if b, ok, err := t.inMemory(id, width); ok || err != nil {
		return b, err
	}
	b, err := t.load(id)
	if err != nil {
		return nil, err
	}
	return b[:width*tlog.HashSize], nil
}

// leaf is the hash of one line.
func (t *tree) leaf(seq uint64) (tlog.Hash, error) {
	within := int(seq % tlog.TileWidth)
	b, err := t.ReadTile(tlog.TileID{Index: seq / tlog.TileWidth}, within+1)
	if err != nil {
		return tlog.Hash{}, err
	}
	return tlog.Hash(b[within*tlog.HashSize:]), nil
}

func (t *tree) inMemory(id tlog.TileID, width int) ([]byte, bool, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if id.Level < 0 || width < 1 || width > tlog.WidthAt(id, t.size) {
		return nil, false, fmt.Errorf("tile %d/%d of width %d: not in a tree of %d", id.Level, id.Index, width, t.size)
	}
	if b, ok := t.ready[id]; ok {
		return b[:width*tlog.HashSize], true, nil
	}
	if id.Index == t.size>>(8*(id.Level+1)) {
		return t.edge[id.Level][:width*tlog.HashSize], true, nil
	}
	return nil, false, nil
}

// load reads a full tile; one that is missing is rebuilt from what is below.
func (t *tree) load(id tlog.TileID) ([]byte, error) {
	b, err := readAll(t.at.fs, t.at.tile(id), tileSize)
	if err == nil && len(b) == tileSize {
		return b, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read tile: %w", err)
	}
	return t.rebuild(id)
}

func (t *tree) rebuild(id tlog.TileID) ([]byte, error) {
	first := id.Index * tlog.TileWidth
	if id.Level == 0 {
		return t.leaves(first, tlog.TileWidth)
	}
	b := make([]byte, 0, tileSize)
	for i := first; i < first+tlog.TileWidth; i++ {
		below, err := t.ReadTile(tlog.TileID{Level: id.Level - 1, Index: i}, tlog.TileWidth)
		if err != nil {
			return nil, err
		}
		root := subtreeRoot(below)
		b = append(b, root[:]...)
	}
	return b, nil
}

// save writes the full tiles whose lines are all below synced. Lower levels
// go first. A tile that is there already was written by another process.
func (t *tree) save(synced uint64, log *slog.Logger) {
	for _, id := range t.due(synced) {
		t.mu.RLock()
		b := t.ready[id]
		t.mu.RUnlock()
		if err := t.write(id, b); err != nil {
			log.Warn("tile not written, it stays in memory", "tile", id.Path(tlog.TileWidth), "err", err)
			return
		}
		t.mu.Lock()
		delete(t.ready, id)
		t.mu.Unlock()
	}
}

func (t *tree) due(synced uint64) []tlog.TileID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var ids []tlog.TileID
	for id := range t.ready {
		if tlog.WidthAt(id, synced) == tlog.TileWidth {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b tlog.TileID) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	return ids
}

func (t *tree) write(id tlog.TileID, b []byte) error {
	name := t.at.tile(id)
	if old, err := readAll(t.at.fs, name, tileSize); err == nil && slices.Equal(old, b) {
		return nil
	}
	if err := makeDirs(t.at.fs, filepath.Dir(name)); err != nil {
		return err
	}
	return replaceFile(t.at.fs, name, b)
}

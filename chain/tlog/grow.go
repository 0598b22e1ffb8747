package tlog

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrEdge: the tiles at the right edge of a stored tree are not the ones that
// were written there.
var ErrEdge = errors.New("a tile at the tree's edge has changed")

// Edge is the right edge of a tree, kept in memory: of each level the tile that
// is not full, and the frontier above them. It is never changed, so that a
// commit that fails leaves it as it was. The zero value is the empty tree's.
type Edge struct {
	frontier Frontier
	tiles    [][]byte // by level, empty where the last tile is full
}

// NewEdge reads the edge of the tree of the given size from its tiles. Whether
// Root is that of the tree some log signed is for the caller to compare.
func NewEdge(size uint64, r TileReader) (*Edge, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	e := &Edge{}
	for level, n := 0, size; n > 0; level, n = level+1, n/TileWidth {
		var data []byte
		if kept := int(n % TileWidth); kept > 0 {
			var err error
			if data, err = readTile(r, TileID{Level: level, Index: n / TileWidth}, kept); err != nil {
				return nil, err
			}
		}
		e.tiles = append(e.tiles, bytes.Clone(data)) // a reader in memory may give what it keeps
	}
	f, err := NewFrontier(size, edgeTiles(e.tiles))
	if err != nil {
		return nil, err
	}
	e.frontier = *f
	return e, nil
}

// Size is the number of leaves.
func (e *Edge) Size() uint64 { return e.frontier.Size() }

// Root is the tree's.
func (e *Edge) Root() Hash { return e.frontier.Root() }

// Check compares the edge with what r holds now, byte by byte. A difference is
// ErrEdge.
func (e *Edge) Check(r TileReader) error {
	for level, n := 0, e.Size(); n > 0; level, n = level+1, n/TileWidth {
		if len(e.tiles[level]) == 0 {
			continue
		}
		id := TileID{Level: level, Index: n / TileWidth}
		data, err := readTile(r, id, int(n%TileWidth))
		if err != nil {
			return err
		}
		if !bytes.Equal(data, e.tiles[level]) {
			return fmt.Errorf("%s: %w", id.Path(int(n%TileWidth)), ErrEdge)
		}
	}
	return nil
}

// Grow appends leaves. It returns every tile that is new or wider, in its
// widest form, and the edge of the grown tree, which shares no memory with them.
func (e *Edge) Grow(leaves []Hash) (changed map[TileID][]byte, next *Edge, err error) {
	size := e.Size()
	newSize := size + uint64(len(leaves))
	if err := checkSize(max(size, newSize)); err != nil {
		return nil, nil, err
	}
	next = &Edge{frontier: e.frontier, tiles: append([][]byte(nil), e.tiles...)}
	for _, h := range leaves {
		next.frontier.Append(h)
	}
	changed = make(map[TileID][]byte)
	for level, hashes := 0, leaves; len(hashes) > 0; level++ {
		if level == len(next.tiles) {
			next.tiles = append(next.tiles, nil)
		}
		hashes = next.growLevel(level, size, hashes, changed)
		size /= TileWidth
	}
	return changed, next, nil
}

// growLevel appends hashes to the tiles of one level, which holds start
// hashes, and returns the roots of the tiles that became full: the hashes to
// append one level up.
func (e *Edge) growLevel(level int, start uint64, hashes []Hash, changed map[TileID][]byte) (full []Hash) {
	id := TileID{Level: level, Index: start / TileWidth}
	for ; len(hashes) > 0; id.Index++ {
		old := e.tiles[level]
		add := min(TileWidth-len(old)/HashSize, len(hashes))
		data := append(make([]byte, 0, len(old)+add*HashSize), old...)
		for i := range hashes[:add] {
			data = append(data, hashes[i][:]...)
		}
		changed[id], e.tiles[level] = data, nil
		if len(data) == TileWidth*HashSize {
			full = append(full, perfectRoot(data))
		} else {
			e.tiles[level] = bytes.Clone(data)
		}
		hashes = hashes[add:]
	}
	return full
}

// edgeTiles is the last tile of each level.
type edgeTiles [][]byte

func (t edgeTiles) ReadTile(id TileID, width int) ([]byte, error) {
	return t[id.Level][:width*HashSize], nil
}

// Grow appends leaves to the tree of the given size. It returns every tile
// that is new or wider, in its widest form, and the new root; what r holds is
// not changed. Written before the new size is announced, the tiles are safe
// to lose or to write twice: a reader of the old size sees prefixes of them.
func Grow(size uint64, leaves []Hash, r TileReader) (changed map[TileID][]byte, root Hash, err error) {
	e, err := NewEdge(size, r)
	if err != nil {
		return nil, Hash{}, err
	}
	changed, next, err := e.Grow(leaves)
	if err != nil {
		return nil, Hash{}, err
	}
	return changed, next.Root(), nil
}

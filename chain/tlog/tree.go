package tlog

import (
	"fmt"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
)

// MaxSize is the largest tree size in use, so that sums of sizes and counts
// cannot wrap and every size fits an int64 elsewhere.
const MaxSize = 1<<63 - 1

func checkSize(size uint64) error {
	if size > MaxSize {
		return fmt.Errorf("tree size %d: beyond 2^63-1", size)
	}
	return nil
}

// TreeRoot returns the root of the first size leaves. Like all functions that
// read tiles it computes from what r returns: whether that is the tree some
// log signed is for the caller to compare.
func TreeRoot(size uint64, r TileReader) (Hash, error) {
	f, err := NewFrontier(size, r)
	if err != nil {
		return Hash{}, err
	}
	return f.Root(), nil
}

// ProveInclusion returns the audit path of leaf index in the tree of the
// given size (RFC 6962 section 2.1.1), from the leaf's sibling upwards.
func ProveInclusion(index, size uint64, r TileReader) ([]Hash, error) {
	return proveInclusion(index, newNodeReader(size, r, nil))
}

func proveInclusion(index uint64, r *nodeReader) ([]Hash, error) {
	if err := checkSize(r.size); err != nil {
		return nil, err
	}
	nodes, err := proof.Inclusion(index, r.size)
	if err != nil {
		return nil, fmt.Errorf("inclusion proof: %w", err)
	}
	return prove(nodes, r)
}

// ProveConsistency returns the proof that the tree of size m is a prefix of
// the tree of size n (RFC 6962 section 2.1.2). It is empty when m is 0 or n.
func ProveConsistency(m, n uint64, r TileReader) ([]Hash, error) {
	return proveConsistency(m, newNodeReader(n, r, nil))
}

func proveConsistency(m uint64, r *nodeReader) ([]Hash, error) {
	if err := checkSize(r.size); err != nil {
		return nil, err
	}
	nodes, err := proof.Consistency(m, r.size)
	if err != nil {
		return nil, fmt.Errorf("consistency proof: %w", err)
	}
	return prove(nodes, r)
}

// prove reads the nodes of a proof and joins those that stand for a subtree
// the tree's size leaves incomplete.
func prove(nodes proof.Nodes, reader *nodeReader) ([]Hash, error) {
	raw := make([][]byte, len(nodes.IDs))
	for i, id := range nodes.IDs {
		h, err := reader.read(id)
		if err != nil {
			return nil, err
		}
		raw[i] = h[:]
	}
	raw, err := nodes.Rehash(raw, new(hasher).HashChildren)
	if err != nil {
		return nil, fmt.Errorf("proof: %w", err)
	}
	hashes := make([]Hash, len(raw))
	for i, b := range raw {
		hashes[i] = Hash(b)
	}
	return hashes, nil
}

// nodeReader computes inner nodes of the tree of one size from its tiles,
// reading each tile once.
type nodeReader struct {
	size  uint64
	src   TileReader
	tiles map[TileID][]byte
	cache *NodeCache // nil: none
}

func newNodeReader(size uint64, src TileReader, cache *NodeCache) *nodeReader {
	return &nodeReader{size: size, src: src, tiles: make(map[TileID][]byte), cache: cache}
}

// read returns the root of the perfect subtree id, which must lie inside the
// tree.
func (n *nodeReader) read(id compact.NodeID) (Hash, error) {
	inTile := id.Level % tileHeight
	first, count := id.Index<<inTile, uint64(1)<<inTile
	tile := TileID{Level: int(id.Level / tileHeight), Index: first / TileWidth}
	width := WidthAt(tile, n.size)
	at := first % TileWidth
	if uint64(width) < at+count {
		return Hash{}, fmt.Errorf("node %d of level %d lies outside the tree of size %d", id.Index, id.Level, n.size)
	}
	if n.cache != nil {
		tree, err := n.cached(prefix{tile, width})
		if err != nil {
			return Hash{}, err
		}
		return tree[inTile][at>>inTile], nil
	}
	data, err := n.tile(tile, width)
	if err != nil {
		return Hash{}, err
	}
	return perfectRoot(data[at*HashSize : (at+count)*HashSize]), nil
}

func (n *nodeReader) cached(p prefix) (tileTree, error) {
	if tree, ok := n.cache.get(p); ok {
		return tree, nil
	}
	data, err := readTile(n.src, p.id, p.width)
	if err != nil {
		return tileTree{}, err
	}
	tree := newTileTree(data)
	n.cache.put(p, tree)
	return tree, nil
}

func (n *nodeReader) tile(id TileID, width int) ([]byte, error) {
	if data, ok := n.tiles[id]; ok {
		return data, nil
	}
	data, err := readTile(n.src, id, width)
	if err != nil {
		return nil, err
	}
	n.tiles[id] = data
	return data, nil
}

// readTile holds a reader to its word on the length.
func readTile(r TileReader, id TileID, width int) ([]byte, error) {
	data, err := r.ReadTile(id, width)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", id.Path(width), err)
	}
	if len(data) != width*HashSize {
		return nil, fmt.Errorf("read %s: %d bytes, want %d", id.Path(width), len(data), width*HashSize)
	}
	return data, nil
}

// perfectRoot returns the root over 2^k concatenated hashes.
func perfectRoot(b []byte) Hash {
	if len(b) == HashSize {
		return Hash(b)
	}
	mid := len(b) / 2
	return NodeHash(perfectRoot(b[:mid]), perfectRoot(b[mid:]))
}

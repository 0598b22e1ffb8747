package tlog

import "sync"

// NodeCache makes proofs over one log from nodes it has computed before. The
// first hashes of a tile never change, so nothing in it grows stale. It is safe
// for concurrent use; a nil cache computes everything anew.
type NodeCache struct {
	most  int
	mu    sync.RWMutex
	trees map[prefix]tileTree // guarded by mu
}

// prefix is the first width hashes of a tile.
type prefix struct {
	id    TileID
	width int
}

// tileTree is the perfect subtrees in a tile, by their height: those of one
// hash first.
type tileTree [tileHeight + 1][]Hash

// NewNodeCache keeps the nodes of at most so many tiles, 16 KiB each.
func NewNodeCache(tiles int) *NodeCache {
	return &NodeCache{most: tiles, trees: make(map[prefix]tileTree)}
}

// ProveInclusion is the function of that name.
func (c *NodeCache) ProveInclusion(index, size uint64, r TileReader) ([]Hash, error) {
	return proveInclusion(index, newNodeReader(size, r, c))
}

// ProveConsistency is the function of that name.
func (c *NodeCache) ProveConsistency(m, n uint64, r TileReader) ([]Hash, error) {
	return proveConsistency(m, newNodeReader(n, r, c))
}

func (c *NodeCache) get(p prefix) (tileTree, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.trees[p]
	return t, ok
}

// put lets any other tile give way above the bound.
func (c *NodeCache) put(p prefix, t tileTree) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.trees {
		if len(c.trees) < c.most {
			break
		}
		delete(c.trees, old)
	}
	c.trees[p] = t
}

func newTileTree(data []byte) (t tileTree) {
	t[0] = make([]Hash, len(data)/HashSize)
	for i := range t[0] {
		t[0][i] = Hash(data[i*HashSize:])
	}
	for height := 1; height < len(t); height++ {
		below := t[height-1]
		t[height] = make([]Hash, len(below)/2)
		for i := range t[height] {
			t[height][i] = NodeHash(below[2*i], below[2*i+1])
		}
	}
	return t
}

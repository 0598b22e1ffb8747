package tlog

import "github.com/transparency-dev/merkle/compact"

// Frontier is the right edge of a growing tree: the roots of the perfect
// subtrees that its size splits into, which is all that appending needs. The
// zero value is the empty tree. It is not safe for concurrent use.
type Frontier struct {
	size uint64
	// edge[i] is the root of the perfect subtree of 2^i leaves; it means
	// something only where bit i of size is set.
	edge [64]Hash
}

// NewFrontier reads the right edge of the tree of the given size.
func NewFrontier(size uint64, r TileReader) (*Frontier, error) {
	if err := checkSize(size); err != nil {
		return nil, err
	}
	f := &Frontier{size: size}
	nodes := newNodeReader(size, r, nil)
	for _, id := range compact.RangeNodes(0, size, nil) {
		h, err := nodes.read(id)
		if err != nil {
			return nil, err
		}
		f.edge[id.Level] = h
	}
	return f, nil
}

// Append adds the next leaf's hash. It does not allocate.
func (f *Frontier) Append(leaf Hash) {
	i := 0
	for ; f.size>>i&1 == 1; i++ {
		leaf = NodeHash(f.edge[i], leaf)
	}
	f.edge[i] = leaf
	f.size++
}

// Size returns the number of leaves.
func (f *Frontier) Size() uint64 { return f.size }

// Root returns the root of the tree (RFC 6962 section 2.1).
func (f *Frontier) Root() Hash {
	if f.size == 0 {
		return EmptyRoot()
	}
	var root Hash
	started := false
	for i := range f.edge {
		switch {
		case f.size>>i&1 == 0:
		case !started:
			root, started = f.edge[i], true
		default:
			root = NodeHash(f.edge[i], root)
		}
	}
	return root
}

// Clone returns a copy that grows on its own.
func (f *Frontier) Clone() *Frontier {
	c := *f
	return &c
}

package tlog

import (
	"errors"
	"fmt"

	"github.com/transparency-dev/merkle/proof"
)

// VerifyInclusion checks that leaf is the leaf hash at index in the tree with
// the given size and root (RFC 6962 section 2.1.1). Nil means proved.
func VerifyInclusion(leaf Hash, index, size uint64, path []Hash, root Hash) error {
	if err := checkSize(size); err != nil {
		return err
	}
	h := hasherFor(path)
	got, err := proof.RootFromInclusionProof(h, index, size, leaf[:], views(path))
	if err != nil {
		return fmt.Errorf("inclusion of leaf %d in size %d: %w", index, size, err)
	}
	if Hash(got) != root {
		return fmt.Errorf("inclusion of leaf %d in size %d: the path leads to root %x, the tree's is %s", index, size, got, root)
	}
	return nil
}

// VerifyConsistency checks that the tree (m, mRoot) is a prefix of the tree
// (n, nRoot) (RFC 6962 section 2.1.2). Nil means proved. Every tree extends
// the empty one, so m = 0 needs an empty proof and EmptyRoot, and proves
// nothing about nRoot unless n is 0 too.
func VerifyConsistency(m, n uint64, path []Hash, mRoot, nRoot Hash) error {
	if err := checkSize(n); err != nil {
		return err
	}
	err := verifyConsistency(m, n, path, mRoot, nRoot)
	if err != nil {
		return fmt.Errorf("consistency of size %d (root %s) with size %d (root %s): %w", m, mRoot, n, nRoot, err)
	}
	return nil
}

func verifyConsistency(m, n uint64, path []Hash, mRoot, nRoot Hash) error {
	switch {
	case m > n:
		return errors.New("the first size is the larger")
	case (m == 0 || m == n) && len(path) > 0:
		return fmt.Errorf("%d hashes where the proof is empty", len(path))
	case m == 0 && mRoot != EmptyRoot(), n == 0 && nRoot != EmptyRoot():
		return errors.New("size 0 has the root of the empty tree only")
	case m == n && mRoot != nRoot:
		return errors.New("two roots for one size")
	case m == 0 || m == n:
		return nil
	}
	return proof.VerifyConsistency(hasherFor(path), m, n, views(path), mRoot[:], nRoot[:])
}

// views shows hashes as the byte slices that the proof package takes.
func views(hashes []Hash) [][]byte {
	out := make([][]byte, len(hashes))
	for i := range hashes {
		out[i] = hashes[i][:]
	}
	return out
}

// hasher is the RFC 6962 hasher for the proof package. Its results lie in one
// arena, so that checking a proof costs one allocation, not one per node.
type hasher struct{ arena []byte }

// hasherFor returns a hasher with room for a proof of this length, which is
// walked twice when two roots are computed.
func hasherFor(path []Hash) *hasher {
	return &hasher{arena: make([]byte, 0, 2*len(path)*HashSize)}
}

func (h *hasher) keep(x Hash) []byte {
	h.arena = append(h.arena, x[:]...)
	end := len(h.arena)
	return h.arena[end-HashSize : end : end]
}

func (h *hasher) HashChildren(l, r []byte) []byte { return h.keep(NodeHash(Hash(l), Hash(r))) }
func (h *hasher) HashLeaf(leaf []byte) []byte     { return h.keep(LeafHash(leaf)) }
func (h *hasher) EmptyRoot() []byte               { return h.keep(EmptyRoot()) }
func (h *hasher) Size() int                       { return HashSize }

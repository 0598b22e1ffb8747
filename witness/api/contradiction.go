package api

import (
	"errors"
	"fmt"
	"math/bits"

	"toolguardian/chain/tlog"
)

// ErrNoContradiction: two heads that one honest chain may both have signed, or
// a path that does not show the opposite.
var ErrNoContradiction = errors.New("the heads do not contradict each other")

// pathRoots recomputes both roots from a consistency path (RFC 9162, 2.1.4.2)
// that begins with the m-root where m is a power of two, for 0 < m < n. Every
// hash of the path enters the n-root, so a path that gives the n-root of an
// honest tree gives its m-root as well.
func pathRoots(m, n uint64, path []tlog.Hash) (mRoot, nRoot tlog.Hash, err error) {
	if m == 0 || m >= n {
		return mRoot, nRoot, fmt.Errorf("%w: no path leads from size %d to size %d", ErrMalformed, m, n)
	}
	if len(path) == 0 || len(path) > MaxProofLines+1 {
		return mRoot, nRoot, fmt.Errorf("%w: a path of %d hashes", ErrMalformed, len(path))
	}
	fn, sn := m-1, n-1
	if trailing := bits.TrailingZeros64(^fn); trailing > 0 {
		fn, sn = fn>>trailing, sn>>trailing
	}
	mRoot, nRoot = path[0], path[0]
	for _, c := range path[1:] {
		if sn == 0 {
			return mRoot, nRoot, fmt.Errorf("%w: the path is too long", ErrMalformed)
		}
		if fn&1 == 1 || fn == sn {
			mRoot, nRoot = tlog.NodeHash(c, mRoot), tlog.NodeHash(c, nRoot)
			for fn&1 == 0 && fn != 0 {
				fn, sn = fn>>1, sn>>1
			}
		} else {
			nRoot = tlog.NodeHash(nRoot, c)
		}
		fn, sn = fn>>1, sn>>1
	}
	if sn != 0 {
		return mRoot, nRoot, fmt.Errorf("%w: the path is too short", ErrMalformed)
	}
	return mRoot, nRoot, nil
}

// IsPowerOfTwo says whether the path from m begins with the m-root in a fork
// file; RFC 9162 leaves it out of a consistency proof.
func IsPowerOfTwo(m uint64) bool { return m != 0 && m&(m-1) == 0 }

// Contradict is nil when a and b, heads of one origin with a.Size ≤ b.Size,
// cannot both be of one append-only chain: unequal roots of one size, or a path
// that gives b's root and another root than a's. Otherwise ErrNoContradiction,
// or ErrMalformed for a path that is none.
func Contradict(a, b tlog.Checkpoint, path []tlog.Hash) error {
	switch {
	case a.Origin != b.Origin:
		return fmt.Errorf("%w: they are of %s and %s", ErrNoContradiction, a.Origin, b.Origin)
	case a.Size > b.Size:
		return fmt.Errorf("%w: a has size %d, above b's %d", ErrMalformed, a.Size, b.Size)
	case a.Size == b.Size && len(path) > 0:
		return fmt.Errorf("%w: a path between heads of one size", ErrMalformed)
	case a.Size == b.Size && a.Root == b.Root:
		return fmt.Errorf("%w: they are the same head", ErrNoContradiction)
	case a.Size == b.Size:
		return nil
	}
	mRoot, nRoot, err := pathRoots(a.Size, b.Size, path)
	switch {
	case err != nil:
		return err
	case nRoot != b.Root:
		return fmt.Errorf("%w: the path gives the root %s at size %d, b's is %s", ErrNoContradiction, nRoot, b.Size, b.Root)
	case mRoot == a.Root:
		return fmt.Errorf("%w: b extends a", ErrNoContradiction)
	}
	return nil
}

package tlog_test

import (
	"slices"
	"testing"

	sumdb "golang.org/x/mod/sumdb/tlog"

	"toolguardian/chain/tlog"
)

// TestEmptyTreeConsistency holds size 0 to its one root and the empty proof,
// which a library may wave through whatever it is given.
func TestEmptyTreeConsistency(t *testing.T) {
	tree := newTestTree(t, 3)
	empty, root := tlog.EmptyRoot(), tree.sumdbRoot(t, 3)
	for name, c := range map[string]struct {
		m, n         uint64
		path         []tlog.Hash
		mRoot, nRoot tlog.Hash
		ok           bool
	}{
		"zero to three":           {0, 3, nil, empty, root, true},
		"zero to zero":            {0, 0, nil, empty, empty, true},
		"zero with another root":  {0, 3, nil, root, root, false},
		"zero with a zero root":   {0, 3, nil, tlog.Hash{}, root, false},
		"zero with a proof":       {0, 3, []tlog.Hash{root}, empty, root, false},
		"zero to zero with a lie": {0, 0, nil, empty, root, false},
		"three to zero":           {3, 0, nil, root, empty, false},
		"same size":               {3, 3, nil, root, root, true},
		"same size two roots":     {3, 3, nil, root, empty, false},
		"same size with a proof":  {3, 3, []tlog.Hash{root}, root, root, false},
		"growing without proof":   {1, 3, nil, tree.leaves[0], root, false},
	} {
		if err := tlog.VerifyConsistency(c.m, c.n, c.path, c.mRoot, c.nRoot); (err == nil) != c.ok {
			t.Errorf("%s: %v, want ok %v", name, err, c.ok)
		}
	}
}

// TestForgedProofs tries what a home-made tree lets through: a leaf posing as
// a node, another index or size, a path too long or too short.
func TestForgedProofs(t *testing.T) {
	tree := newTestTree(t, 6)
	root := tree.sumdbRoot(t, 6)
	path, err := tlog.ProveInclusion(2, 6, tree.tiles)
	if err != nil {
		t.Fatal(err)
	}
	// What hashes to the inner node over leaves 2 and 3 in a tree whose leaves
	// and nodes are not kept apart.
	posing := tlog.LeafHash(slices.Concat(tree.leaves[2][:], tree.leaves[3][:]))
	for name, c := range map[string]struct {
		leaf        tlog.Hash
		index, size uint64
		path        []tlog.Hash
	}{
		"leaf posing as node":     {posing, 1, 3, path[1:]},
		"short by the leaf level": {posing, 2, 6, path[1:]},
		"root as its own leaf":    {root, 0, 1, path},
		"other index":             {tree.leaves[2], 3, 6, path},
		"index at size":           {tree.leaves[2], 6, 6, path},
		"smaller size":            {tree.leaves[2], 2, 4, path},
		"short":                   {tree.leaves[2], 2, 6, path[:2]},
		"long":                    {tree.leaves[2], 2, 6, append(slices.Clone(path), root)},
		"swapped":                 {tree.leaves[2], 2, 6, []tlog.Hash{path[1], path[0], path[2]}},
		"another leaf":            {tree.leaves[1], 2, 6, path},
		"empty path":              {root, 2, 6, nil},
		"far index":               {tree.leaves[2], 1 << 62, 6, path},
		"size of the empty tree":  {tree.leaves[2], 0, 0, nil},
		"leaf data for leaf hash": {tlog.LeafHash(tree.leaves[2][:]), 2, 6, path},
	} {
		if tlog.VerifyInclusion(c.leaf, c.index, c.size, c.path, root) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzVerifyAgainstSumdb gives both verifiers the same right or damaged proof:
// they must agree.
func FuzzVerifyAgainstSumdb(f *testing.F) {
	const most = 300
	tree := newTestTree(f, most)
	f.Add(uint16(300), uint16(17), uint16(0), byte(0), int8(0), int8(0))
	f.Add(uint16(257), uint16(256), uint16(3), byte(0x80), int8(0), int8(0))
	f.Add(uint16(256), uint16(128), uint16(0), byte(0), int8(1), int8(0))
	f.Add(uint16(7), uint16(4), uint16(0), byte(0), int8(0), int8(-1))
	f.Fuzz(func(t *testing.T, size, index, at uint16, flip byte, longer, shift int8) {
		n := 1 + uint64(size)%most
		i := uint64(index) % n
		shifted := uint64(max(0, int64(i)+int64(shift)))
		leaf := tree.leaves[i]
		rootN := tree.sumdbRoot(t, n)

		path, err := tlog.ProveInclusion(i, n, tree.tiles)
		if err != nil {
			t.Fatal(err)
		}
		path = damage(path, at, flip, longer)
		ours := tlog.VerifyInclusion(leaf, shifted, n, path, rootN)
		theirs := sumdb.CheckRecord(sumdbHashes(path), int64(n), sumdb.Hash(rootN), int64(shifted), sumdb.Hash(leaf))
		if (ours == nil) != (theirs == nil) {
			t.Errorf("inclusion of %d in %d: we say %v, sumdb %v", shifted, n, ours, theirs)
		}

		m := i + 1
		path, err = tlog.ProveConsistency(m, n, tree.tiles)
		if err != nil {
			t.Fatal(err)
		}
		path = damage(path, at, flip, longer)
		rootM, claimed := tree.sumdbRoot(t, m), shifted+1
		ours = tlog.VerifyConsistency(claimed, n, path, rootM, rootN)
		theirs = sumdb.CheckTree(sumdbHashes(path), int64(n), sumdb.Hash(rootN), int64(claimed), sumdb.Hash(rootM))
		if (ours == nil) != (theirs == nil) {
			t.Errorf("consistency of %d with %d: we say %v, sumdb %v", claimed, n, ours, theirs)
		}
	})
}

// damage flips bits of one byte and makes the path longer or shorter.
func damage(path []tlog.Hash, at uint16, flip byte, longer int8) []tlog.Hash {
	path = slices.Clone(path)
	if k := int(at); len(path) > 0 {
		path[k/tlog.HashSize%len(path)][k%tlog.HashSize] ^= flip
	}
	for ; longer > 0; longer-- {
		path = append(path, tlog.EmptyRoot())
	}
	return path[:max(0, len(path)+int(longer))]
}

package tlog_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	sumdb "golang.org/x/mod/sumdb/tlog"

	"toolguardian/chain/tlog"
)

// TestGrowAgainstSumdb grows one tree in odd steps past the third tile level
// and compares root and changed tiles with golang.org/x/mod's at every step.
func TestGrowAgainstSumdb(t *testing.T) {
	tree := &testTree{tiles: make(tileMap)}
	rng := rand.New(rand.NewPCG(1, 2))
	var frontier tlog.Frontier
	steps := []int{1, 1, 253, 1, 1, 255, 256, 257, 1000, 63_000, 800, 1, 700}
	for range 20 {
		steps = append(steps, rng.IntN(600))
	}
	for _, n := range steps {
		old := tree.size()
		changed, root := tree.grow(t, n)
		for _, h := range tree.leaves[old:] {
			frontier.Append(h)
		}
		if want := tree.sumdbRoot(t, tree.size()); tree.size() > 0 && (root != want || frontier.Root() != want) {
			t.Fatalf("size %d: root %s, frontier %s, sumdb %s", tree.size(), root, frontier.Root(), want)
		}
		compareTiles(t, tree, old, changed)
	}
	if tree.size() < 1<<16 {
		t.Fatalf("only %d leaves: no tile of level 2", tree.size())
	}
}

func compareTiles(t *testing.T, tree *testTree, old uint64, changed map[tlog.TileID][]byte) {
	t.Helper()
	want := sumdb.NewTiles(8, int64(old), int64(tree.size()))
	if len(want) != len(changed) {
		t.Fatalf("%d to %d: %d tiles changed, sumdb has %d", old, tree.size(), len(changed), len(want))
	}
	for _, tile := range want {
		data, err := sumdb.ReadTileData(tile, tree)
		if err != nil {
			t.Fatal(err)
		}
		id := tlog.TileID{Level: tile.L, Index: uint64(tile.N)}
		if !bytes.Equal(changed[id], data) {
			t.Fatalf("tile %v of size %d differs from sumdb's", id, tree.size())
		}
		if w := tlog.WidthAt(id, tree.size()); w != tile.W {
			t.Fatalf("tile %v of size %d: width %d, sumdb %d", id, tree.size(), w, tile.W)
		}
		if got, want := id.Path(tile.W), strings.Replace(tile.Path(), "tile/8/", "tile/", 1); got != want {
			t.Fatalf("path %q, sumdb %q", got, want)
		}
	}
}

// TestProofsAgainstSumdb compares every proof of every small tree, read from
// the tiles of the largest, with golang.org/x/mod's.
func TestProofsAgainstSumdb(t *testing.T) {
	const most = 70
	tree := newTestTree(t, most)
	for n := uint64(1); n <= most; n++ {
		for i := range n {
			compareInclusion(t, tree, i, n)
			compareConsistency(t, tree, i+1, n)
		}
	}
}

func TestLargeProofsAgainstSumdb(t *testing.T) {
	tree := newTestTree(t, 70_000)
	rng := rand.New(rand.NewPCG(3, 4))
	sizes := []uint64{255, 256, 257, 65_535, 65_536, 65_537, 70_000}
	for range 100 {
		sizes = append(sizes, 1+rng.Uint64N(tree.size()))
	}
	for _, n := range sizes {
		for range 4 {
			compareInclusion(t, tree, rng.Uint64N(n), n)
			compareConsistency(t, tree, 1+rng.Uint64N(n), n)
		}
	}
}

func compareInclusion(t *testing.T, tree *testTree, i, n uint64) {
	t.Helper()
	path, err := tlog.ProveInclusion(i, n, tree.tiles)
	if err != nil {
		t.Fatal(err)
	}
	want, err := sumdb.ProveRecord(int64(n), int64(i), tree)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sumdbHashes(path), want) {
		t.Fatalf("inclusion of %d in %d: %v, sumdb %v", i, n, path, want)
	}
	if err := tlog.VerifyInclusion(tree.leaves[i], i, n, path, tree.sumdbRoot(t, n)); err != nil {
		t.Fatal(err)
	}
}

func compareConsistency(t *testing.T, tree *testTree, m, n uint64) {
	t.Helper()
	path, err := tlog.ProveConsistency(m, n, tree.tiles)
	if err != nil {
		t.Fatal(err)
	}
	want, err := sumdb.ProveTree(int64(n), int64(m), tree)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sumdbHashes(path), want) {
		t.Fatalf("consistency of %d with %d: %v, sumdb %v", m, n, path, want)
	}
	if err := tlog.VerifyConsistency(m, n, path, tree.sumdbRoot(t, m), tree.sumdbRoot(t, n)); err != nil {
		t.Fatal(err)
	}
}

func TestFrontierResumes(t *testing.T) {
	tree := newTestTree(t, 700)
	for size := range uint64(700) {
		f, err := tlog.NewFrontier(size, tree.tiles)
		if err != nil {
			t.Fatal(err)
		}
		before := f.Clone()
		f.Append(tree.leaves[size])
		if got, want := f.Root(), tree.sumdbRoot(t, size+1); got != want || f.Size() != size+1 {
			t.Fatalf("size %d: %s, want %s", f.Size(), got, want)
		}
		if root, err := tlog.TreeRoot(size, tree.tiles); err != nil || before.Root() != root || before.Size() != size {
			t.Fatalf("the clone of size %d grew with the original, or %v", size, err)
		}
	}
}

func TestEmptyTree(t *testing.T) {
	if got := tlog.EmptyRoot().Hex(); got != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("EmptyRoot is %s, not SHA-256 of nothing", got)
	}
	var zero tlog.Frontier
	if zero.Root() != tlog.EmptyRoot() {
		t.Error("the zero Frontier is not the empty tree")
	}
	changed, root, err := tlog.Grow(0, nil, tileMap{})
	if len(changed) != 0 || root != tlog.EmptyRoot() || err != nil {
		t.Errorf("Grow(0, nil) = %v, %s, %v", changed, root, err)
	}
	if _, err := tlog.ProveInclusion(0, 0, tileMap{}); err == nil {
		t.Error("a leaf was proved in the empty tree")
	}
}

// brokenTiles returns tiles of the wrong length, which no reader may.
type brokenTiles struct{ change int }

func (b brokenTiles) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	return make([]byte, max(0, width*tlog.HashSize+b.change)), nil
}

func TestTileOfWrongLength(t *testing.T) {
	for _, change := range []int{-32, -1, 1, 32} {
		r := brokenTiles{change: change}
		if _, err := tlog.TreeRoot(300, r); err == nil {
			t.Errorf("TreeRoot took a tile %+d bytes off", change)
		}
		if _, err := tlog.ProveInclusion(3, 300, r); err == nil {
			t.Errorf("ProveInclusion took a tile %+d bytes off", change)
		}
		if _, _, err := tlog.Grow(300, make([]tlog.Hash, 1), r); err == nil {
			t.Errorf("Grow took a tile %+d bytes off", change)
		}
	}
}

func TestSizesBeyondLimit(t *testing.T) {
	const big = uint64(tlog.MaxSize) + 1
	if _, err := tlog.TreeRoot(big, tileMap{}); err == nil {
		t.Error("TreeRoot took size 2^63")
	}
	if _, _, err := tlog.Grow(tlog.MaxSize, make([]tlog.Hash, 1), tileMap{}); err == nil {
		t.Error("Grow passed 2^63-1")
	}
	if _, _, err := tlog.Grow(^uint64(0), make([]tlog.Hash, 1), tileMap{}); err == nil {
		t.Error("Grow wrapped around")
	}
	if err := tlog.VerifyInclusion(tlog.Hash{}, 0, big, nil, tlog.Hash{}); err == nil {
		t.Error("VerifyInclusion took size 2^63")
	}
	if err := tlog.VerifyConsistency(big, big, nil, tlog.Hash{}, tlog.Hash{}); err == nil {
		t.Error("VerifyConsistency took size 2^63")
	}
}

func TestAllocations(t *testing.T) {
	tree := newTestTree(t, 1000)
	path, err := tlog.ProveInclusion(500, 1000, tree.tiles)
	if err != nil {
		t.Fatal(err)
	}
	root := tree.sumdbRoot(t, 1000)
	var f tlog.Frontier
	line := bytes.Repeat([]byte("x"), 1500)
	for name, c := range map[string]struct {
		most float64
		run  func()
	}{
		"Frontier.Append": {0, func() { f.Append(root) }},
		"LeafHash":        {0, func() { tlog.LeafHash(line) }},
		"NodeHash":        {0, func() { tlog.NodeHash(root, root) }},
		"VerifyInclusion": {4, func() {
			if err := tlog.VerifyInclusion(tree.leaves[500], 500, 1000, path, root); err != nil {
				t.Error(err)
			}
		}},
	} {
		if got := testing.AllocsPerRun(100, c.run); got > c.most {
			t.Errorf("%s allocates %v times, want at most %v", name, got, c.most)
		}
	}
}

// BenchmarkRebuild makes tiles and root of a chain of a million leaves anew.
func BenchmarkRebuild(b *testing.B) {
	leaves := make([]tlog.Hash, 1_000_000)
	for i := range leaves {
		leaves[i] = tlog.LeafHash([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
	}
	b.Run("Grow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := tlog.Grow(0, leaves, tileMap{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Frontier", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var f tlog.Frontier
			for _, h := range leaves {
				f.Append(h)
			}
			f.Root()
		}
	})
}

func BenchmarkVerifyInclusion(b *testing.B) {
	tree := newTestTree(b, 70_000)
	path, err := tlog.ProveInclusion(1234, 70_000, tree.tiles)
	if err != nil {
		b.Fatal(err)
	}
	root := tree.sumdbRoot(b, 70_000)
	b.ReportAllocs()
	for b.Loop() {
		if err := tlog.VerifyInclusion(tree.leaves[1234], 1234, 70_000, path, root); err != nil {
			b.Fatal(err)
		}
	}
}

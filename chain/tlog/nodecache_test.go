package tlog_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"toolguardian/chain/tlog"
)

// A cache that is too small for the tree gives the proofs that are made
// without one, at every size it has seen, to many at once.
func TestNodeCacheGivesTheSameProofs(t *testing.T) {
	const size = 3*256 + 77
	tree := newTestTree(t, size)
	cache := tlog.NewNodeCache(3)
	var wg sync.WaitGroup
	for part := range uint64(4) {
		wg.Go(func() {
			for i := part; i < size; i += 4 {
				n := size - i/2
				sameProof(t, cache, tree, i%n, n)
			}
		})
	}
	wg.Wait()
}

func sameProof(t *testing.T, cache *tlog.NodeCache, tree *testTree, i, n uint64) {
	t.Helper()
	want, err1 := tlog.ProveInclusion(i, n, tree.tiles)
	got, err2 := cache.ProveInclusion(i, n, tree.tiles)
	if err := errors.Join(err1, err2); err != nil || !slices.Equal(got, want) {
		t.Errorf("inclusion of %d in %d differs: %v", i, n, err)
	}
	want, err1 = tlog.ProveConsistency(i, n, tree.tiles)
	got, err2 = cache.ProveConsistency(i, n, tree.tiles)
	if err := errors.Join(err1, err2); err != nil || !slices.Equal(got, want) {
		t.Errorf("consistency of %d and %d differs: %v", i, n, err)
	}
}

// A tile that could not be read is asked for again.
func TestNodeCacheKeepsNoFailure(t *testing.T) {
	tree := newTestTree(t, 300)
	cache := tlog.NewNodeCache(10)
	if _, err := cache.ProveInclusion(7, 300, tileMap{}); err == nil {
		t.Error("a proof from no tiles")
	}
	sameProof(t, cache, tree, 7, 300)
}

func BenchmarkProveInclusion(b *testing.B) {
	const size = 100_000
	tree := newTestTree(b, size)
	for _, c := range []struct {
		name  string
		cache *tlog.NodeCache
	}{{"plain", nil}, {"cached", tlog.NewNodeCache(1024)}} {
		b.Run(c.name, func(b *testing.B) {
			for i := uint64(0); b.Loop(); i++ {
				if _, err := c.cache.ProveInclusion(i*7919%size, size, tree.tiles); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

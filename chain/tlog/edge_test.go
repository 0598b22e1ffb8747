package tlog_test

import (
	"bytes"
	"errors"
	"testing"

	"toolguardian/chain/tlog"
)

// An edge that grows in memory writes the tiles, and gives the root, of the one
// that is read back from what it wrote; the edge it grew from stays as it was.
func TestEdgeGrowsAsTheStoredTree(t *testing.T) {
	tree := newTestTree(t, 0)
	edge, err := tlog.NewEdge(0, tree.tiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 1, 253, 1, 1, 255, 300, 700, 63 * 1024, 2} {
		from, before := int(edge.Size()), edge.Root()
		want, root := tree.grow(t, n)
		got, next, err := edge.Grow(tree.hashes(from, n))
		if err != nil {
			t.Fatal(err)
		}
		if next.Root() != root || next.Size() != tree.size() || len(got) != len(want) {
			t.Fatalf("size %d: root %s and %d tiles, want %s and %d", tree.size(), next.Root(), len(got), root, len(want))
		}
		for id, data := range want {
			if !bytes.Equal(got[id], data) {
				t.Errorf("size %d: tile %d/%d differs", tree.size(), id.Level, id.Index)
			}
		}
		if edge.Root() != before {
			t.Errorf("size %d: growing changed the old edge", from)
		}
		if err := next.Check(tree.tiles); err != nil {
			t.Errorf("size %d: %v", tree.size(), err)
		}
		edge = next
	}
}

// One flipped bit in any tile at the edge is seen, of every level.
func TestEdgeSeesAChangedTile(t *testing.T) {
	tree := newTestTree(t, 3*256+5)
	edge, err := tlog.NewEdge(tree.size(), tree.tiles)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []tlog.TileID{{Level: 0, Index: 3}, {Level: 1, Index: 0}} {
		data := tree.tiles[id]
		for _, at := range []int{0, len(data) / 2, len(data) - 1} {
			data[at] ^= 0x10
			if err := edge.Check(tree.tiles); !errors.Is(err, tlog.ErrEdge) {
				t.Errorf("tile %d/%d, byte %d flipped: %v, want ErrEdge", id.Level, id.Index, at, err)
			}
			data[at] ^= 0x10
		}
	}
	if err := edge.Check(tree.tiles); err != nil {
		t.Errorf("whole again: %v", err)
	}
	delete(tree.tiles, tlog.TileID{Level: 0, Index: 3})
	if err := edge.Check(tree.tiles); err == nil {
		t.Error("a missing tile passed")
	}
}

func (t *testTree) hashes(from, n int) []tlog.Hash { return t.leaves[from : from+n] }

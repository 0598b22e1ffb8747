package witness_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"golang.org/x/mod/sumdb/note"
	modtlog "golang.org/x/mod/sumdb/tlog"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// monitor is an outsider: it reads the log over HTTP, trusts only a pinned key,
// and recomputes everything with golang.org/x/mod. It keeps what it was shown,
// so a log that shows two roots for a size, or another leaf for an index, is
// caught.
type monitor struct {
	t       testing.TB
	vkey    string
	origin  string
	roots   map[int64]modtlog.Hash
	tree    *agent // of the leaves read so far
	entries [][]byte
}

func newMonitor(t testing.TB, log tlog.Vkey) *monitor {
	return &monitor{t: t, vkey: log.String(), origin: log.Name, roots: map[int64]modtlog.Hash{}, tree: &agent{t: t}}
}

// note opens a signed checkpoint with sumdb/note.
func (m *monitor) note(signed []byte) modtlog.Tree {
	m.t.Helper()
	verifier, err := note.NewVerifier(m.vkey)
	if err != nil {
		m.t.Fatal(err)
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		m.t.Fatalf("sumdb/note refuses the checkpoint: %v\n%s", err, signed)
	}
	if len(n.Sigs)+len(n.UnverifiedSigs) != 1 {
		m.t.Errorf("a checkpoint with %d lines, want one of type 01", len(n.Sigs)+len(n.UnverifiedSigs))
	}
	var tree modtlog.Tree
	var origin, root string
	if _, err := fmt.Sscanf(n.Text, "%s\n%d\n%s\n", &origin, &tree.N, &root); err != nil || origin != m.origin {
		m.t.Fatalf("checkpoint text %q: %v", n.Text, err)
	}
	if tree.Hash, err = modtlog.ParseHash(root); err != nil {
		m.t.Fatal(err)
	}
	if was, ok := m.roots[tree.N]; ok && was != tree.Hash {
		m.t.Errorf("TWO ROOTS for size %d: %s and %s", tree.N, was, tree.Hash)
	}
	m.roots[tree.N] = tree.Hash
	return tree
}

// follow reads the newest checkpoint and the leaves that are new under it, and
// compares the root, and those of all sizes that it passes, with its own.
func (m *monitor) follow(c *api.Client) (modtlog.Tree, [][]byte) {
	m.t.Helper()
	signed, err := c.CheckpointLatest(context.Background())
	if err != nil {
		m.t.Fatal(err)
	}
	tree := m.note(signed)
	if tree.N < m.tree.size {
		m.t.Fatalf("ROLLBACK from size %d to %d", m.tree.size, tree.N)
	}
	for index := uint64(m.tree.size) / tlog.TileWidth; index*tlog.TileWidth < uint64(tree.N); index++ {
		m.readBundle(c, index, uint64(tree.N))
	}
	if m.tree.size != tree.N {
		m.t.Fatalf("%d leaves under a checkpoint of size %d", m.tree.size, tree.N)
	}
	return tree, m.entries
}

func (m *monitor) readBundle(c *api.Client, index, size uint64) {
	m.t.Helper()
	id := tlog.TileID{Level: tlog.EntriesLevel, Index: index}
	b, err := c.Tile(context.Background(), id, tlog.WidthAt(id, size))
	if err != nil {
		m.t.Fatal(err)
	}
	some, err := tlog.SplitBundle(b)
	if err != nil {
		m.t.Fatal(err)
	}
	for i, e := range some {
		at := int64(index*tlog.TileWidth) + int64(i)
		if at < m.tree.size {
			if !bytes.Equal(e, m.entries[at]) {
				m.t.Errorf("TWO LEAVES for index %d", at)
			}
			continue
		}
		m.entries = append(m.entries, e)
		m.tree.append(e)
		m.checkRoot()
	}
}

// checkRoot compares the root at the size reached with the checkpoints seen.
func (m *monitor) checkRoot() {
	m.t.Helper()
	want, ok := m.roots[m.tree.size]
	if !ok {
		return
	}
	got, err := modtlog.TreeHash(m.tree.size, m.tree)
	if err != nil || got != want {
		m.t.Errorf("size %d: the leaves give %s, a checkpoint says %s (%v)", m.tree.size, got, want, err)
	}
}

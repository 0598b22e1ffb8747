package tlog_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	sumdb "golang.org/x/mod/sumdb/tlog"

	"toolguardian/chain/tlog"
)

// tileMap keeps the widest form of each tile.
type tileMap map[tlog.TileID][]byte

func (m tileMap) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	data := m[id]
	if len(data) < width*tlog.HashSize {
		return nil, fmt.Errorf("tile %v is %d wide, not %d", id, len(data)/tlog.HashSize, width)
	}
	return data[:width*tlog.HashSize], nil
}

func (m tileMap) put(changed map[tlog.TileID][]byte) {
	for id, data := range changed {
		m[id] = data
	}
}

// testTree is one tree twice: as our tiles, and as golang.org/x/mod stores it.
type testTree struct {
	leaves []tlog.Hash
	tiles  tileMap
	stored []sumdb.Hash
}

func (t *testTree) ReadHashes(indexes []int64) ([]sumdb.Hash, error) {
	out := make([]sumdb.Hash, len(indexes))
	for i, x := range indexes {
		out[i] = t.stored[x]
	}
	return out, nil
}

func (t *testTree) size() uint64 { return uint64(len(t.leaves)) }

// grow appends n leaves to both forms and returns our changed tiles and root.
func (t *testTree) grow(tb testing.TB, n int) (map[tlog.TileID][]byte, tlog.Hash) {
	tb.Helper()
	var added []tlog.Hash
	for i := range n {
		data := fmt.Appendf(nil, "leaf %d", len(t.leaves)+i)
		added = append(added, tlog.LeafHash(data))
		hashes, err := sumdb.StoredHashes(int64(len(t.leaves)+i), data, t)
		if err != nil {
			tb.Fatal(err)
		}
		t.stored = append(t.stored, hashes...)
	}
	changed, root, err := tlog.Grow(t.size(), added, t.tiles)
	if err != nil {
		tb.Fatal(err)
	}
	t.leaves = append(t.leaves, added...)
	t.tiles.put(changed)
	return changed, root
}

func newTestTree(tb testing.TB, n int) *testTree {
	tb.Helper()
	t := &testTree{tiles: make(tileMap)}
	t.grow(tb, n)
	return t
}

// sumdbRoot is the root as the second implementation computes it.
func (t *testTree) sumdbRoot(tb testing.TB, size uint64) tlog.Hash {
	tb.Helper()
	h, err := sumdb.TreeHash(int64(size), t)
	if err != nil {
		tb.Fatal(err)
	}
	return tlog.Hash(h)
}

func sumdbHashes(hashes []tlog.Hash) []sumdb.Hash {
	out := make([]sumdb.Hash, len(hashes))
	for i, h := range hashes {
		out[i] = sumdb.Hash(h)
	}
	return out
}

// testKey is the same key for the same seed on every run.
func testKey(seed string) ed25519.PrivateKey {
	sum := sha256.Sum256([]byte(seed))
	return ed25519.NewKeyFromSeed(sum[:])
}

func testSigner(tb testing.TB, name string, t tlog.KeyType) *tlog.Signer {
	tb.Helper()
	s, err := tlog.NewSigner(name, t, testKey(fmt.Sprintf("%s %d", name, t)))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// signedBy returns text signed by the signers, each in the way of its type.
func signedBy(tb testing.TB, text []byte, signers ...*tlog.Signer) tlog.Note {
	tb.Helper()
	n := tlog.Note{Text: text}
	for _, s := range signers {
		var sig tlog.Signature
		var err error
		if s.Vkey().Type == tlog.KeyCosignature {
			sig, err = s.Cosign(text, testTime)
		} else {
			sig, err = s.Sign(text)
		}
		if err != nil {
			tb.Fatal(err)
		}
		n.Signatures = append(n.Signatures, sig)
	}
	return n
}

// sameBytes fails unless the parser's result was written back unchanged.
func sameBytes(tb testing.TB, accepted, written []byte) {
	tb.Helper()
	if !bytes.Equal(accepted, written) {
		tb.Fatalf("accepted %q\nwritten  %q", accepted, written)
	}
}

package bench

import (
	"crypto/ed25519"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/witness/api"
)

// writer is a chain that exists as its signed heads only, one for each line
// added, made before anything is timed.
type writer struct {
	vkey   string
	bodies [][]byte // of POST /add-checkpoint, in order
	sent   int
}

// newWriter signs n heads, of the sizes 1 to n.
func newWriter(n int) (*writer, error) {
	priv, err := tlog.GenerateKey()
	if err != nil {
		return nil, err
	}
	origin := receipts.Origin("bench.invalid", priv.Public().(ed25519.PublicKey))
	s, err := tlog.NewSigner(origin, tlog.KeyEd25519, priv)
	if err != nil {
		return nil, err
	}
	w := &writer{vkey: s.Vkey().String()}
	tiles, edge := memoryTiles{}, &tlog.Edge{}
	for size := range uint64(n) {
		leaf := tlog.LeafHash(fmt.Appendf(nil, "%s line %d", origin, size))
		changed, next, err := edge.Grow([]tlog.Hash{leaf})
		if err != nil {
			return nil, err
		}
		for id, b := range changed {
			tiles[id] = b
		}
		edge = next
		body, err := addBody(s, size, tlog.Checkpoint{Origin: origin, Size: size + 1, Root: edge.Root()}, tiles)
		if err != nil {
			return nil, err
		}
		w.bodies = append(w.bodies, body)
	}
	return w, nil
}

func addBody(s *tlog.Signer, old uint64, cp tlog.Checkpoint, tiles tlog.TileReader) ([]byte, error) {
	proof, err := tlog.ProveConsistency(old, cp.Size, tiles)
	if err != nil {
		return nil, err
	}
	sig, err := s.Sign(cp.Text())
	if err != nil {
		return nil, err
	}
	head := tlog.Note{Text: cp.Text(), Signatures: []tlog.Signature{sig}}.Bytes()
	return api.AddRequest{Old: old, Proof: proof, Head: head}.Bytes(), nil
}

// next is the body that the witness has not seen yet.
func (w *writer) next() []byte {
	w.sent++
	return w.bodies[w.sent-1]
}

// memoryTiles is a tlog.TileReader over what Grow returned.
type memoryTiles map[tlog.TileID][]byte

func (m memoryTiles) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	b := m[id]
	if len(b) < width*tlog.HashSize {
		return nil, fmt.Errorf("no tile %s", id.Path(width))
	}
	return b[:width*tlog.HashSize], nil
}

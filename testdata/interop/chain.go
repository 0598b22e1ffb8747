package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// chain makes the add-checkpoint requests of one origin, each a line longer,
// with x/mod's note and tlog.
type chain struct {
	origin, vkey string
	signer       note.Signer
	hashes       hashes
	size         int64
}

type hashes []tlog.Hash

func (h hashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		out[i] = h[x]
	}
	return out, nil
}

func newChain() (*chain, error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(pub)
	c := &chain{origin: fmt.Sprintf("bench.invalid/c/%x", id[:16])}
	if c.vkey, err = note.NewEd25519VerifierKey(c.origin, pub); err != nil {
		return nil, err
	}
	hash := strings.Split(c.vkey, "+")[1]
	seed := base64.StdEncoding.EncodeToString(append([]byte{1}, priv.Seed()...))
	c.signer, err = note.NewSigner(fmt.Sprintf("PRIVATE+KEY+%s+%s+%s", c.origin, hash, seed))
	return c, err
}

// next is the request for the tree with one line more.
func (c *chain) next() ([]byte, error) {
	added, err := tlog.StoredHashes(c.size, fmt.Appendf(nil, "%s line %d", c.origin, c.size), c.hashes)
	if err != nil {
		return nil, err
	}
	c.hashes = append(c.hashes, added...)
	old := c.size
	c.size++
	root, err := tlog.TreeHash(c.size, c.hashes)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", old)
	if old > 0 {
		proof, err := tlog.ProveTree(c.size, old, c.hashes)
		if err != nil {
			return nil, err
		}
		for _, h := range proof {
			fmt.Fprintln(&body, base64.StdEncoding.EncodeToString(h[:]))
		}
	}
	text := fmt.Sprintf("%s\n%d\n%s\n", c.origin, c.size, base64.StdEncoding.EncodeToString(root[:]))
	signed, err := note.Sign(&note.Note{Text: text}, c.signer)
	body.WriteByte('\n')
	body.Write(signed)
	return body.Bytes(), err
}

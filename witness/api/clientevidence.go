package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
)

// Stamp sends a stamp note by the head key and gives the index of its leaf.
func (c *Client) Stamp(ctx context.Context, note []byte) (index uint64, err error) {
	return c.postIndex(ctx, "/stamp", note)
}

// Misbehaviour shows a witness its own signature over what it does not hold: a
// checkpoint of its log, a head with its cosignature, or a rollback file. Nil:
// it signs nothing more. ErrUnprocessable: its log holds what was shown.
func (c *Client) Misbehaviour(ctx context.Context, evidence []byte) error {
	_, _, err := c.post(ctx, "/misbehaviour", evidence)
	if err != nil {
		return fmt.Errorf("misbehaviour: %w", err)
	}
	return nil
}

// ForkFile is the file that convicts a chain, made from the fork leaf at index.
func (c *Client) ForkFile(ctx context.Context, index uint64) ([]byte, error) {
	return c.get(ctx, fmt.Sprintf("/fork/%d", index), MaxEvidenceFile)
}

// RollbackFile is the file in the rollback leaf at index.
func (c *Client) RollbackFile(ctx context.Context, index uint64) ([]byte, error) {
	return c.get(ctx, fmt.Sprintf("/rollback/%d", index), MaxBody)
}

// Places are the hints that a witness gives beside an origin's head.
type Places struct {
	Head  uint64   // index of its newest head leaf
	Last  uint64   // of its newest leaf of any type; at least Head
	Forks []uint64 // of the fork leaves that accuse it
}

// Places asks where an origin's newest leaves are, for a walk back from them.
func (c *Client) Places(ctx context.Context, origin string) (p Places, err error) {
	sum := sha256.Sum256([]byte(origin))
	_, header, err := c.do(ctx, http.MethodGet, "/"+hex.EncodeToString(sum[:])+"/checkpoint", nil, MaxBody)
	if err != nil {
		return p, fmt.Errorf("head of %s: %w", origin, err)
	}
	p.Head = hint(header, HeaderIndex)
	p.Last = max(p.Head, hint(header, HeaderLast))
	for _, text := range header.Values(HeaderFork) {
		if n, err := strconv.ParseUint(text, 10, 63); err == nil {
			p.Forks = append(p.Forks, n)
		}
	}
	return p, nil
}

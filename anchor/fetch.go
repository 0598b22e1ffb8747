package anchor

import (
	"context"
	"errors"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/tsa"
	"toolguardian/witness/api"
)

// maxWalk bounds how many back links are followed.
const maxWalk = 1024

// Fetch asks a witness about one origin: its newest checkpoint, the origin's
// last head leaf and key leaves with their proofs, and the newest timestamped
// checkpoint over one of its heads. Nothing is judged here. since, if not 0, is
// a size of the log that the auditor has a checkpoint of: the path from it is
// fetched too.
func Fetch(ctx context.Context, c *api.Client, url, origin string, since uint64) (*Snapshot, error) {
	s := &Snapshot{Witness: url, Origin: origin}
	head, index, err := c.Head(ctx, origin)
	if errors.Is(err, api.ErrNotFound) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask the witness: %w", err)
	}
	s.Head = head
	size, err := logSize(ctx, c, index)
	if errors.Is(err, api.ErrNotFound) {
		return s, nil // a witness without a log of heads
	}
	if err != nil {
		return nil, fmt.Errorf("ask the witness: %w", err)
	}
	if s.Newest, err = fetchEvidence(ctx, c, index, size); err != nil {
		return nil, fmt.Errorf("ask the witness: %w", err)
	}
	if err := s.fetchStamped(ctx, c, index); err != nil {
		return nil, fmt.Errorf("ask the witness for time: %w", err)
	}
	if err := s.fetchAfter(ctx, c, index, size); err != nil {
		return nil, fmt.Errorf("ask the witness what it says of the keys: %w", err)
	}
	return s, s.fetchLinks(ctx, c, size, since)
}

// logSize is the size of the newest checkpoint that covers the leaf: the one
// with a quorum if it does, else the newest durable one.
func logSize(ctx context.Context, c *api.Client, index uint64) (uint64, error) {
	for _, get := range []func(context.Context) ([]byte, error){c.Checkpoint, c.CheckpointLatest} {
		note, err := get(ctx)
		if err != nil {
			return 0, err
		}
		cp, _, err := tlog.ParseSignedCheckpoint(note)
		if err != nil {
			return 0, fmt.Errorf("its checkpoint: %w", err)
		}
		if cp.Size > index {
			return cp.Size, nil
		}
	}
	return 0, fmt.Errorf("its newest checkpoint does not cover leaf %d, which it names", index)
}

// fetchEvidence reads a head leaf and its key leaves as of a log size.
func fetchEvidence(ctx context.Context, c *api.Client, index, size uint64) (*Evidence, error) {
	ev := &Evidence{}
	var leaf api.Leaf
	var err error
	if ev.LeafBytes, ev.Leaf, leaf, err = fetchLeaf(ctx, c, index, size); err != nil {
		return nil, err
	}
	for n := 0; leaf.Keys.Present; n++ {
		if n == maxWalk || leaf.Keys.Index >= index {
			return nil, fmt.Errorf("key leaf %d of leaf %d: the back links do not end", leaf.Keys.Index, index)
		}
		index = leaf.Keys.Index
		k := KeyEvidence{}
		if k.Bytes, k.Proof, leaf, err = fetchLeaf(ctx, c, index, size); err != nil {
			return nil, err
		}
		ev.Keys = append([]KeyEvidence{k}, ev.Keys...)
	}
	return ev, nil
}

func fetchLeaf(ctx context.Context, c *api.Client, index, size uint64) ([]byte, tlog.Proof, api.Leaf, error) {
	entry, err := c.Entry(ctx, index, size)
	if err != nil {
		return nil, tlog.Proof{}, api.Leaf{}, err
	}
	leaf, err := api.ParseLeaf(entry)
	if err != nil {
		return nil, tlog.Proof{}, leaf, fmt.Errorf("leaf %d: %w", index, err)
	}
	b, err := c.Proof(ctx, index, size)
	if err != nil {
		return nil, tlog.Proof{}, leaf, err
	}
	proof, err := tlog.ParseProof(b)
	if err != nil {
		return nil, proof, leaf, fmt.Errorf("proof of leaf %d: %w", index, err)
	}
	if at := logSizeOf(proof); at != size {
		return nil, proof, leaf, fmt.Errorf("proof of leaf %d: %w: at log size %d, asked for %d", index, api.ErrMalformed, at, size)
	}
	return entry, proof, leaf, nil
}

// fetchStamped walks back from the newest head until a timestamped checkpoint
// covers one.
func (s *Snapshot) fetchStamped(ctx context.Context, c *api.Client, index uint64) error {
	entry := s.Newest.LeafBytes
	for range maxWalk {
		leaf, err := api.ParseLeaf(entry)
		if err != nil {
			return err
		}
		size, err := c.TimestampFrom(ctx, index+1)
		switch {
		case err == nil && leaf.Type == api.LeafHead:
			return s.fetchStamp(ctx, c, index, size)
		case err != nil && !errors.Is(err, api.ErrNotFound):
			return err
		case !leaf.Prev.Present || leaf.Prev.Index >= index:
			return nil
		}
		index = leaf.Prev.Index
		if entry, err = c.Entry(ctx, index, index+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snapshot) fetchStamp(ctx context.Context, c *api.Client, index, size uint64) error {
	ev, err := fetchEvidence(ctx, c, index, size)
	if err != nil {
		return err
	}
	names, err := c.TimestampAuthorities(ctx, size)
	if err != nil {
		return err
	}
	for _, name := range names {
		response, err := c.Timestamp(ctx, size, name)
		if err != nil {
			return err
		}
		token, err := tsa.SplitToken(response)
		if err != nil {
			return fmt.Errorf("token of %s: %w", name, err)
		}
		ev.Times = append(ev.Times, TimeEvidence{Authority: name, Token: token})
	}
	s.Stamped = ev
	return nil
}

// fetchLinks gets the paths between the checkpoints in play.
func (s *Snapshot) fetchLinks(ctx context.Context, c *api.Client, newest, since uint64) error {
	var sizes []uint64
	if since <= newest { // a log that is behind what it signed before cannot give a path
		sizes = append(sizes, since)
	}
	if s.Stamped != nil {
		cp, _, err := tlog.ParseSignedCheckpoint(s.Stamped.Leaf.Checkpoint)
		if err != nil {
			return err
		}
		sizes = append(sizes, cp.Size)
	}
	for _, n := range sizes {
		from, to := min(n, newest), max(n, newest)
		if from == 0 || from == to {
			continue
		}
		path, err := c.Consistency(ctx, from, to)
		if err != nil {
			return fmt.Errorf("path from %d to %d of the log: %w", from, to, err)
		}
		s.Links = append(s.Links, LogLink{From: from, To: to, Path: path})
	}
	return nil
}

// headOfLeaf reads the head in a head leaf without judging the leaf.
func headOfLeaf(leafBytes []byte) (tlog.Checkpoint, tlog.Note, error) {
	leaf, err := api.ParseLeaf(leafBytes)
	if err != nil {
		return tlog.Checkpoint{}, tlog.Note{}, err
	}
	return tlog.ParseSignedCheckpoint(leaf.Body)
}

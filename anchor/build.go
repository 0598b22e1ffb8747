package anchor

import (
	"errors"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// ErrNotWitnessed: no head of the witness covers the receipt yet.
var ErrNotWitnessed = errors.New("not witnessed yet")

// ProvedLines gives lines of a chain and their proofs. *chain.Chain is one;
// ReadTree makes one of a folder.
type ProvedLines interface {
	Line(seq uint64) ([]byte, error)
	ProveInclusion(index, size uint64) ([]tlog.Hash, error)
}

// BuildProof makes the container of one receipt from what a witness answered:
// at the timestamped head if it covers the receipt, else at the newest one.
// before gives the note and token a receipt's notBefore names, nil where they
// are not kept. It returns ErrNotWitnessed while no head covers the receipt.
func BuildProof(lines ProvedLines, seq uint64, s *Snapshot, before func(receipts.NotBefore) (note, token []byte), openings ...NamedOpening) (Container, error) {
	ev, head, err := covering(s, seq)
	if err != nil {
		return Container{}, err
	}
	b := builder{lines: lines, size: head.Size}
	c := Container{Evidence: *ev, Openings: openings}
	leaf, _, err := headNote(ev)
	if err != nil {
		return Container{}, err
	}
	b.note = leaf
	var keySeq uint64
	var nb *receipts.NotBefore
	if c.Receipt, c.Head, keySeq, nb, err = b.prove(seq); err != nil {
		return Container{}, err
	}
	if c.KeyLines, err = b.keyLines(keySeq); err != nil {
		return Container{}, err
	}
	if nb != nil && before != nil {
		c.BeforeNote, c.BeforeToken = before(*nb)
	}
	return c, nil
}

// covering chooses the evidence whose head covers the receipt.
func covering(s *Snapshot, seq uint64) (*Evidence, tlog.Checkpoint, error) {
	for _, ev := range []*Evidence{s.Stamped, s.Newest} {
		if ev == nil {
			continue
		}
		head, _, err := headOfLeaf(ev.LeafBytes)
		if err != nil {
			return nil, head, err
		}
		if head.Size > seq {
			return ev, head, nil
		}
	}
	return nil, tlog.Checkpoint{}, fmt.Errorf("receipt %d: %w: try again once anchor status shows it below the witnessed size", seq, ErrNotWitnessed)
}

func headNote(ev *Evidence) ([]byte, tlog.Checkpoint, error) {
	head, note, err := headOfLeaf(ev.LeafBytes)
	return note.Bytes(), head, err
}

type builder struct {
	lines ProvedLines
	size  uint64
	note  []byte
}

// prove returns a line, its proof at the head, and what its statement says of
// keys and time.
func (b builder) prove(seq uint64) (line []byte, p tlog.Proof, keySeq uint64, nb *receipts.NotBefore, err error) {
	if line, err = b.lines.Line(seq); err != nil {
		return nil, p, 0, nil, err
	}
	hashes, err := b.lines.ProveInclusion(seq, b.size)
	if err != nil {
		return nil, p, 0, nil, fmt.Errorf("prove receipt %d: %w", seq, err)
	}
	e, err := receipts.ParseLine(line)
	if err != nil {
		return nil, p, 0, nil, fmt.Errorf("receipt %d: %w", seq, err)
	}
	st, err := receipts.ParseStatement(e.Payload)
	if err != nil {
		return nil, p, 0, nil, fmt.Errorf("receipt %d: %w", seq, err)
	}
	return line, tlog.Proof{Index: seq, Hashes: hashes, Checkpoint: b.note}, st.KeySeq, st.NotBefore, nil
}

// keyLines follows keySeq from the key in force back to the genesis.
func (b builder) keyLines(seq uint64) ([]KeyLine, error) {
	var lines []KeyLine
	for {
		line, proof, before, _, err := b.prove(seq)
		if err != nil {
			return nil, err
		}
		lines = append([]KeyLine{{Line: line, Proof: proof}}, lines...)
		if before >= seq {
			return lines, nil
		}
		seq = before
	}
}

// Tree holds the tiles of a chain folder's first lines in memory, 33 bytes a
// line, to prove receipts without opening the chain for writing.
type Tree struct {
	lines LineReader
	tiles map[tlog.TileID][]byte
	size  uint64
}

// LineReader reads a chain folder. *chain.Reader is one.
type LineReader interface {
	Lines
	Line(seq uint64) ([]byte, error)
}

// ReadTree reads the first size lines of a chain folder.
func ReadTree(lines LineReader, size uint64) (*Tree, error) {
	t := &Tree{lines: lines, tiles: map[tlog.TileID][]byte{}}
	var leaves []tlog.Hash
	for line, err := range lines.Lines(0) {
		if err != nil {
			return nil, err
		}
		if err := t.bridge(&leaves, min(line.Seq, size)); err != nil {
			return nil, err
		}
		if t.size+uint64(len(leaves)) == size {
			break
		}
		if leaves = append(leaves, tlog.LeafHash(line.Bytes)); len(leaves) == batchSize {
			if err := t.grow(leaves); err != nil {
				return nil, err
			}
			leaves = leaves[:0]
		}
	}
	if err := t.grow(leaves); err != nil {
		return nil, err
	}
	if t.size != size {
		return nil, fmt.Errorf("the chain has %d lines, the witnessed head covers %d: run verify", t.size, size)
	}
	return t, nil
}

// bridge takes the hashes of pruned lines before the next one that is there.
func (t *Tree) bridge(leaves *[]tlog.Hash, next uint64) error {
	from := t.size + uint64(len(*leaves))
	lines, ok := t.lines.(PrunedLines)
	if !ok || from >= next || next > lines.Pruned() {
		return nil
	}
	for from < next {
		hashes, err := lines.Hashes(from, int(min(next-from, batchSize)))
		if err != nil {
			return err
		}
		if err := t.grow(append(*leaves, hashes...)); err != nil {
			return err
		}
		*leaves, from = (*leaves)[:0], t.size
	}
	return nil
}

func (t *Tree) grow(leaves []tlog.Hash) error {
	changed, _, err := tlog.Grow(t.size, leaves, t)
	if err != nil {
		return err
	}
	for id, tile := range changed {
		t.tiles[id] = tile
	}
	t.size += uint64(len(leaves))
	return nil
}

// ReadTile implements tlog.TileReader.
func (t *Tree) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	tile := t.tiles[id]
	if len(tile) < width*tlog.HashSize {
		return nil, fmt.Errorf("tile %s is not in memory", id.Path(width))
	}
	return tile[:width*tlog.HashSize], nil
}

// Line returns a line of the folder.
func (t *Tree) Line(seq uint64) ([]byte, error) { return t.lines.Line(seq) }

// ProveInclusion proves a line in the tree of the given size.
func (t *Tree) ProveInclusion(index, size uint64) ([]tlog.Hash, error) {
	return tlog.ProveInclusion(index, size, t)
}

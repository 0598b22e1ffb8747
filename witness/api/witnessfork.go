package api

import (
	"errors"
	"fmt"

	"toolguardian/chain/tlog"
)

// WitnessForkHeader is the first line of a witness-fork file.
const WitnessForkHeader = "tool-guardian/witness-fork/v1"

// WitnessForkFile convicts a log: at one checkpoint it holds two head leaves of
// one origin that contradict each other.
type WitnessForkFile struct {
	A, B KeyProof // head leaves; A comes first in the log
}

// Bytes is the file.
func (f WitnessForkFile) Bytes() []byte {
	return tlog.FormatSections(WitnessForkHeader, []tlog.Section{
		{Name: "a-bytes", Data: f.A.Bytes}, {Name: "a", Data: f.A.Proof.Bytes()},
		{Name: "b-bytes", Data: f.B.Bytes}, {Name: "b", Data: f.B.Proof.Bytes()},
	})
}

// ParseWitnessForkFile accepts exactly what Bytes writes.
func ParseWitnessForkFile(b []byte) (WitnessForkFile, error) {
	f := WitnessForkFile{}
	s, err := parseFrames(WitnessForkHeader, b)
	if err != nil {
		return f, err
	}
	f.A.Bytes, f.A.Proof = s.take("a-bytes"), s.proof("a")
	f.B.Bytes, f.B.Proof = s.take("b-bytes"), s.proof("b")
	return f, s.end(f.Bytes, b)
}

// Judge reads both leaves and their inclusion in the one checkpoint. It says
// why they do not contradict each other, if so: a log of heads holds for one
// origin rising sizes, one root a size, and in each head leaf the path from
// the head leaf before it. It verifies no signature but needs none: the log
// signed the checkpoint, which is for the caller to verify.
func (f WitnessForkFile) Judge() (log tlog.Checkpoint, note tlog.Note, err error) {
	a, err := f.A.headLeaf("a")
	if err != nil {
		return log, note, err
	}
	b, err := f.B.headLeaf("b")
	if err != nil {
		return log, note, err
	}
	if string(f.A.Proof.Checkpoint) != string(f.B.Proof.Checkpoint) || f.A.Proof.Index >= f.B.Proof.Index {
		return log, note, fmt.Errorf("%w: want two leaves in the log's order at one checkpoint", ErrMalformed)
	}
	if log, note, err = f.A.Proof.Verify(tlog.LeafHash(f.A.Bytes)); err != nil {
		return log, note, fmt.Errorf("%w: leaf a: %w", ErrNoContradiction, err)
	}
	if _, _, err = f.B.Proof.Verify(tlog.LeafHash(f.B.Bytes)); err != nil {
		return log, note, fmt.Errorf("%w: leaf b: %w", ErrNoContradiction, err)
	}
	return log, note, LeavesContradict(a, b)
}

func (k KeyProof) headLeaf(name string) (HeadLeaf, error) {
	l, err := ParseLeaf(k.Bytes)
	if err != nil {
		return HeadLeaf{}, fmt.Errorf("%w: leaf %s: %w", ErrMalformed, name, err)
	}
	return ParseHeadLeaf(k.Proof.Index, l)
}

// HeadLeaf is a head leaf with its head.
type HeadLeaf struct {
	Leaf
	Index uint64
	Head  tlog.Checkpoint
	Note  tlog.Note // the chain's line, then the log's cosignature
}

// ParseHeadLeaf reads the head in a leaf; no signature is verified.
func ParseHeadLeaf(index uint64, l Leaf) (HeadLeaf, error) {
	h := HeadLeaf{Leaf: l, Index: index}
	if l.Type != LeafHead {
		return h, fmt.Errorf("%w: leaf %d is a %s leaf, want a head", ErrMalformed, index, l.Type)
	}
	var err error
	if h.Head, h.Note, err = tlog.ParseSignedCheckpoint(l.Body); err != nil {
		return h, fmt.Errorf("%w: the head in leaf %d: %w", ErrMalformed, index, err)
	}
	if h.Head.Origin != l.Origin || len(h.Note.Signatures) != 2 {
		return h, fmt.Errorf("%w: leaf %d of %s holds a head of %s with %d lines, want two lines", ErrMalformed, index, l.Origin, h.Head.Origin, len(h.Note.Signatures))
	}
	return h, nil
}

// LeavesContradict is nil when no honest log holds the head leaf a and, later,
// b of the same origin. b's proof lines count only where b names a as the leaf
// before it, or where they show another root of a's size.
func LeavesContradict(a, b HeadLeaf) error {
	switch {
	case a.Origin != b.Origin:
		return fmt.Errorf("%w: leaves of %s and of %s", ErrNoContradiction, a.Origin, b.Origin)
	case b.Head.Size < a.Head.Size, b.Head.Size == a.Head.Size && a.Head.Root != b.Head.Root:
		return nil
	case b.Head.Size == a.Head.Size:
		return fmt.Errorf("%w: one head twice", ErrNoContradiction)
	}
	if b.Prev == At(a.Index) {
		err := tlog.VerifyConsistency(a.Head.Size, b.Head.Size, b.Proof, a.Head.Root, b.Head.Root)
		if a.Head.Size > 0 && err != nil {
			return nil
		}
		return fmt.Errorf("%w: b extends a", ErrNoContradiction)
	}
	if err := Contradict(a.Head, b.Head, b.Proof); errors.Is(err, ErrMalformed) {
		return fmt.Errorf("%w: b's proof lines do not begin at a", ErrNoContradiction)
	} else if err != nil {
		return err
	}
	return nil
}

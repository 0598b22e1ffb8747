package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

const proofHeader = "c2sp.org/tlog-proof@v1"

// maxPath is the longest inclusion path of any tree up to MaxSize.
const maxPath = 63

// Proof is a tlog-proof (C2SP tlog-proof) without extra data: that a leaf
// lies at Index in the tree of a signed checkpoint.
type Proof struct {
	Index      uint64
	Hashes     []Hash
	Checkpoint []byte // the note
}

// Bytes returns the proof as it is stored in a .tlog-proof file.
func (p Proof) Bytes() []byte {
	b := fmt.Appendf(nil, "%s\nindex %d\n", proofHeader, p.Index)
	for _, h := range p.Hashes {
		b = append(b, h.Base64()+"\n"...)
	}
	return append(append(b, '\n'), p.Checkpoint...)
}

// ParseProof accepts exactly what Bytes writes for a strict checkpoint note.
// A proof with an extra line is refused: nothing would authenticate it.
func ParseProof(b []byte) (Proof, error) {
	p, err := splitProof(b)
	if err != nil {
		return Proof{}, fmt.Errorf("tlog-proof: %w", err)
	}
	if !bytes.Equal(p.Bytes(), b) {
		return Proof{}, errors.New("tlog-proof: not in canonical form")
	}
	return p, nil
}

func splitProof(b []byte) (Proof, error) {
	head, note, ok := bytes.Cut(b, []byte("\n\n"))
	if !ok {
		return Proof{}, errors.New("no empty line before the checkpoint")
	}
	if _, _, err := ParseSignedCheckpoint(note); err != nil {
		return Proof{}, err
	}
	lines := strings.Split(string(head), "\n")
	if lines[0] != proofHeader {
		return Proof{}, fmt.Errorf("first line %.40q, want %q", lines[0], proofHeader)
	}
	if len(lines) < 2 || len(lines) > 2+maxPath {
		return Proof{}, fmt.Errorf("%d lines before the checkpoint, want 2 to %d", len(lines), 2+maxPath)
	}
	index, ok := strings.CutPrefix(lines[1], "index ")
	if !ok {
		return Proof{}, fmt.Errorf("second line %.40q, want the index", lines[1])
	}
	p := Proof{Checkpoint: bytes.Clone(note)}
	var err error
	if p.Index, err = parseDecimal(index); err != nil {
		return Proof{}, fmt.Errorf("index: %w", err)
	}
	p.Hashes, err = parsePath(lines[2:])
	return p, err
}

func parsePath(lines []string) ([]Hash, error) {
	var hashes []Hash
	for i, line := range lines {
		h, err := ParseHashBase64(line)
		if err != nil {
			return nil, fmt.Errorf("path line %d: %w", i+1, err)
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}

// Verify checks that leaf, a leaf hash, is included in the proof's checkpoint
// at Index, and returns that checkpoint. It verifies no signature: the proof
// is worth what Note.Verify or Policy.Check says of the note returned.
func (p Proof) Verify(leaf Hash) (Checkpoint, Note, error) {
	c, n, err := ParseSignedCheckpoint(p.Checkpoint)
	if err != nil {
		return Checkpoint{}, Note{}, fmt.Errorf("tlog-proof: %w", err)
	}
	if err := VerifyInclusion(leaf, p.Index, c.Size, p.Hashes, c.Root); err != nil {
		return Checkpoint{}, Note{}, fmt.Errorf("tlog-proof: %w", err)
	}
	return c, n, nil
}

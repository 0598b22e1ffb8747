package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrEmptyTreeRoot is what a checkpoint of size 0 is refused with when its root
// is not EmptyRoot; a witness answers it with 422 (C2SP tlog-witness).
var ErrEmptyTreeRoot = errors.New("size 0 with a root other than the empty tree's")

// Checkpoint is the tree that a log commits to (C2SP tlog-checkpoint).
type Checkpoint struct {
	Origin string // a ValidName
	Size   uint64 // leaves, at most MaxSize
	Root   Hash
}

// Text returns the note text: origin, size and root, a line each.
func (c Checkpoint) Text() []byte {
	return fmt.Appendf(nil, "%s\n%d\n%s\n", c.Origin, c.Size, c.Root.Base64())
}

// ParseCheckpoint accepts exactly what Text writes, hence no extension lines,
// for an origin that may name a key: without spaces it cannot be confused
// with the start of another signed format. Size 0 has the empty root only, else
// ErrEmptyTreeRoot.
func ParseCheckpoint(text []byte) (Checkpoint, error) {
	c, err := splitCheckpoint(string(text))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	if !bytes.Equal(c.Text(), text) {
		return Checkpoint{}, errors.New("checkpoint: not in canonical form")
	}
	return c, nil
}

func splitCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return Checkpoint{}, errors.New("want three lines: origin, size, root")
	}
	if !ValidName(lines[0]) {
		return Checkpoint{}, fmt.Errorf("origin %.100q: must not be empty or hold spaces, plus signs or control characters", lines[0])
	}
	size, err := parseDecimal(lines[1])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("size: %w", err)
	}
	root, err := ParseHashBase64(lines[2])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("root: %w", err)
	}
	if size == 0 && root != EmptyRoot() {
		return Checkpoint{}, ErrEmptyTreeRoot
	}
	return Checkpoint{Origin: lines[0], Size: size, Root: root}, nil
}

// parseDecimal reads a number up to 2^63-1 without sign or leading zeros.
func parseDecimal(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("%.40q is not a plain decimal up to 2^63-1", s)
	}
	return n, nil
}

// ParseSignedCheckpoint reads a note whose text is a checkpoint. It verifies
// no signature: that is for Note.Verify with a key the caller trusts.
func ParseSignedCheckpoint(b []byte) (Checkpoint, Note, error) {
	n, err := ParseNote(b)
	if err != nil {
		return Checkpoint{}, Note{}, err
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, Note{}, err
	}
	return c, n, nil
}

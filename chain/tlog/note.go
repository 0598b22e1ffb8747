package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxNote is the longest note that is read, in bytes: room for the sixteen
// signatures every reader of C2SP signed-note must take, even post-quantum.
const MaxNote = 128 << 10

const maxSignatures = 100

// Note is a signed note (C2SP signed-note): a text ending in a newline and
// its signature lines.
type Note struct {
	Text       []byte
	Signatures []Signature
}

// ParseNote reads a note with 1 to 100 signature lines. It accepts only what
// Bytes writes back unchanged; no signature is verified.
func ParseNote(b []byte) (Note, error) {
	if len(b) > MaxNote {
		return Note{}, fmt.Errorf("note: %d bytes, at most %d are read", len(b), MaxNote)
	}
	// The last empty line parts the text from the signatures.
	split := bytes.LastIndex(b, []byte("\n\n"))
	if split < 0 {
		return Note{}, errors.New("note: no empty line between text and signatures")
	}
	text := b[:split+1]
	if err := checkNoteBytes(text); err != nil {
		return Note{}, fmt.Errorf("note: %w", err)
	}
	sigs, err := ParseSignatureLines(b[split+2:])
	if err != nil {
		return Note{}, fmt.Errorf("note: %w", err)
	}
	n := Note{Text: bytes.Clone(text), Signatures: sigs}
	if !bytes.Equal(n.Bytes(), b) {
		return Note{}, errors.New("note: not in canonical form")
	}
	return n, nil
}

// checkNoteBytes refuses what a note may hold nowhere.
func checkNoteBytes(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("not valid UTF-8")
	}
	for i, c := range b {
		if c < ' ' && c != '\n' {
			return fmt.Errorf("control character %#02x at byte %d", c, i)
		}
	}
	return nil
}

// checkNoteText refuses what cannot be the text of a note.
func checkNoteText(text []byte) error {
	if !bytes.HasSuffix(text, []byte("\n")) {
		return errors.New("note text does not end in a newline")
	}
	return checkNoteBytes(text)
}

// Bytes returns the text, an empty line and the signature lines.
func (n Note) Bytes() []byte {
	b := append(bytes.Clone(n.Text), '\n')
	for _, s := range n.Signatures {
		b = append(b, s.Line()...)
	}
	return b
}

// Verify returns k's signature on the note: of its text for KeyEd25519, a
// cosignature of its text for KeyCosignature. Without a line by k it returns
// ErrNoSignature; when any line by k fails, ErrBadSignature; for a type that
// is not verified here, ErrUnsupported. Of several valid lines the first is
// returned.
func (n Note) Verify(k Vkey) (Signature, error) {
	lines := n.Only(func(s Signature) bool { return s.by(k) }).Signatures
	if len(lines) == 0 {
		return Signature{}, fmt.Errorf("%w: %s, key %08x", ErrNoSignature, k.Name, k.ID)
	}
	for _, s := range lines {
		if err := s.verify(k, n.Text); err != nil {
			return Signature{}, err
		}
	}
	return lines[0], nil
}

// Only returns the note with just the signature lines that keep wants.
func (n Note) Only(keep func(Signature) bool) Note {
	out := Note{Text: n.Text}
	for _, s := range n.Signatures {
		if keep(s) {
			out.Signatures = append(out.Signatures, s)
		}
	}
	return out
}

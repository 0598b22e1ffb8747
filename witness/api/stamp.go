package api

import (
	"fmt"
	"strings"

	"toolguardian/chain/tlog"
)

// MaxCommitments is the most commitments in one stamp note.
const MaxCommitments = 256

// Stamp is the text of a stamp note, the body of a stamp leaf: commitments to
// bytes that existed when the leaf was logged, or the root over a batch.
type Stamp struct {
	Origin      string
	Log         string // name of the log, of the shard
	Commitments []tlog.Hash
	Root        *StampRoot // instead of commitments
}

// StampRoot is the RFC 9162 root over the 32-byte commitments of a batch.
type StampRoot struct {
	Size uint64
	Root tlog.Hash
}

// Text is the note text, to be signed by the head key.
func (s Stamp) Text() []byte {
	b := fmt.Appendf(nil, "tool-guardian/stamp/v1\n%s\nlog %s\n", s.Origin, s.Log)
	if s.Root != nil {
		return fmt.Appendf(b, "root %d %s\n", s.Root.Size, s.Root.Root.Hex())
	}
	for _, c := range s.Commitments {
		b = append(b, c.Hex()+"\n"...)
	}
	return b
}

// Sign is the note with one signature by the head key.
func (s Stamp) Sign(signer *tlog.Signer) ([]byte, error) {
	return signNote(s.Text(), []*tlog.Signer{signer})
}

// ParseStamp reads a stamp note strictly; it verifies no signature.
func ParseStamp(b []byte) (Stamp, tlog.Note, error) {
	note, lines, err := parseNoteOf("stamp", b)
	if err != nil {
		return Stamp{}, note, err
	}
	if len(lines) < 3 {
		return Stamp{}, note, fmt.Errorf("%w: a stamp note of %d lines", ErrMalformed, len(lines))
	}
	f := fields{lines: lines[1:]}
	s := Stamp{Origin: lines[0], Log: f.next("log")}
	if f.err != nil {
		return Stamp{}, note, f.err
	}
	if err := s.parseWhat(f.lines); err != nil {
		return Stamp{}, note, err
	}
	for _, name := range []string{s.Origin, s.Log} {
		if err := CheckName(name); err != nil {
			return Stamp{}, note, err
		}
	}
	return s, note, sameText(s.Text(), note.Text)
}

// parseWhat reads the lines after the log's: one root, or the commitments.
func (s *Stamp) parseWhat(lines []string) error {
	if strings.HasPrefix(lines[0], "root ") {
		return s.parseRoot(lines)
	}
	if len(lines) > MaxCommitments {
		return fmt.Errorf("%w: %d commitments, at most %d; send a root", ErrMalformed, len(lines), MaxCommitments)
	}
	for _, line := range lines {
		c, err := ParseHex(line)
		if err != nil {
			return err
		}
		s.Commitments = append(s.Commitments, c)
	}
	return nil
}

func (s *Stamp) parseRoot(lines []string) error {
	words := strings.Split(lines[0], " ")
	if len(lines) != 1 || len(words) != 3 {
		return fmt.Errorf("%w: want one line `root SIZE HEX`", ErrMalformed)
	}
	size, err := parseUint(words[1])
	if err != nil || size == 0 {
		return fmt.Errorf("%w: a root over %q commitments", ErrMalformed, cut(words[1]))
	}
	root, err := ParseHex(words[2])
	s.Root = &StampRoot{Size: size, Root: root}
	return err
}

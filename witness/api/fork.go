package api

import (
	"bytes"
	"fmt"

	"toolguardian/chain/tlog"
)

// ForkHeader is the first line of a fork file.
const ForkHeader = "tool-guardian/fork/v1"

// MaxEvidenceFile is the longest fork, rollback or witness-fork file that is
// read, in bytes.
const MaxEvidenceFile = 4 << 20

// ForkFile convicts a chain by two heads that contradict each other. In a leaf
// it ends with the path; the file that is served goes on with the key leaves.
type ForkFile struct {
	A, B []byte // notes of size m ≤ n: the text and the one line that convicts
	Path []tlog.Hash
	Keys []KeyProof // every key leaf of the origin, in order
}

// KeyProof is a leaf with its tlog-proof in the log.
type KeyProof struct {
	Bytes []byte
	Proof tlog.Proof
}

// Bytes is the file.
func (f ForkFile) Bytes() []byte {
	s := []tlog.Section{{Name: "a", Data: f.A}, {Name: "b", Data: f.B}}
	if len(f.Path) > 0 {
		s = append(s, tlog.Section{Name: "path", Data: hashLines(f.Path)})
	}
	for i, k := range f.Keys {
		s = append(s, tlog.Section{Name: fmt.Sprintf("key-bytes/%d", i+1), Data: k.Bytes},
			tlog.Section{Name: fmt.Sprintf("key/%d", i+1), Data: k.Proof.Bytes()})
	}
	return tlog.FormatSections(ForkHeader, s)
}

// ParseForkFile accepts exactly what Bytes writes. Whether the heads contradict
// each other is for Heads to say, who signed them for the caller.
func ParseForkFile(b []byte) (ForkFile, error) {
	f := ForkFile{}
	s, err := parseFrames(ForkHeader, b)
	if err != nil {
		return f, err
	}
	f.A, f.B = s.take("a"), s.take("b")
	if len(s.left) > 0 && s.left[0].Name == "path" {
		f.Path, err = parseHashLines(s.take("path"))
		s.fail("path", err)
	}
	for i := 1; s.err == nil && len(s.left) > 0; i++ {
		k := KeyProof{Bytes: s.take(fmt.Sprintf("key-bytes/%d", i))}
		k.Proof = s.proof(fmt.Sprintf("key/%d", i))
		f.Keys = append(f.Keys, k)
	}
	return f, s.end(f.Bytes, b)
}

// Head is a head with the one line that stands under it in evidence.
type Head struct {
	tlog.Checkpoint
	Note tlog.Note
}

// Line is the line that convicts.
func (h Head) Line() tlog.Signature { return h.Note.Signatures[0] }

// Heads reads both heads and says why they do not contradict each other
// (ErrNoContradiction), if so. It verifies no signature.
func (f ForkFile) Heads() (a, b Head, err error) {
	if a, err = parseEvidenceHead("a", f.A); err != nil {
		return a, b, err
	}
	if b, err = parseEvidenceHead("b", f.B); err != nil {
		return a, b, err
	}
	return a, b, Contradict(a.Checkpoint, b.Checkpoint, f.Path)
}

func parseEvidenceHead(name string, b []byte) (h Head, err error) {
	if h.Checkpoint, h.Note, err = tlog.ParseSignedCheckpoint(b); err != nil {
		return h, fmt.Errorf("%w: head %s: %w", ErrMalformed, name, err)
	}
	if n := len(h.Note.Signatures); n != 1 {
		return h, fmt.Errorf("%w: head %s has %d signature lines, want the one that convicts", ErrMalformed, name, n)
	}
	return h, nil
}

// frames takes sections in order; the first fault stays.
type frames struct {
	left []tlog.Section
	err  error
}

func parseFrames(header string, b []byte) (*frames, error) {
	if len(b) > MaxEvidenceFile {
		return nil, fmt.Errorf("%w: a file of %d bytes, at most %d", ErrMalformed, len(b), MaxEvidenceFile)
	}
	s, err := tlog.ParseSections(header, b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return &frames{left: s}, nil
}

func (f *frames) take(name string) []byte {
	if f.err != nil {
		return nil
	}
	if len(f.left) == 0 || f.left[0].Name != name {
		f.err = fmt.Errorf("%w: frame %s is missing or out of order", ErrMalformed, name)
		return nil
	}
	data := f.left[0].Data
	f.left = f.left[1:]
	return data
}

func (f *frames) proof(name string) tlog.Proof {
	b := f.take(name)
	if f.err != nil {
		return tlog.Proof{}
	}
	p, err := tlog.ParseProof(b)
	f.fail(name, err)
	return p
}

func (f *frames) fail(name string, err error) {
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("%w: frame %s: %w", ErrMalformed, name, err)
	}
}

// end refuses frames that are left over, and what would be written differently.
func (f *frames) end(again func() []byte, b []byte) error {
	switch {
	case f.err != nil:
		return f.err
	case len(f.left) > 0:
		return fmt.Errorf("%w: frame %q is unknown, stands twice, or is out of order", ErrMalformed, cut(f.left[0].Name))
	case !bytes.Equal(again(), b):
		return fmt.Errorf("%w: not in canonical form", ErrMalformed)
	}
	return nil
}

func hashLines(hashes []tlog.Hash) (b []byte) {
	for _, h := range hashes {
		b = append(b, h.Base64()+"\n"...)
	}
	return b
}

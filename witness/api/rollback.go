package api

import (
	"fmt"

	"toolguardian/chain/tlog"
)

// RollbackHeader is the first line of a rollback file.
const RollbackHeader = "tool-guardian/rollback/v1"

// RollbackFile convicts a witness: by one key it cosigned A, and later B, a
// smaller head of the same origin.
type RollbackFile struct {
	A, B []byte // notes: the text and the cosigner's line
}

// Bytes is the file.
func (f RollbackFile) Bytes() []byte {
	return tlog.FormatSections(RollbackHeader, []tlog.Section{{Name: "a", Data: f.A}, {Name: "b", Data: f.B}})
}

// ParseRollbackFile accepts exactly what Bytes writes; Heads judges it.
func ParseRollbackFile(b []byte) (RollbackFile, error) {
	f := RollbackFile{}
	s, err := parseFrames(RollbackHeader, b)
	if err != nil {
		return f, err
	}
	f.A, f.B = s.take("a"), s.take("b")
	return f, s.end(f.Bytes, b)
}

// Heads reads both heads and says why they are no rollback
// (ErrNoContradiction), if so. It verifies no signature: both lines name one
// key, and it is that key's holder who is convicted.
func (f RollbackFile) Heads() (a, b Head, err error) {
	if a, err = parseEvidenceHead("a", f.A); err != nil {
		return a, b, err
	}
	if b, err = parseEvidenceHead("b", f.B); err != nil {
		return a, b, err
	}
	before, okA := a.Line().Time()
	after, okB := b.Line().Time()
	switch {
	case !okA || !okB:
		return a, b, fmt.Errorf("%w: a line that is no cosignature", ErrMalformed)
	case a.Line().Name != b.Line().Name || a.Line().ID != b.Line().ID:
		return a, b, fmt.Errorf("%w: two cosigners, %s and %s", ErrNoContradiction, cut(a.Line().Name), cut(b.Line().Name))
	case a.Origin != b.Origin:
		return a, b, fmt.Errorf("%w: heads of %s and of %s", ErrNoContradiction, a.Origin, b.Origin)
	case !after.After(before) || b.Size >= a.Size:
		return a, b, fmt.Errorf("%w: size %d at %d, then size %d at %d", ErrNoContradiction, a.Size, before.Unix(), b.Size, after.Unix())
	}
	return a, b, nil
}

package tlog

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// What Note.Verify reports; errors.Is tells them apart.
var (
	ErrNoSignature  = errors.New("no signature by this key")
	ErrBadSignature = errors.New("signature does not verify")
	ErrUnsupported  = errors.New("signature type cannot be verified here")
)

const (
	sigPrefix  = "— " // em dash, space
	keyIDSize  = 4
	timeSize   = 8
	cosigSize  = timeSize + ed25519.SignatureSize
	cosigStart = "cosignature/v1\ntime " // domain of C2SP tlog-cosignature
)

// Signature is one signature line of a note.
type Signature struct {
	Name  string
	ID    uint32
	Bytes []byte // what follows the key ID; for type 04 BE64 POSIX seconds, then Ed25519
}

// Line returns the signature line with its newline (C2SP signed-note).
func (s Signature) Line() string {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, keyIDSize+len(s.Bytes)), s.ID)
	return sigPrefix + s.Name + " " + base64.StdEncoding.EncodeToString(append(b, s.Bytes...)) + "\n"
}

// Time returns the time that a type 04 signature states, in whole seconds,
// false when s has not that form. It is worth what Verify says of s.
func (s Signature) Time() (time.Time, bool) {
	if len(s.Bytes) != cosigSize {
		return time.Time{}, false
	}
	seconds := binary.BigEndian.Uint64(s.Bytes)
	if seconds > math.MaxInt64 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0).UTC(), true
}

// by reports whether s claims to be by k. Name and ID together tell keys
// apart; either alone does not.
func (s Signature) by(k Vkey) bool { return s.Name == k.Name && s.ID == k.ID }

// verify checks s, which is by k, over text.
func (s Signature) verify(k Vkey, text []byte) error {
	var ok bool
	switch k.Type {
	case KeyEd25519:
		ok = ValidSeal(k.Key, text, s.Bytes)
	case KeyCosignature:
		at, timed := s.Time()
		ok = timed && ValidSeal(k.Key, cosigMessage(text, at.Unix()), s.Bytes[timeSize:])
	default:
		return fmt.Errorf("%w: type %02x of %s", ErrUnsupported, byte(k.Type), k.Name)
	}
	if !ok {
		return fmt.Errorf("%w: %s, key %08x", ErrBadSignature, k.Name, k.ID)
	}
	return nil
}

// cosigMessage is what a type 04 key signs (C2SP tlog-cosignature, "Ed25519
// signed message").
func cosigMessage(text []byte, seconds int64) []byte {
	return append(fmt.Appendf(nil, cosigStart+"%d\n", seconds), text...)
}

// ParseSignatureLines reads one or more signature lines and nothing else, as
// a witness answers to add-checkpoint.
func ParseSignatureLines(b []byte) ([]Signature, error) {
	if len(b) > MaxNote {
		return nil, fmt.Errorf("signature lines: %d bytes, at most %d are read", len(b), MaxNote)
	}
	if err := checkNoteBytes(b); err != nil {
		return nil, err
	}
	var sigs []Signature
	for len(b) > 0 {
		if len(sigs) == maxSignatures {
			return nil, fmt.Errorf("more than %d signature lines", maxSignatures)
		}
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok {
			return nil, errors.New("the last signature line has no newline")
		}
		sig, err := parseSignatureLine(string(line))
		if err != nil {
			return nil, fmt.Errorf("signature line %d: %w", len(sigs)+1, err)
		}
		sigs, b = append(sigs, sig), rest
	}
	if len(sigs) == 0 {
		return nil, errors.New("no signature line")
	}
	return sigs, nil
}

func parseSignatureLine(line string) (Signature, error) {
	rest, ok := strings.CutPrefix(line, sigPrefix)
	if !ok {
		return Signature{}, errors.New("does not begin with an em dash and a space")
	}
	name, sig64, _ := strings.Cut(rest, " ")
	if !ValidName(name) {
		return Signature{}, fmt.Errorf("key name %.100q", name)
	}
	b, err := decodeBase64(sig64)
	if err != nil {
		return Signature{}, err
	}
	if len(b) <= keyIDSize {
		return Signature{}, fmt.Errorf("%d bytes, want a key ID and a signature", len(b))
	}
	return Signature{Name: name, ID: binary.BigEndian.Uint32(b), Bytes: b[keyIDSize:]}, nil
}

package tlog

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Signer signs notes with one key of one type. It is safe for concurrent use.
type Signer struct {
	vkey Vkey
	priv ed25519.PrivateKey
}

// NewSigner returns a signer of type KeyEd25519, which Signs, or
// KeyCosignature, which Cosigns.
func NewSigner(name string, t KeyType, priv ed25519.PrivateKey) (*Signer, error) {
	if !wholeKey(priv) {
		return nil, fmt.Errorf("signer %q: not an Ed25519 private key", name)
	}
	vkey, err := NewVkey(name, t, priv.Public().(ed25519.PublicKey))
	if err != nil {
		return nil, fmt.Errorf("signer: %w", err)
	}
	return &Signer{vkey: vkey, priv: priv}, nil
}

// wholeKey reports whether both halves of priv belong together: signing with
// another's public half gives the private one away.
func wholeKey(priv ed25519.PrivateKey) bool {
	return len(priv) == ed25519.PrivateKeySize && ed25519.NewKeyFromSeed(priv.Seed()).Equal(priv)
}

// Vkey returns the signer's verifier key.
func (s *Signer) Vkey() Vkey { return s.vkey }

// Sign signs the text of a note; the signer must be of type KeyEd25519.
func (s *Signer) Sign(text []byte) (Signature, error) {
	if s.vkey.Type != KeyEd25519 {
		return Signature{}, fmt.Errorf("sign as %s: a key of type %02x cosigns only", s.vkey.Name, byte(s.vkey.Type))
	}
	if err := checkNoteText(text); err != nil {
		return Signature{}, fmt.Errorf("sign as %s: %w", s.vkey.Name, err)
	}
	return s.signature(ed25519.Sign(s.priv, text)), nil
}

// Cosign signs the text of a checkpoint as seen at the given time, cut to
// seconds (C2SP tlog-cosignature); the signer must be of type KeyCosignature.
// Text that is no strict checkpoint is refused.
func (s *Signer) Cosign(text []byte, at time.Time) (Signature, error) {
	if s.vkey.Type != KeyCosignature {
		return Signature{}, fmt.Errorf("cosign as %s: a key of type %02x does not cosign", s.vkey.Name, byte(s.vkey.Type))
	}
	if _, err := ParseCheckpoint(text); err != nil {
		return Signature{}, fmt.Errorf("cosign as %s: %w", s.vkey.Name, err)
	}
	seconds := at.Unix()
	if seconds < 0 {
		return Signature{}, errors.New("cosign: time before 1970; set the clock")
	}
	b := binary.BigEndian.AppendUint64(nil, uint64(seconds))
	return s.signature(append(b, ed25519.Sign(s.priv, cosigMessage(text, seconds))...)), nil
}

func (s *Signer) signature(b []byte) Signature {
	return Signature{Name: s.vkey.Name, ID: s.vkey.ID, Bytes: b}
}

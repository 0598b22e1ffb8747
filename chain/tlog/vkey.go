package tlog

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// KeyType is the signature type byte of C2SP signed-note.
type KeyType byte

// The types in use. KeyMLDSA44 is read and reported, never verified.
const (
	KeyEd25519     KeyType = 0x01
	KeyCosignature KeyType = 0x04
	KeyMLDSA44     KeyType = 0x06
)

// mldsa44KeySize is the length of an ML-DSA-44 public key (FIPS 204).
const mldsa44KeySize = 1312

// Vkey is a verifier key (C2SP signed-note, "Verifier keys"). ParseVkey and
// NewVkey make only valid ones.
type Vkey struct {
	Name string
	ID   uint32
	Type KeyType
	Key  []byte // 32 bytes, or 1312 for KeyMLDSA44
}

// ValidName reports whether name may name a key, and so be an origin: not
// empty, UTF-8, without Unicode spaces, plus signs or control characters.
func ValidName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r == '+' || unicode.IsSpace(r)
	})
}

// NewVkey returns the key's vkey for signatures of type t, which is
// KeyEd25519 or KeyCosignature.
func NewVkey(name string, t KeyType, pub ed25519.PublicKey) (Vkey, error) {
	if t != KeyEd25519 && t != KeyCosignature {
		return Vkey{}, fmt.Errorf("vkey %q: type %02x is not an Ed25519 type", name, byte(t))
	}
	return checkedVkey(Vkey{Name: name, ID: keyID(name, t, pub), Type: t, Key: bytes.Clone(pub)})
}

// ParseVkey reads the one form that String writes: lowercase ID that matches
// the key, canonical base64, and for Ed25519 a canonical point not of small
// order.
func ParseVkey(s string) (Vkey, error) {
	v, err := splitVkey(s)
	if err != nil {
		return Vkey{}, fmt.Errorf("vkey %.100q: %w", s, err)
	}
	if v, err = checkedVkey(v); err != nil {
		return Vkey{}, err
	}
	if v.String() != s {
		return Vkey{}, fmt.Errorf("vkey %.100q: the key ID does not match, want %08x", s, v.ID)
	}
	return v, nil
}

// splitVkey takes the ID from the key, not from s: the caller compares.
func splitVkey(s string) (Vkey, error) {
	name, rest, _ := strings.Cut(s, "+")
	_, key64, ok := strings.Cut(rest, "+")
	if !ok {
		return Vkey{}, errors.New("want NAME+ID+KEY as in c2sp.org/signed-note")
	}
	key, err := decodeBase64(key64)
	if err != nil {
		return Vkey{}, err
	}
	if len(key) == 0 {
		return Vkey{}, errors.New("no key")
	}
	t := KeyType(key[0])
	return Vkey{Name: name, ID: keyID(name, t, key[1:]), Type: t, Key: key[1:]}, nil
}

func checkedVkey(v Vkey) (Vkey, error) {
	if !ValidName(v.Name) {
		return Vkey{}, fmt.Errorf("vkey name %.100q: must not be empty or hold spaces, plus signs or control characters", v.Name)
	}
	switch v.Type {
	case KeyEd25519, KeyCosignature:
		if !strictKey(v.Key) {
			return Vkey{}, fmt.Errorf("vkey of %q: not a canonical Ed25519 key of large order", v.Name)
		}
	case KeyMLDSA44:
		if len(v.Key) != mldsa44KeySize {
			return Vkey{}, fmt.Errorf("vkey of %q: ML-DSA-44 key of %d bytes, want %d", v.Name, len(v.Key), mldsa44KeySize)
		}
	default:
		return Vkey{}, fmt.Errorf("vkey of %q: signature type %02x is not 01, 04 or 06", v.Name, byte(v.Type))
	}
	return v, nil
}

// keyID is the first four bytes of SHA-256(name || 0x0A || type || key).
func keyID(name string, t KeyType, key []byte) uint32 {
	d := sha256.New()
	d.Write([]byte(name))
	d.Write([]byte{'\n', byte(t)})
	d.Write(key)
	return binary.BigEndian.Uint32(d.Sum(nil))
}

// String returns NAME+ID+KEY.
func (v Vkey) String() string {
	typed := append([]byte{byte(v.Type)}, v.Key...)
	return fmt.Sprintf("%s+%08x+%s", v.Name, v.ID, base64.StdEncoding.EncodeToString(typed))
}

// Equal reports whether both are the same key under the same name and type.
func (v Vkey) Equal(w Vkey) bool {
	return v.Name == w.Name && v.ID == w.ID && v.Type == w.Type && bytes.Equal(v.Key, w.Key)
}

// Public returns the Ed25519 key, nil for KeyMLDSA44.
func (v Vkey) Public() ed25519.PublicKey {
	if v.Type == KeyMLDSA44 {
		return nil
	}
	return bytes.Clone(v.Key)
}

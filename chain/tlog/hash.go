package tlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
)

// HashSize is the length of a Hash in bytes.
const HashSize = sha256.Size

// Hash is a SHA-256 Merkle tree hash (RFC 6962 section 2.1).
type Hash [HashSize]byte

// The first byte of everything hashed into the tree keeps leaves and inner
// nodes apart (RFC 6962 section 2.1).
const (
	leafPrefix = 0x00
	nodePrefix = 0x01
)

// LeafHash returns SHA-256(0x00 || leaf).
func LeafHash(leaf []byte) Hash {
	var h Hash
	d := sha256.New()
	d.Write([]byte{leafPrefix})
	d.Write(leaf)
	d.Sum(h[:0])
	return h
}

// NodeHash returns SHA-256(0x01 || l || r).
func NodeHash(l, r Hash) Hash {
	var b [1 + 2*HashSize]byte
	b[0] = nodePrefix
	copy(b[1:], l[:])
	copy(b[1+HashSize:], r[:])
	return sha256.Sum256(b[:])
}

// EmptyRoot returns the root of the tree without leaves, SHA-256 of nothing.
func EmptyRoot() Hash { return sha256.Sum256(nil) }

// Hex returns h as 64 lowercase hex digits.
func (h Hash) Hex() string { return hex.EncodeToString(h[:]) }

// Base64 returns h in standard padded base64, 44 characters.
func (h Hash) Base64() string { return base64.StdEncoding.EncodeToString(h[:]) }

// String returns Hex.
func (h Hash) String() string { return h.Hex() }

// MarshalText returns Hex.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.Hex()), nil }

// UnmarshalText accepts exactly what MarshalText writes.
func (h *Hash) UnmarshalText(text []byte) error {
	var got Hash
	if len(text) != 2*HashSize {
		return fmt.Errorf("hash: %d characters, want %d lowercase hex digits", len(text), 2*HashSize)
	}
	if _, err := hex.Decode(got[:], text); err != nil {
		return fmt.Errorf("hash: %w", err)
	}
	if !bytes.Equal(text, []byte(got.Hex())) {
		return fmt.Errorf("hash: hex digits must be lowercase")
	}
	*h = got
	return nil
}

// ParseHashBase64 accepts exactly what Base64 writes.
func ParseHashBase64(s string) (Hash, error) {
	b, err := decodeBase64(s)
	if err != nil {
		return Hash{}, fmt.Errorf("hash: %w", err)
	}
	if len(b) != HashSize {
		return Hash{}, fmt.Errorf("hash: %d bytes, want %d", len(b), HashSize)
	}
	return Hash(b), nil
}

// decodeBase64 accepts only the one canonical encoding of the bytes it
// returns: encoding/base64 alone skips line breaks and, unless told, loose
// trailing bits.
func decodeBase64(s string) ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("base64: %w", err)
	}
	if base64.StdEncoding.EncodeToString(b) != s {
		return nil, fmt.Errorf("base64: not in canonical form")
	}
	return b, nil
}

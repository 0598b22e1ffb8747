package receipts

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// KeyID names a receipt key: SHA-256 of its 32 raw bytes.
func KeyID(pub ed25519.PublicKey) [32]byte { return sha256.Sum256(pub) }

// VerifyEd25519 checks a signature by RFC 8032 section 5.1.7, cofactorless,
// with a canonical key not of small order and S < L. It never panics.
func VerifyEd25519(pub ed25519.PublicKey, msg, sig []byte) bool {
	// crypto/ed25519 checks S < L and compares R's encoding; it panics on a key
	// of another length and takes keys that validKey refuses.
	return validKey(pub) && len(sig) == ed25519.SignatureSize && ed25519.Verify(pub, msg, sig)
}

// smallOrderY are the y coordinates of the eight points of order 1, 2, 4, 8.
const smallOrderY = "" +
	"0000000000000000000000000000000000000000000000000000000000000000" +
	"0100000000000000000000000000000000000000000000000000000000000000" +
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f" +
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05" +
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"

// validKey reports whether pub is a canonical encoding (RFC 8032 section
// 5.1.3, step 1) of a y that is no small-order point's.
func validKey(pub []byte) bool {
	if len(pub) != ed25519.PublicKeySize {
		return false
	}
	var y [32]byte
	copy(y[:], pub)
	y[31] &= 0x7f
	if !belowPrime(y) {
		return false
	}
	h := hex.EncodeToString(y[:])
	for i := 0; i < len(smallOrderY); i += 64 {
		if smallOrderY[i:i+64] == h {
			return false
		}
	}
	return true
}

// belowPrime compares with 2^255−19: only ed…ff…7f and above reach it.
func belowPrime(y [32]byte) bool {
	if y[31] != 0x7f || y[0] < 0xed {
		return true
	}
	return bytes.Count(y[1:31], []byte{0xff}) < 30
}

// HeadPublicKey returns the Ed25519 key of a head key's vkey line, refusing
// any line that encoding the key again would not write (C2SP signed-note).
func HeadPublicKey(vkey string) (ed25519.PublicKey, error) {
	name, rest, ok1 := strings.Cut(vkey, "+")
	id, key, ok2 := strings.Cut(rest, "+")
	if !ok1 || !ok2 || name == "" {
		return nil, errors.New("is not a vkey line")
	}
	raw, err := decodeBase64(key)
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != 1 {
		return nil, errors.New("is not a vkey of type 01")
	}
	if !validKey(raw[1:]) {
		return nil, errors.New("holds no valid Ed25519 key")
	}
	pub := ed25519.PublicKey(raw[1:])
	if id != keyHash(name, raw) {
		return nil, errors.New("has a key id that is not its key's")
	}
	return pub, nil
}

// HeadVkey writes the vkey line of a head key.
func HeadVkey(name string, pub ed25519.PublicKey) string {
	typed := append([]byte{1}, pub...)
	return name + "+" + keyHash(name, typed) + "+" + base64.StdEncoding.EncodeToString(typed)
}

func keyHash(name string, typed []byte) string {
	id := sha256.Sum256(append([]byte(name+"\n"), typed...))
	return hex.EncodeToString(id[:4])
}

// Origin is the chain's name: label and the first half of SHA-256 of its first
// head key.
func Origin(label string, head ed25519.PublicKey) string {
	id := sha256.Sum256(head)
	return label + "/c/" + hex.EncodeToString(id[:16])
}

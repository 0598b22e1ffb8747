package tlog

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"slices"
)

// ValidSeal reports whether sig is pub's Ed25519 signature of msg, by RFC 8032
// section 5.1.7 without the cofactor: S < L, and the point R re-encoded equals
// the bytes in sig. Beyond the RFC's letter, pub must be canonically encoded
// and not of small order, for which one signature can fit many messages.
// Bytes of any length give false, never a panic.
func ValidSeal(pub ed25519.PublicKey, msg, sig []byte) bool {
	return strictKey(pub) && len(sig) == ed25519.SignatureSize && ed25519.Verify(pub, msg, sig)
}

// strictKey reports whether pub is a key we use: 32 bytes, canonical, not of
// small order. A string off the curve passes; nothing verifies under it.
func strictKey(pub []byte) bool {
	if len(pub) != ed25519.PublicKeySize {
		return false
	}
	y := withoutSign(pub)
	return bytes.Compare(bigEndian(y), fieldPrime()) < 0 && !smallOrder(y)
}

// withoutSign returns the y coordinate, little-endian: the top bit of the
// encoding is the sign of x (RFC 8032 section 5.1.2).
func withoutSign(pub []byte) []byte {
	y := bytes.Clone(pub)
	y[len(y)-1] &= 0x7f
	return y
}

func bigEndian(little []byte) []byte {
	b := bytes.Clone(little)
	slices.Reverse(b)
	return b
}

// fieldPrime returns 2^255 - 19, big-endian.
func fieldPrime() []byte {
	p := bytes.Repeat([]byte{0xff}, ed25519.PublicKeySize)
	p[0], p[len(p)-1] = 0x7f, 0xed
	return p
}

// smallOrder reports whether y belongs to one of the eight points whose order
// divides the cofactor. Between them they have five y coordinates, and every
// point with such a y is one of the eight.
func smallOrder(y []byte) bool {
	switch hex.EncodeToString(y) {
	case "0100000000000000000000000000000000000000000000000000000000000000", // order 1
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // order 2
		"0000000000000000000000000000000000000000000000000000000000000000", // order 4
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a": // order 8
		return true
	}
	return false
}

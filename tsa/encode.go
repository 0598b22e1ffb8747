package tsa

import (
	"bytes"
	"crypto/x509"
	"math/big"
	"slices"
)

// tlv encodes one DER element from already encoded parts.
func tlv(tag byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	out := append(make([]byte, 0, n+5), tag)
	switch {
	case n < 0x80:
		out = append(out, byte(n))
	case n <= 0xff:
		out = append(out, 0x81, byte(n))
	case n <= 0xffff:
		out = append(out, 0x82, byte(n>>8), byte(n))
	default:
		out = append(out, 0x83, byte(n>>16), byte(n>>8), byte(n))
	}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func sequence(parts ...[]byte) []byte { return tlv(tagSequence, parts...) }

// setOf encodes a SET OF in DER order (X.690 section 11.6).
func setOf(parts ...[]byte) []byte {
	sorted := slices.Clone(parts)
	slices.SortFunc(sorted, bytes.Compare)
	return tlv(tagSet, sorted...)
}

// encodeInteger encodes a non-negative INTEGER.
func encodeInteger(n *big.Int) []byte {
	b := n.Bytes()
	if len(b) == 0 || b[0] >= 0x80 {
		b = append([]byte{0}, b...)
	}
	return tlv(tagInteger, b)
}

func encodeSmall(n int64) []byte { return encodeInteger(big.NewInt(n)) }

// encodeOID encodes a dotted OBJECT IDENTIFIER.
func encodeOID(text string) ([]byte, error) {
	oid, err := x509.ParseOID(text)
	if err != nil {
		return nil, err
	}
	body, err := oid.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return tlv(tagOID, body), nil
}

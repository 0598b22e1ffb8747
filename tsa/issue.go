package tsa

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"math/big"
	"time"
)

// issuedAccuracy is what our tokens state: genTime is cut to the second below.
const issuedAccuracy = time.Second

// statement is what one token of ours says.
type statement struct {
	policy  string
	imprint Imprint
	serial  *big.Int
	at      time.Time // whole seconds
	nonce   *big.Int
}

// der encodes TSTInfo (RFC 3161 section 2.4.2).
func (s statement) der() ([]byte, error) {
	policy, err := encodeOID(s.policy)
	if err != nil {
		return nil, fmt.Errorf("encode timestamp policy %q: %w", s.policy, err)
	}
	imprint, err := encodeImprint(s.imprint)
	if err != nil {
		return nil, err
	}
	parts := [][]byte{
		encodeSmall(1), policy, imprint, encodeInteger(s.serial),
		tlv(tagGeneralizedTime, []byte(s.at.UTC().Format("20060102150405Z"))),
		sequence(encodeSmall(int64(issuedAccuracy / time.Second))),
	}
	if s.nonce != nil {
		parts = append(parts, encodeInteger(s.nonce))
	}
	return sequence(parts...), nil
}

// newSerial draws 127 bits: unique without a counter that could be lost.
func newSerial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b) // never fails: crypto/rand aborts the process instead
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

// encodeToken signs TSTInfo as a CMS SignedData (RFC 5652 section 5.1, RFC 3161
// section 2.4.2, RFC 5816) by ECDSA with SHA-256.
func encodeToken(content []byte, cert *x509.Certificate, key *ecdsa.PrivateKey, embed bool) ([]byte, error) {
	attrs := signedSet(content, cert)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest(crypto.SHA256, attrs))
	if err != nil {
		return nil, fmt.Errorf("sign timestamp: %w", err)
	}
	sha256 := sequence(tlv(tagOID, []byte(oidSHA256)))
	parts := [][]byte{
		encodeSmall(3),
		setOf(sha256),
		sequence(tlv(tagOID, []byte(oidTSTInfo)), tlv(tagContext0, tlv(tagOctetString, content))),
	}
	if embed {
		parts = append(parts, tlv(tagContext0, cert.Raw))
	}
	parts = append(parts, setOf(sequence(
		encodeSmall(1),
		sequence(cert.RawIssuer, tlv(tagInteger, serialBody(cert))),
		sha256,
		append([]byte{tagContext0}, attrs[1:]...), // the signed SET OF, tagged [0]
		sequence(tlv(tagOID, []byte(oidECWithSHA256))),
		tlv(tagOctetString, signature),
	)))
	return sequence(tlv(tagOID, []byte(oidSignedData)), tlv(tagContext0, sequence(parts...))), nil
}

// signedSet encodes the signed attributes as the SET OF that is signed. The
// ESSCertIDv2 leaves out its algorithm, which is SHA-256 by default.
func signedSet(content []byte, cert *x509.Certificate) []byte {
	ess := sequence(sequence(sequence(tlv(tagOctetString, digest(crypto.SHA256, cert.Raw)))))
	return setOf(
		encodeAttribute(oidContentType, tlv(tagOID, []byte(oidTSTInfo))),
		encodeAttribute(oidMessageDigest, tlv(tagOctetString, digest(crypto.SHA256, content))),
		encodeAttribute(oidESSCertIDv2, ess),
	)
}

func encodeAttribute(oid string, value []byte) []byte {
	return sequence(tlv(tagOID, []byte(oid)), setOf(value))
}

// encodeGranted wraps a token in a TimeStampResp.
func encodeGranted(token []byte) []byte {
	return sequence(sequence(encodeSmall(0)), token)
}

// encodeRejection is a TimeStampResp without a token.
func encodeRejection(f Failure, text string) []byte {
	return sequence(sequence(
		encodeSmall(2),
		sequence(tlv(tagUTF8, []byte(text))),
		tlv(tagBitString, failureBits(f)),
	))
}

// failureBits is the body of a named BIT STRING with one bit set: no trailing
// zero bits (X.690 section 11.2.2).
func failureBits(f Failure) []byte {
	b := make([]byte, int(f)/8+2)
	b[0] = byte(7 - int(f)%8)
	b[len(b)-1] = 0x80 >> (int(f) % 8)
	return b
}

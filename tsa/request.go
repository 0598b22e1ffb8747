package tsa

import (
	"crypto/rand"
	"fmt"
	"math/big"
)

// Request is a TimeStampReq (RFC 3161 section 2.4.1).
type Request struct {
	Imprint Imprint
	Policy  string   // dotted OID; empty: none asked for
	Nonce   *big.Int // nil: none; never negative
	CertReq bool     // ask for the signer's certificate in the token
}

// RequestRefusal is why a request is not answered with a token.
type RequestRefusal struct {
	Failure Failure
	Detail  string // one line, safe to send
}

// Error names the failure and the detail.
func (r *RequestRefusal) Error() string {
	return fmt.Sprintf("timestamp request refused (%s): %s", r.Failure, r.Detail)
}

// nonceBytes of fresh chance go into a request, less the sign bit.
const nonceBytes = 8

// NewRequest asks for a stamp over a SHA-256 digest, with a fresh positive
// nonce and with the signer's certificate.
func NewRequest(digest [32]byte) Request {
	b := make([]byte, nonceBytes)
	rand.Read(b) // never fails: crypto/rand aborts the process instead
	b[0] &= 0x7f
	b[nonceBytes-1] |= 1 // never 0, which some authorities drop
	return Request{Imprint: SHA256Imprint(digest), Nonce: new(big.Int).SetBytes(b), CertReq: true}
}

// DER encodes the request. It fails for an imprint that is not a whole SHA-2
// digest, a policy that is not a dotted OID, and a negative nonce.
func (r Request) DER() ([]byte, error) {
	imprint, err := encodeImprint(r.Imprint)
	if err != nil {
		return nil, err
	}
	parts := [][]byte{encodeSmall(1), imprint}
	if r.Policy != "" {
		policy, err := encodeOID(r.Policy)
		if err != nil {
			return nil, fmt.Errorf("encode timestamp request: policy %q: %w", r.Policy, err)
		}
		parts = append(parts, policy)
	}
	if r.Nonce != nil {
		if r.Nonce.Sign() < 0 {
			return nil, fmt.Errorf("encode timestamp request: negative nonce")
		}
		parts = append(parts, encodeInteger(r.Nonce))
	}
	if r.CertReq {
		parts = append(parts, tlv(tagBoolean, []byte{0xff}))
	}
	return sequence(parts...), nil
}

func encodeImprint(i Imprint) ([]byte, error) {
	oid, ok := hashOID(i.Hash)
	if !ok || len(i.Sum) != i.Hash.Size() {
		return nil, fmt.Errorf("encode timestamp imprint: not a SHA-256, SHA-384 or SHA-512 digest")
	}
	algorithm := sequence(tlv(tagOID, []byte(oid)), tlv(tagNull))
	return sequence(algorithm, tlv(tagOctetString, i.Sum)), nil
}

// maxRequest is the largest request that is read, in bytes.
const maxRequest = 8 << 10

// ParseRequest reads a request strictly: DER to the end, version 1, a whole
// SHA-2 digest, a nonce that is not negative, no extensions. The error is a
// [*RequestRefusal].
func ParseRequest(b []byte) (Request, error) {
	if len(b) > maxRequest {
		return Request{}, deny(BadRequest, "more than %d bytes", maxRequest)
	}
	if checkDER(b) != nil {
		return Request{}, deny(BadDataFormat, "not DER")
	}
	outer := cursor{rest: b}
	e, ok := outer.take(tagSequence)
	if !ok {
		return Request{}, deny(BadDataFormat, "not a TimeStampReq")
	}
	c := e.inside()
	version, ok := c.take(tagInteger)
	if n, small := small(version.body); !ok || !small || n != 1 {
		return Request{}, deny(BadRequest, "version is not 1")
	}
	var r Request
	if err := r.readImprint(c); err != nil {
		return Request{}, err
	}
	if err := r.readOptions(c); err != nil {
		return Request{}, err
	}
	return r, nil
}

func (r *Request) readImprint(c *cursor) error {
	a, sum, ok := readImprint(c)
	if !ok {
		return deny(BadDataFormat, "unreadable imprint")
	}
	h, ok := sha2(a)
	if !ok {
		return deny(BadAlg, "imprint algorithm %s, accepted are SHA-256, SHA-384 and SHA-512", a.name())
	}
	if len(sum) != h.Size() {
		return deny(BadDataFormat, "imprint of %d bytes, %v has %d", len(sum), h, h.Size())
	}
	r.Imprint = Imprint{Hash: h, Sum: sum}
	return nil
}

func (r *Request) readOptions(c *cursor) error {
	if e, ok := c.option(tagOID); ok {
		if r.Policy, ok = dotted(e.body); !ok {
			return deny(BadDataFormat, "unreadable policy")
		}
	}
	if e, ok := c.option(tagInteger); ok {
		if r.Nonce, ok = integer(e.body); !ok || r.Nonce.Sign() < 0 {
			return deny(BadRequest, "nonce negative, or not a DER INTEGER")
		}
	}
	if e, ok := c.option(tagBoolean); ok {
		if !validBool(e) {
			return deny(BadDataFormat, "certReq is not a DER BOOLEAN")
		}
		r.CertReq = e.body[0] != 0
	}
	if c.peek(tagContext0) {
		return deny(UnacceptedExtension, "no request extension is known")
	}
	if !c.done() {
		return deny(BadDataFormat, "a field that RFC 3161 does not have, or out of order")
	}
	return nil
}

func deny(f Failure, format string, args ...any) *RequestRefusal {
	return &RequestRefusal{Failure: f, Detail: fmt.Sprintf(format, args...)}
}

package tsa

import "math/big"

// Request is a TimeStampReq (RFC 3161 section 2.4.1).
type Request struct {
	Imprint Imprint
	Policy  string // dotted; empty: none asked for
	Nonce   *big.Int
	CertReq bool
}

// NewRequest asks for a stamp over a SHA-256 digest with a fresh nonce and the
// signer's certificate.
func NewRequest(digest [32]byte) Request { return Request{} }

// DER encodes the request.
func (r Request) DER() ([]byte, error) { return nil, nil }

// ParseRequest reads a request strictly.
func ParseRequest(b []byte) (Request, error) { return Request{}, nil }

package tsa

import (
	"crypto"
	"crypto/x509"
	"math/big"
	"time"
)

// MaxToken is the largest response or token that is looked at, in bytes.
const MaxToken = 64 << 10

// Imprint is a hash of the stamped data: Sum has Hash.Size() bytes.
type Imprint struct {
	Hash crypto.Hash // SHA256, SHA384 or SHA512
	Sum  []byte
}

// SHA256Imprint wraps a SHA-256 digest.
func SHA256Imprint(digest [32]byte) Imprint {
	return Imprint{Hash: crypto.SHA256, Sum: digest[:]}
}

// Token is a verified TimeStampToken (RFC 3161 section 2.4.2). The fields are
// what its signer states; a Token that came with an error states nothing.
type Token struct {
	DER  []byte    // the TimeStampToken, a ContentInfo
	Time time.Time // genTime, UTC

	// Accuracy bounds the error of Time. An absent accuracy is "not stated":
	// AccuracyStated is false and Accuracy must not be read as 0.
	Accuracy       time.Duration
	AccuracyStated bool

	Serial  *big.Int
	Policy  string // dotted OID
	Imprint Imprint
	Nonce   *big.Int // nil when absent

	Signer *x509.Certificate
	Chain  []*x509.Certificate // Signer first, pinned root last; nil when unanchored

	// Authority is a label: the name the client's configuration gave, else the
	// signer's common name. The authority is the certificate, not its name.
	Authority string
	// SelfIssued: the root calls itself the built-in authority's, so there is
	// no independent evidence of time.
	SelfIssued bool
	// SignerExpired: a certificate of the chain has expired since genTime. The
	// token was judged at genTime and holds.
	SignerExpired bool
	// RevocationAsOf is the thisUpdate of the newest revocation list judged for
	// the signer; zero when none was at hand.
	RevocationAsOf time.Time
}

// UpperBound returns the moment before which the data existed, genTime plus
// accuracy, and whether the authority stated an accuracy.
func (t Token) UpperBound() (at time.Time, stated bool) {
	return t.Time.Add(t.Accuracy), t.AccuracyStated
}

// DefaultMaxSkew is how far genTime may lie in the future by our clock.
const DefaultMaxSkew = 5 * time.Minute

// VerifyOptions is what a token is judged by. The zero value refuses every
// token, since it pins no root.
type VerifyOptions struct {
	// Exactly one imprint is judged: of Data when it is not nil (hashed with the
	// token's own algorithm), else Imprint when its Sum is not nil, else Digest,
	// a SHA-256.
	Digest  [32]byte
	Imprint Imprint
	Data    []byte

	Roots      *x509.CertPool // the only trusted roots; the system's are never used
	ExtraCerts [][]byte       // DER certificates that may be missing in the token; never trusted
	CRLs       [][]byte       // DER revocation lists kept beside the token

	Nonce      *big.Int // of the kept request; nil: not judged
	Policies   []string // allowed policies, dotted; empty: any
	AllowESSv1 bool     // accept the SHA-1 certificate hash of ESSCertID v1

	At      time.Time     // when the chain is judged; zero: genTime
	Now     time.Time     // our clock; zero: time.Now()
	MaxSkew time.Duration // zero: DefaultMaxSkew
}

package receipts

import "crypto/ed25519"

// Subject is one named digest of a statement.
type Subject struct {
	Name   string
	Digest [32]byte
}

// Statement is a parsed payload: the members a verifier checks.
type Statement struct {
	Kind       Kind
	Origin     string
	Seq        uint64
	Prev       [32]byte
	KeySeq     uint64
	HeadKey    string            // vkey line, of kinds that bring keys
	ReceiptKey ed25519.PublicKey // of kinds that bring keys
	Erased     []Erased
	NotBefore  *NotBefore
	Subjects   []Subject
	Raw        []byte // the payload
}

// ParseStatement parses a payload.
func ParseStatement(payload []byte) (*Statement, error) { return nil, ErrMalformed }

// Text returns the string at a path inside the predicate.
func (s *Statement) Text(path ...string) string { return "" }

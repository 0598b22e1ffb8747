package tsa

import (
	"crypto/x509"
	"math/big"
)

// maxDepth bounds the nesting of DER. Real tokens need about 16 levels.
const maxDepth = 32

// Identifier octets of the types that occur in tokens.
const (
	tagBoolean         = 0x01
	tagInteger         = 0x02
	tagBitString       = 0x03
	tagOctetString     = 0x04
	tagNull            = 0x05
	tagOID             = 0x06
	tagUTF8            = 0x0c
	tagGeneralizedTime = 0x18
	tagSequence        = 0x30
	tagSet             = 0x31
	tagContext0        = 0xa0 // [0] constructed
	tagContext1        = 0xa1 // [1] constructed
	tagContext4        = 0xa4 // [4] constructed
	tagPrimitive0      = 0x80 // [0] primitive
	tagPrimitive1      = 0x81 // [1] primitive
)

// element is one TLV: sub-slices of the input, never copies.
type element struct {
	tag  byte
	full []byte // identifier, length and contents
	body []byte // contents
}

// inside returns a cursor over the contents.
func (e element) inside() *cursor { return &cursor{rest: e.body} }

// cursor reads elements one after another. Its methods report false when the
// bytes are not what was asked for; the caller turns that into a refusal.
type cursor struct{ rest []byte }

func (c *cursor) done() bool { return len(c.rest) == 0 }

// peek reports whether the next element has the given identifier octet.
func (c *cursor) peek(tag byte) bool { return len(c.rest) > 0 && c.rest[0] == tag }

// next reads one element: single-octet identifiers and definite, minimal
// lengths below 64 KiB only (X.690 sections 8.1.2 and 10.1).
func (c *cursor) next() (element, bool) {
	if len(c.rest) < 2 || c.rest[0]&0x1f == 0x1f {
		return element{}, false
	}
	header, length := 2, int(c.rest[1])
	switch {
	case length < 0x80:
	case length == 0x81 && len(c.rest) >= 3 && c.rest[2] >= 0x80:
		header, length = 3, int(c.rest[2])
	case length == 0x82 && len(c.rest) >= 4 && c.rest[2] != 0:
		header, length = 4, int(c.rest[2])<<8|int(c.rest[3])
	default:
		return element{}, false
	}
	if length > len(c.rest)-header {
		return element{}, false
	}
	e := element{tag: c.rest[0], full: c.rest[:header+length], body: c.rest[header : header+length]}
	c.rest = c.rest[header+length:]
	return e, true
}

// take reads one element that must have the given identifier octet.
func (c *cursor) take(tag byte) (element, bool) {
	if !c.peek(tag) {
		return element{}, false
	}
	return c.next()
}

// option reads one element if the next has the given identifier octet. An
// element that is announced but broken leaves the cursor where it is, and the
// reads after it fail.
func (c *cursor) option(tag byte) (element, bool) { return c.take(tag) }

// only reads one element of the given tag that must be the last.
func (c *cursor) only(tag byte) (element, bool) {
	e, ok := c.take(tag)
	return e, ok && c.done()
}

// checkDER walks all of b before anything interprets it: one element, nothing
// behind it, bounded depth, no indefinite lengths and no constructed strings.
func checkDER(b []byte) *Refusal {
	switch {
	case len(b) == 0:
		return refuse(RuleSize, "empty")
	case len(b) > MaxToken:
		return refuse(RuleSize, "%d bytes, more than %d", len(b), MaxToken)
	}
	c := cursor{rest: b}
	e, ok := c.next()
	if !ok || !walk(e, maxDepth) {
		return refuse(RuleDER, "not DER, or nested deeper than %d", maxDepth)
	}
	if !c.done() {
		return refuse(RuleDER, "%d bytes after the end", len(c.rest))
	}
	return nil
}

// walk visits every constructed element below e. It allocates nothing.
func walk(e element, depth int) bool {
	if !plausible(e.tag) {
		return false
	}
	if e.tag&0x20 == 0 {
		return true
	}
	if depth == 0 {
		return false
	}
	c := cursor{rest: e.body}
	for !c.done() {
		inner, ok := c.next()
		if !ok || !walk(inner, depth-1) {
			return false
		}
	}
	return true
}

// plausible refuses end-of-contents octets, primitive sequences and the
// constructed strings that DER forbids (X.690 section 10.2).
func plausible(tag byte) bool {
	if tag&0xc0 != 0 {
		return true
	}
	switch tag {
	case tagSequence, tagSet, 0x28, 0x2b: // SEQUENCE, SET, EXTERNAL, EMBEDDED PDV
		return true
	case 0x00, tagSequence &^ 0x20, tagSet &^ 0x20:
		return false
	}
	return tag&0x20 == 0
}

// integer decodes a minimally encoded INTEGER body.
func integer(body []byte) (*big.Int, bool) {
	if len(body) == 0 {
		return nil, false
	}
	if len(body) > 1 && (body[0] == 0 && body[1] < 0x80 || body[0] == 0xff && body[1] >= 0x80) {
		return nil, false
	}
	n := new(big.Int).SetBytes(body)
	if body[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(body))*8))
	}
	return n, true
}

// small decodes an INTEGER body of at most 32 bits.
func small(body []byte) (int64, bool) {
	if len(body) > 4 {
		return 0, false
	}
	n, ok := integer(body)
	if !ok {
		return 0, false
	}
	return n.Int64(), true
}

// dotted writes an OBJECT IDENTIFIER body with arcs of any size.
func dotted(body []byte) (string, bool) {
	var oid x509.OID
	if len(body) > 64 || oid.UnmarshalBinary(body) != nil {
		return "", false
	}
	return oid.String(), true
}

// parameters of an AlgorithmIdentifier.
type algorithm struct {
	oid    string // encoded OBJECT IDENTIFIER body
	params element
	absent bool // no parameters at all
}

// readAlgorithm reads the body of an AlgorithmIdentifier.
func readAlgorithm(c *cursor) (algorithm, bool) {
	oid, ok := c.take(tagOID)
	if !ok {
		return algorithm{}, false
	}
	a := algorithm{oid: string(oid.body), absent: c.done()}
	if !a.absent {
		a.params, ok = c.next()
	}
	return a, ok && c.done()
}

// plain reports that the parameters are absent or NULL.
func (a algorithm) plain() bool {
	return a.absent || a.params.tag == tagNull && len(a.params.body) == 0
}

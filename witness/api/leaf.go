package api

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"toolguardian/chain/tlog"
)

// LeafType names what a leaf of the witness log says.
type LeafType string

// The leaf types. One of another name is hashed, linked and shown.
const (
	LeafHead     LeafType = "head"
	LeafKey      LeafType = "key"
	LeafEvent    LeafType = "event"
	LeafTime     LeafType = "time"
	LeafStamp    LeafType = "stamp"
	LeafFork     LeafType = "fork"
	LeafRollback LeafType = "rollback"
	LeafShard    LeafType = "shard"
)

// MaxLeaf is the most bytes a leaf may have, the limit of an entry bundle
// (C2SP tlog-tiles).
const MaxLeaf = 65535

// MaxProofLines is the most hashes a consistency proof may have (C2SP
// tlog-witness).
const MaxProofLines = 63

var (
	// ErrMalformed: bytes that are not of the format they claim.
	ErrMalformed = errors.New("malformed")
	// ErrUnknownVersion: a leaf or note of a newer format. It is hashed,
	// counted and shown, never a failure.
	ErrUnknownVersion = errors.New("unknown version")
)

// Ref is the index of another leaf of the same log, or none. The zero value is
// none.
type Ref struct {
	Index   uint64
	Present bool
}

// At is the reference to the leaf at index.
func At(index uint64) Ref { return Ref{Index: index, Present: true} }

func (r Ref) String() string {
	if !r.Present {
		return "none"
	}
	return fmt.Sprint(r.Index)
}

func parseRef(s string) (Ref, error) {
	if s == "none" {
		return Ref{}, nil
	}
	n, err := parseUint(s)
	if err != nil {
		return Ref{}, err
	}
	return At(n), nil
}

// Leaf is one entry of the witness log.
type Leaf struct {
	Type   LeafType
	Origin string      // of the chain concerned; of the log in a time leaf
	Prev   Ref         // this origin's previous leaf of any type
	Keys   Ref         // the key leaf in force before this one
	Proof  []tlog.Hash // head leaves only: RFC 9162 path from the previous head leaf
	Body   []byte
}

// Bytes is the leaf as it is hashed and stored. It fails on a leaf that
// ParseLeaf would refuse.
func (l Leaf) Bytes() ([]byte, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tool-guardian/%s/v1\norigin %s\nprev %s\nkeys %s\n", l.Type, l.Origin, l.Prev, l.Keys)
	for _, h := range l.Proof {
		fmt.Fprintf(&b, "proof %s\n", h.Base64())
	}
	b.WriteByte('\n')
	b.Write(l.Body)
	if b.Len() > MaxLeaf {
		return nil, fmt.Errorf("%w: a leaf of %d bytes, at most %d", ErrMalformed, b.Len(), MaxLeaf)
	}
	return b.Bytes(), nil
}

// Hash is the leaf hash of Bytes (RFC 6962, 2.1).
func (l Leaf) Hash() (tlog.Hash, error) {
	b, err := l.Bytes()
	if err != nil {
		return tlog.Hash{}, err
	}
	return tlog.LeafHash(b), nil
}

func (l Leaf) check() error {
	if !isWord(string(l.Type)) {
		return fmt.Errorf("%w: leaf type %q", ErrMalformed, l.Type)
	}
	if err := CheckName(l.Origin); err != nil {
		return err
	}
	if len(l.Proof) > MaxProofLines {
		return fmt.Errorf("%w: %d proof lines, at most %d", ErrMalformed, len(l.Proof), MaxProofLines)
	}
	if len(l.Proof) > 0 && l.Type != LeafHead {
		return fmt.Errorf("%w: proof lines in a %s leaf", ErrMalformed, l.Type)
	}
	return nil
}

// ParseLeaf reads an entry strictly: what it returns encodes to the same
// bytes. The body is not judged. An unknown type is returned as it is; a
// version other than v1 is ErrUnknownVersion, anything else ErrMalformed.
func ParseLeaf(b []byte) (Leaf, error) {
	if len(b) > MaxLeaf {
		return Leaf{}, fmt.Errorf("%w: a leaf of %d bytes, at most %d", ErrMalformed, len(b), MaxLeaf)
	}
	head, body, ok := bytes.Cut(b, []byte("\n\n"))
	if !ok {
		return Leaf{}, fmt.Errorf("%w: a leaf without an empty line", ErrMalformed)
	}
	lines := strings.Split(string(head), "\n")
	typ, err := parseDomain(lines[0])
	if err != nil {
		return Leaf{}, err
	}
	l := Leaf{Type: LeafType(typ), Body: body}
	if err := l.parseHeader(lines[1:]); err != nil {
		return Leaf{}, err
	}
	if again, err := l.Bytes(); err != nil {
		return Leaf{}, err
	} else if !bytes.Equal(again, b) {
		return Leaf{}, fmt.Errorf("%w: a leaf that is not in canonical form", ErrMalformed)
	}
	return l, nil
}

func (l *Leaf) parseHeader(lines []string) (err error) {
	f := fields{lines: lines}
	l.Origin = f.next("origin")
	prev, keys := f.next("prev"), f.next("keys")
	if f.err != nil {
		return f.err
	}
	if l.Prev, err = parseRef(prev); err != nil {
		return err
	}
	if l.Keys, err = parseRef(keys); err != nil {
		return err
	}
	for len(f.lines) > 0 {
		h, err := tlog.ParseHashBase64(f.next("proof"))
		if err := errors.Join(f.err, err); err != nil {
			return fmt.Errorf("%w: proof line: %w", ErrMalformed, err)
		}
		l.Proof = append(l.Proof, h)
	}
	return nil
}

// parseDomain reads `tool-guardian/<type>/v1`.
func parseDomain(line string) (string, error) {
	rest, ok := strings.CutPrefix(line, "tool-guardian/")
	typ, version, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 || !isWord(typ) {
		return "", fmt.Errorf("%w: first line %q", ErrMalformed, cut(line))
	}
	if version != "v1" {
		return "", fmt.Errorf("%w: first line %q, this release reads v1", ErrUnknownVersion, cut(line))
	}
	return typ, nil
}

// CheckName refuses what cannot be the name of a key (C2SP signed-note): an
// empty name, white space, a plus, control characters.
func CheckName(name string) error {
	const most = 255
	bad := func(r rune) bool { return r <= ' ' || r == '+' || r == 0x7f || r == utf8.RuneError || isSpace(r) }
	if name == "" || len(name) > most || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%w: the name %q: want 1 to %d bytes without white space or a plus", ErrMalformed, cut(name), most)
	}
	return nil
}

package anchor

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/witness/api"
)

// containerHeader is the first line of a proof container.
const containerHeader = "tool-guardian/proof/v1"

// MaxContainer is the longest container that is read, in bytes.
const MaxContainer = 64 << 20

// ErrContainer: bytes that are no proof container of this format.
var ErrContainer = errors.New("malformed proof container")

// Container proves one receipt without its neighbours.
type Container struct {
	Receipt  []byte     // line without "\n"
	Head     tlog.Proof // of the receipt in the chain, at a witnessed head
	KeyLines []KeyLine  // every genesis and rotation line up to the key in force
	Evidence Evidence   // of that head in the witness log
	Renewals []Renewal
	// BeforeNote and BeforeToken are what the receipt's notBefore names.
	BeforeNote, BeforeToken []byte
	Openings                []NamedOpening
}

// KeyLine is a line that brings keys, with its proof at the same head.
type KeyLine struct {
	Line  []byte
	Proof tlog.Proof
}

// Renewal is the time leaf of a token, covered by a later token.
type Renewal struct {
	Bytes []byte
	Proof tlog.Proof
	Time  TimeEvidence
}

// NamedOpening discloses one field.
type NamedOpening struct {
	Field string
	Bytes []byte
}

// Bytes writes the container; what is not there has no section.
func (c Container) Bytes() []byte {
	var s []tlog.Section
	add := func(name string, data []byte) { s = append(s, tlog.Section{Name: name, Data: data}) }
	if c.Receipt != nil {
		add("receipt", c.Receipt)
	}
	if c.Head.Checkpoint != nil {
		add("head", c.Head.Bytes())
	}
	for i, k := range c.KeyLines {
		add(numbered("key-line", i), k.Line)
		add(numbered("key-line-proof", i), k.Proof.Bytes())
	}
	c.Evidence.sections(add)
	for i, r := range c.Renewals {
		add(numbered("renew-bytes", i), r.Bytes)
		add(numbered("renew", i), r.Proof.Bytes())
		add(numbered("renew-time", i), r.Time.text())
	}
	if c.BeforeNote != nil {
		add("before-note", c.BeforeNote)
	}
	if c.BeforeToken != nil {
		add("before-token", []byte(base64.StdEncoding.EncodeToString(c.BeforeToken)))
	}
	for _, o := range c.Openings {
		add("opening/"+o.Field, o.Bytes)
	}
	return tlog.FormatSections(containerHeader, s)
}

func numbered(name string, i int) string { return fmt.Sprintf("%s/%d", name, i+1) }

func (ev Evidence) sections(add func(string, []byte)) {
	if ev.LeafBytes != nil {
		add("leaf-bytes", ev.LeafBytes)
	}
	if ev.Leaf.Checkpoint != nil {
		add("leaf", ev.Leaf.Bytes())
	}
	for i, k := range ev.Keys {
		add(numbered("key-bytes", i), k.Bytes)
		add(numbered("key", i), k.Proof.Bytes())
	}
	for i, t := range ev.Times {
		add(numbered("time", i), t.text())
	}
	for i, b := range ev.Blobs {
		add(numbered("blob", i), b)
	}
}

// text is authority, blob lines, an empty line, the token in base64.
func (t TimeEvidence) text() []byte {
	b := []byte(t.Authority + "\n")
	for _, ref := range t.Blobs {
		b = fmt.Appendf(b, "blob %s %s\n", ref.Hash.Hex(), ref.Kind)
	}
	return append(append(b, '\n'), base64.StdEncoding.EncodeToString(t.Token)...)
}

func parseTime(b []byte) (TimeEvidence, error) {
	head, token, ok := bytes.Cut(b, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	t := TimeEvidence{Authority: lines[0]}
	if !ok {
		return t, errors.New("no empty line before the token")
	}
	if err := api.CheckAuthority(t.Authority); err != nil {
		return t, err
	}
	for _, line := range lines[1:] {
		w := strings.Split(line, " ")
		if len(w) != 3 || w[0] != "blob" {
			return t, fmt.Errorf("%.80q is no blob line", line)
		}
		h, err := api.ParseHex(w[1])
		if err != nil {
			return t, err
		}
		if kind := api.BlobKind(w[2]); kind != api.BlobCRL && kind != api.BlobOCSP && kind != api.BlobCert {
			return t, fmt.Errorf("a blob of kind %.20q", w[2])
		}
		t.Blobs = append(t.Blobs, api.BlobRef{Hash: h, Kind: api.BlobKind(w[2])})
	}
	var err error
	t.Token, err = decodeBase64(token)
	return t, err
}

// sections takes sections in order; the first fault stays.
type sections struct {
	left []tlog.Section
	err  error
}

// take returns the next section's data if it has that name.
func (s *sections) take(name string) ([]byte, bool) {
	if s.err != nil || len(s.left) == 0 || s.left[0].Name != name {
		return nil, false
	}
	data := s.left[0].Data
	s.left = s.left[1:]
	return data, true
}

func (s *sections) fail(name string, err error) {
	if s.err == nil && err != nil {
		s.err = fmt.Errorf("%w: section %s: %w", ErrContainer, name, err)
	}
}

func (s *sections) proof(name string) tlog.Proof {
	b, ok := s.take(name)
	if !ok {
		return tlog.Proof{}
	}
	p, err := tlog.ParseProof(b)
	s.fail(name, err)
	return p
}

// pairs takes name/n and its proof until there is none.
func (s *sections) pairs(name, proof string, keep func([]byte, tlog.Proof)) {
	for i := 0; ; i++ {
		b, ok := s.take(numbered(name, i))
		if !ok {
			return
		}
		p := s.proof(numbered(proof, i))
		if p.Checkpoint == nil {
			s.fail(numbered(proof, i), errors.New("missing after "+numbered(name, i)))
		}
		keep(b, p)
	}
}

func (s *sections) time(name string) (TimeEvidence, bool) {
	b, ok := s.take(name)
	if !ok {
		return TimeEvidence{}, false
	}
	t, err := parseTime(b)
	s.fail(name, err)
	return t, true
}

// ParseContainer accepts exactly what Bytes writes: known sections in order.
// Whether a proof needs a section that is not there is for Verify to say.
func ParseContainer(b []byte) (Container, error) {
	var c Container
	if len(b) > MaxContainer {
		return c, fmt.Errorf("%w: %d bytes, at most %d", ErrContainer, len(b), MaxContainer)
	}
	all, err := tlog.ParseSections(containerHeader, b)
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrContainer, err)
	}
	s := &sections{left: all}
	c.Receipt, _ = s.take("receipt")
	c.Head = s.proof("head")
	s.pairs("key-line", "key-line-proof", func(line []byte, p tlog.Proof) {
		c.KeyLines = append(c.KeyLines, KeyLine{Line: line, Proof: p})
	})
	c.Evidence.parse(s)
	c.parseRenewals(s)
	c.BeforeNote, _ = s.take("before-note")
	if token, ok := s.take("before-token"); ok {
		c.BeforeToken, err = decodeBase64(token)
		s.fail("before-token", err)
	}
	for _, f := range receipts.Fields() {
		if o, ok := s.take("opening/" + f.String()); ok {
			c.Openings = append(c.Openings, NamedOpening{Field: f.String(), Bytes: o})
		}
	}
	return c, s.end(c, b)
}

// end refuses sections that are left over, and anything that would be written
// differently.
func (s *sections) end(c Container, b []byte) error {
	switch {
	case s.err != nil:
		return s.err
	case len(s.left) > 0:
		return fmt.Errorf("%w: section %.60q is unknown, stands twice, or is out of order", ErrContainer, s.left[0].Name)
	case !bytes.Equal(c.Bytes(), b):
		return fmt.Errorf("%w: not in canonical form", ErrContainer)
	}
	return nil
}

func (ev *Evidence) parse(s *sections) {
	ev.LeafBytes, _ = s.take("leaf-bytes")
	ev.Leaf = s.proof("leaf")
	s.pairs("key-bytes", "key", func(b []byte, p tlog.Proof) {
		ev.Keys = append(ev.Keys, KeyEvidence{Bytes: b, Proof: p})
	})
	for i := 0; ; i++ {
		t, ok := s.time(numbered("time", i))
		if !ok {
			break
		}
		ev.Times = append(ev.Times, t)
	}
	for i := 0; ; i++ {
		b, ok := s.take(numbered("blob", i))
		if !ok {
			return
		}
		ev.Blobs = append(ev.Blobs, b)
	}
}

func (c *Container) parseRenewals(s *sections) {
	s.pairs("renew-bytes", "renew", func(b []byte, p tlog.Proof) {
		name := numbered("renew-time", len(c.Renewals))
		t, ok := s.time(name)
		if !ok {
			s.fail(name, errors.New("missing"))
		}
		c.Renewals = append(c.Renewals, Renewal{Bytes: b, Proof: p, Time: t})
	})
}

package receipts

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// MaxLine is the longest line, without its "\n".
const MaxLine = 16 << 10

// Position is where a receipt stands, returned only once it is durable.
type Position struct {
	Origin   string
	Seq      uint64
	LeafHash [32]byte
}

// Link is the place a receipt is sealed into.
type Link struct {
	Origin string
	Seq    uint64
	Prev   [32]byte // SHA-256 of the previous line, of a genesis: of its headKey
	KeySeq uint64   // seq of the genesis or rotation that put the key in force
}

// Seal writes the receipt at its place, signs it and returns its line without
// "\n". It signs nothing that ParseStatement refuses, and returns ErrTooLong
// for a line beyond MaxLine.
func Seal(r Receipt, l Link, priv ed25519.PrivateKey) ([]byte, error) {
	payload, err := r.payload(l)
	if err != nil {
		return nil, fmt.Errorf("receipt %s not sealed: %w", r.Kind, err)
	}
	if _, err := ParseStatement(payload); err != nil {
		return nil, fmt.Errorf("receipt %s not sealed: %w", r.Kind, err)
	}
	pub, ok := priv.Public().(ed25519.PublicKey)
	if !ok || !validKey(pub) {
		return nil, fmt.Errorf("receipt %s not sealed: the receipt key is no Ed25519 key", r.Kind)
	}
	e := Envelope{Payload: payload, KeyID: KeyID(pub), Sig: ed25519.Sign(priv, pae(payload))}
	line := e.Bytes()
	if len(line) > MaxLine {
		return nil, fmt.Errorf("receipt %s not sealed: %w: %d bytes", r.Kind, ErrTooLong, len(line))
	}
	return line, nil
}

func (r Receipt) payload(l Link) ([]byte, error) {
	fields, err := r.sortedFields()
	if err != nil {
		return nil, err
	}
	o := &object{b: make([]byte, 1, 2048), err: r.err}
	o.b[0] = '{'
	o.str("_type", statementType)
	o.subjects(fields, l.Prev)
	o.str("predicateType", predicateType)
	o.open("predicate")
	r.common(o, l)
	o.fields(fields)
	o.cuts(r.Cut)
	o.b = append(o.b, r.own...)
	o.close()
	return closed(o.b, '}'), o.err
}

func (r Receipt) common(o *object, l Link) {
	o.str("format", format)
	o.str("kind", string(r.Kind))
	o.str("id", r.ID)
	o.str("origin", l.Origin)
	o.uint("seq", l.Seq)
	o.hex("prev", l.Prev)
	o.uint("keySeq", l.KeySeq)
	o.time(r.Time)
	o.str("session", r.Session)
	o.oneOf("capture", r.Capture, CaptureProxy, CaptureHook, CaptureCLI)
	o.str("version", r.Version)
	if nb := r.NotBefore; nb != nil {
		o.open("notBefore")
		o.hex("token", nb.Token)
		o.hex("checkpoint", nb.Checkpoint)
		o.close()
	}
	if c := r.Client; c != nil {
		o.open("client")
		o.str("name", c.Name)
		o.str("version", c.Version)
		o.close()
	}
	if r.Traceparent != "" {
		o.str("traceparent", r.Traceparent)
	}
}

func (o *object) time(t Time) {
	o.open("time")
	o.str("wall", wall(t.Wall))
	o.str("mono", strconv.FormatInt(int64(t.Mono), 10))
	if t.Back {
		o.key("back")
		o.b = append(o.b, "true,"...)
	}
	o.close()
}

// subjects writes one subject per field, or the link alone.
func (o *object) subjects(fields []Committed, prev [32]byte) {
	o.list("subject")
	for _, f := range fields {
		o.subject(f.Field.String(), f.Commitment)
	}
	if len(fields) == 0 {
		o.subject("prev", prev)
	}
	o.endList()
}

func (o *object) subject(name string, digest [32]byte) {
	o.b = append(o.b, '{')
	o.str("name", name)
	o.open("digest")
	o.hex("sha256", digest)
	o.close()
	o.close()
}

func (o *object) fields(fields []Committed) {
	if len(fields) == 0 {
		return
	}
	o.open("fields")
	for _, f := range fields {
		o.open(f.Field.String())
		o.int("size", f.Size)
		o.list("flags")
		for _, flag := range f.Flags {
			o.b = append(appendString(o.b, flag), ',')
		}
		o.endList()
		o.close()
	}
	o.close()
}

func (o *object) cuts(cut map[string]int) {
	if len(cut) == 0 {
		return
	}
	o.open("cut")
	for _, path := range slices.Sorted(maps.Keys(cut)) {
		o.int(path, int64(cut[path]))
	}
	o.close()
}

func (r Receipt) sortedFields() ([]Committed, error) {
	fields := slices.Clone(r.Fields)
	slices.SortFunc(fields, func(a, b Committed) int { return cmp.Compare(a.Field, b.Field) })
	for i, f := range fields {
		switch {
		case f.Field.String() == "":
			return nil, fmt.Errorf("field %d is not of format 1", f.Field)
		case i > 0 && fields[i-1].Field == f.Field:
			return nil, fmt.Errorf("field %s is committed twice", f.Field)
		case f.Commitment == [32]byte{}:
			return nil, fmt.Errorf("field %s holds no commitment", f.Field)
		}
	}
	return fields, nil
}

package chain

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// place is where the next line goes: what it must say of its origin, seq,
// link and key, and whose signature it must bear.
type place struct {
	origin string
	seq    uint64
	prev   [32]byte
	keySeq uint64
	pub    ed25519.PublicKey // receipt key in force
	head   tlog.Vkey         // head key in force
}

// entry is a line that continues a chain; its signature is not judged yet.
type entry struct {
	envelope  receipts.Envelope
	pub       ed25519.PublicKey
	leaf      tlog.Hash
	kind      receipts.Kind
	erased    []receipts.Erased
	committed []saltKey
	after     place
	end       int64 // offset behind the line and its "\n"
}

// next judges a line by everything but its signature.
func (p place) next(line []byte) (entry, error) {
	env, err := receipts.ParseLine(line)
	if err != nil {
		return entry{}, err
	}
	s, err := receipts.ParseStatement(env.Payload)
	if err != nil {
		return entry{}, err
	}
	if p.seq == 0 {
		if p, err = first(s); err != nil {
			return entry{}, err
		}
	}
	if s.Origin != p.origin || s.Seq != p.seq || s.Prev != p.prev || s.KeySeq != p.keySeq {
		return entry{}, fmt.Errorf("line says seq %d of %s, its place is seq %d of %s, or its links differ", s.Seq, s.Origin, p.seq, p.origin)
	}
	if s.Kind.OpensChain() != (p.seq == 0) {
		return entry{}, fmt.Errorf("line %d is a %s", p.seq, s.Kind)
	}
	e := entry{envelope: env, pub: p.pub, leaf: tlog.LeafHash(line), kind: s.Kind, erased: s.Erased}
	e.committed = committed(s)
	e.after, err = p.behind(line, s)
	return e, err
}

// first is the place a chain's first line makes for itself.
func first(s *receipts.Statement) (place, error) {
	v, err := tlog.ParseVkey(s.HeadKey)
	if err != nil {
		return place{}, fmt.Errorf("first line: head key: %w", err)
	}
	if originHex(v.Name) == "" || v.Type != tlog.KeyEd25519 {
		return place{}, fmt.Errorf("first line: head key %s is not a chain's", v.Name)
	}
	p := place{origin: v.Name, prev: sha256.Sum256([]byte(s.HeadKey)), pub: s.ReceiptKey, head: v}
	if originHex(v.Name) != originHex(originOf("", v.Public())) {
		return place{}, fmt.Errorf("first line: origin %s does not hold its head key's hash", v.Name)
	}
	return p, nil
}

// behind is the place after a line.
func (p place) behind(line []byte, s *receipts.Statement) (place, error) {
	after := p
	after.seq++
	after.prev = sha256.Sum256(line)
	if !s.Kind.BringsKeys() {
		return after, nil
	}
	return after.withKeys(s)
}

// withKeys puts the keys of a genesis or rotation line in force.
func (p place) withKeys(s *receipts.Statement) (place, error) {
	v, err := tlog.ParseVkey(s.HeadKey)
	if err != nil {
		return p, fmt.Errorf("head key of line %d: %w", s.Seq, err)
	}
	p.keySeq, p.pub, p.head = s.Seq, s.ReceiptKey, v
	return p, nil
}

func committed(s *receipts.Statement) []saltKey {
	var keys []saltKey
	for _, sub := range s.Subjects {
		if f := receipts.FieldNamed(sub.Name); f != 0 && !perPerson(f) {
			keys = append(keys, saltKey{s.Seq, f})
		}
	}
	return keys
}

// attested returns how many of the entries are the key holder's work. A line
// holds the hash of the one before, so the last good signature vouches for
// every line in front of it: usually one check is enough.
func attested(batch []entry) int {
	for n := len(batch); n > 0; n-- {
		if e := batch[n-1]; e.envelope.Verify(e.pub) == nil {
			return n
		}
	}
	return 0
}

// batchSize bounds what is held before a signature is asked for.
const batchSize = tlog.TileWidth

// walk reads the lines of r from off to end that continue at p, and gives
// them to take in order, each covered by a signature. It stops at the first
// line that does not continue the chain, and returns the place and offset
// behind the last good one. A last line without "\n" is good if it is whole:
// then off is one more than end.
func walk(r io.ReaderAt, off, end int64, p place, take func(entry)) (place, int64, error) {
	batch := make([]entry, 0, batchSize)
	good, goodOff, stopped := p, off, false
	settle := func() {
		n := attested(batch)
		for _, e := range batch[:n] {
			take(e)
			good, goodOff = e.after, e.end
		}
		stopped = stopped || n < len(batch)
		batch = batch[:0]
	}
	err := eachLine(r, off, end, func(line []byte, at int64) bool {
		e, err := p.next(line)
		if err != nil {
			return false
		}
		e.end = at + int64(len(line)) + 1
		p, batch = e.after, append(batch, e)
		if len(batch) == batchSize {
			settle()
		}
		return !stopped
	})
	settle()
	return good, goodOff, err
}

// eachLine calls f with every line between off and end until f says false.
// A line beyond receipts.MaxLine comes once, cut to one byte more than that.
// The bytes are good until f returns.
func eachLine(r io.ReaderAt, off, end int64, f func(line []byte, at int64) bool) error {
	b := lineBuffer{r: r, off: off, end: end, buf: make([]byte, readSize)}
	for {
		line, at, err := b.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !f(line, at) {
			return nil
		}
	}
}

// readSize is how much is read at once; it holds several lines.
const readSize = 4 * receipts.MaxLine

// lineBuffer holds the bytes of r from off on in buf[lo:hi].
type lineBuffer struct {
	r        io.ReaderAt
	off, end int64
	buf      []byte
	lo, hi   int
	skipping bool // inside a line that was too long
}

func (b *lineBuffer) next() (line []byte, at int64, err error) {
	for {
		held := b.buf[b.lo:b.hi]
		i := bytes.IndexByte(held, '\n')
		whole := i >= 0
		switch {
		case whole:
		case b.off+int64(len(held)) < b.end && len(held) <= receipts.MaxLine:
			if err := b.fill(); err != nil {
				return nil, 0, err
			}
			continue
		case len(held) == 0:
			return nil, 0, io.EOF
		default:
			i = len(held)
		}
		line, at = held[:min(i, receipts.MaxLine+1)], b.off
		b.drop(min(i+1, len(held)))
		wasSkipping := b.skipping
		b.skipping = !whole && b.off < b.end
		if !wasSkipping {
			return line, at, nil
		}
	}
}

func (b *lineBuffer) drop(n int) {
	b.lo += n
	b.off += int64(n)
}

func (b *lineBuffer) fill() error {
	b.hi = copy(b.buf, b.buf[b.lo:b.hi])
	b.lo = 0
	want := int(min(int64(len(b.buf)-b.hi), b.end-b.off-int64(b.hi)))
	n, err := b.r.ReadAt(b.buf[b.hi:b.hi+want], b.off+int64(b.hi))
	if n < want {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	b.hi += n
	return nil
}

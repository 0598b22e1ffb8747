package receipts

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Depth bounds: a statement is shallow by format; committed bytes are only
// looked at, and deeper ones carry no flags.
const (
	maxStatementDepth = 64
	maxCommittedDepth = 10000
)

var errJSON = errors.New("not JSON")

// scanner walks JSON text (RFC 8259) once, in place, and notes what two
// readers could understand differently. It never allocates per value.
type scanner struct {
	b        []byte
	i        int
	depth    int
	maxDepth int
	watch    bool // for names given twice
	seed     maphash.Seed
	names    []uint64 // hashes of the member names of the open objects

	dup        bool // an object names a member twice
	bigInt     bool // an integer beyond ±(2^53−1)
	notInteger bool // a number with a fraction or an exponent
	loneHalf   bool // an escaped surrogate without its other half
}

// document scans exactly one value with white space around it.
func (s *scanner) document() error {
	s.watch, s.seed = true, maphash.MakeSeed()
	s.space()
	if err := s.value(); err != nil {
		return err
	}
	s.space()
	if s.i != len(s.b) {
		return s.bad("bytes after the value")
	}
	return nil
}

func (s *scanner) bad(what string) error {
	return fmt.Errorf("%w: %s at byte %d", errJSON, what, s.i)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) value() error {
	switch c := s.peek(); {
	case c == '{':
		return s.nested(s.object)
	case c == '[':
		return s.nested(s.array)
	case c == '"':
		_, _, err := s.str()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.bad("no value")
}

func (s *scanner) nested(scan func() error) error {
	if s.depth == s.maxDepth {
		return s.bad("nested too deep")
	}
	s.depth++
	s.i++
	err := scan()
	s.depth--
	return err
}

func (s *scanner) word(w string) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return s.bad("no value")
	}
	s.i += len(w)
	return nil
}

func (s *scanner) array() error {
	s.space()
	if s.peek() == ']' {
		s.i++
		return nil
	}
	for {
		s.space()
		if err := s.value(); err != nil {
			return err
		}
		if done, err := s.next(']'); done || err != nil {
			return err
		}
	}
}

// next steps over a comma, or over end and reports done.
func (s *scanner) next(end byte) (done bool, err error) {
	s.space()
	switch s.peek() {
	case ',':
		s.i++
		return false, nil
	case end:
		s.i++
		return true, nil
	}
	return false, s.bad("no comma or end")
}

func (s *scanner) object() error {
	base := len(s.names)
	s.space()
	if s.peek() == '}' {
		s.i++
		return nil
	}
	for {
		name, err := s.name()
		if err != nil {
			return err
		}
		if s.watch {
			s.names = append(s.names, maphash.Bytes(s.seed, name))
		}
		if err := s.value(); err != nil {
			return err
		}
		if done, err := s.next('}'); err != nil {
			return err
		} else if done {
			s.closeObject(base)
			return nil
		}
	}
}

// closeObject looks for equal names: sorted hashes put them side by side.
func (s *scanner) closeObject(base int) {
	own := s.names[base:]
	slices.Sort(own)
	for i := 1; i < len(own); i++ {
		s.dup = s.dup || own[i] == own[i-1]
	}
	s.names = s.names[:base]
}

// name scans a member's name, unescaped, and its colon.
func (s *scanner) name() ([]byte, error) {
	s.space()
	if s.peek() != '"' {
		return nil, s.bad("no member name")
	}
	raw, escaped, err := s.str()
	if err != nil {
		return nil, err
	}
	s.space()
	if s.peek() != ':' {
		return nil, s.bad("no colon")
	}
	s.i++
	s.space()
	if escaped {
		raw = unescape(raw)
	}
	return raw, nil
}

// plain are the bytes that stand for themselves inside a string.
var plain = func() (p [256]bool) {
	for c := 0x20; c < len(p); c++ {
		p[c] = c != '"' && c != '\\'
	}
	return p
}()

// str scans a string and returns what stands between its quotes.
func (s *scanner) str() (raw []byte, escaped bool, err error) {
	s.i++
	start := s.i
	for {
		b, i := s.b, s.i
		for i < len(b) && plain[b[i]] {
			i++
		}
		s.i = i
		switch {
		case i == len(b):
			return nil, false, s.bad("unfinished string")
		case b[i] == '"':
			s.i++
			return b[start:i], escaped, nil
		case b[i] != '\\':
			return nil, false, s.bad("control character in a string")
		}
		escaped = true
		if err := s.escape(); err != nil {
			return nil, false, err
		}
	}
}

func (s *scanner) escape() error {
	if s.i+1 >= len(s.b) {
		return s.bad("unfinished escape")
	}
	switch s.b[s.i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return nil
	case 'u':
		return s.unicodeEscape()
	}
	return s.bad("unknown escape")
}

func (s *scanner) unicodeEscape() error {
	r, ok := hex4(s.b[s.i:])
	if !ok {
		return s.bad("bad \\u escape")
	}
	s.i += 6
	if !utf16.IsSurrogate(r) {
		return nil
	}
	low, ok := hex4(s.b[s.i:])
	if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		s.loneHalf = true
		return nil
	}
	s.i += 6
	return nil
}

// hex4 reads \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	digits := s.i
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return s.bad("no digit")
	}
	whole := s.b[digits:s.i]
	if s.peek() == '.' {
		s.i++
		s.notInteger = true
		if !s.digits() {
			return s.bad("no digit after the point")
		}
	}
	if s.peek()|0x20 == 'e' {
		s.i++
		s.notInteger = true
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return s.bad("no digit in the exponent")
		}
	}
	if s.i-digits == len(whole) && beyond(whole) {
		s.bigInt = true
	}
	return nil
}

func (s *scanner) digits() bool {
	start := s.i
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.i++
	}
	return s.i > start
}

// beyond compares digits without a leading zero with 2^53−1.
func beyond(digits []byte) bool {
	const limit = "9007199254740991"
	return len(digits) > len(limit) || len(digits) == len(limit) && string(digits) > limit
}

// unescape decodes a scanned string with escapes. A lone surrogate becomes its
// three WTF-8 bytes, so that two different ones stay different.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			var n int
			out, n = appendEscaped(out, raw[i-1:])
			i += n - 2
		default:
			out = append(out, c)
		}
	}
	return out
}

// appendEscaped decodes the \uXXXX (or pair) at the start of b and says how
// many bytes it took.
func appendEscaped(out, b []byte) ([]byte, int) {
	r, _ := hex4(b)
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(out, r), 6
	}
	if low, ok := hex4(b[6:]); ok {
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return utf8.AppendRune(out, full), 12
		}
	}
	return append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f), 6
}

// members calls each with name and raw value of each member of a JSON object
// that has been scanned before; of anything else with none.
func members(obj []byte, each func(name, raw []byte)) {
	s := scanner{b: obj, maxDepth: maxCommittedDepth}
	s.space()
	if s.peek() != '{' {
		return
	}
	s.i++
	for {
		name, err := s.name()
		start := s.i
		if err != nil || s.value() != nil {
			return
		}
		each(name, obj[start:s.i])
		if done, err := s.next('}'); done || err != nil {
			return
		}
	}
}

// elements yields the raw values of a JSON array that has been scanned before.
func elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := scanner{b: arr, maxDepth: maxCommittedDepth}
		s.i++
		for s.space(); s.peek() != ']'; s.space() {
			start := s.i
			if s.value() != nil || !yield(arr[start:s.i]) {
				return
			}
			if done, err := s.next(']'); done || err != nil {
				return
			}
		}
	}
}

// text decodes a scanned JSON string; false for any other value.
func text(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	if slices.Contains(raw, '\\') {
		raw = unescape(raw)
	}
	return string(raw), true
}

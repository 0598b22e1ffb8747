package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// MaxDepth is how deep a message may nest.
const MaxDepth = 1000

// scanner walks JSON text (RFC 8259) without building anything. After the
// first error every step is a no-op, so callers check err once.
type scanner struct {
	b      []byte
	pos    int
	unique bool // refuse a member name twice in one object
	watch  bool // only note it, in twice
	twice  bool
	err    error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format+" at byte %d", append(args, s.pos)...)
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.b) {
		switch c := s.b[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// value skips one value at the given depth of nesting.
func (s *scanner) value(depth int) Span {
	c := s.peek()
	start := s.pos
	switch {
	case s.err != nil:
	case c == '{':
		s.object(depth+1, nil)
	case c == '[':
		s.array(depth+1, nil)
	case c == '"':
		s.str()
	case c == '-' || '0' <= c && c <= '9':
		s.number()
	default:
		s.literal()
	}
	return Span{start, s.pos}
}

// enter steps over an opening bracket and says whether the container is empty.
func (s *scanner) enter(depth int, closing byte) (empty bool) {
	if depth > MaxDepth {
		s.fail("%w (more than %d levels)", errDeep, MaxDepth)
		return true
	}
	s.pos++
	if s.peek() == closing {
		s.pos++
		return true
	}
	return false
}

// next steps over a comma (true) or the closing bracket (false).
func (s *scanner) next(closing byte) bool {
	c := s.peek()
	if s.err != nil {
		return false
	}
	if c != ',' && c != closing {
		s.fail("expected , or %c", closing)
		return false
	}
	s.pos++
	return c == ','
}

// object skips an object; each, when given, sees every member and may stop
// the walk by returning false.
func (s *scanner) object(depth int, each func(key, value Span) bool) {
	if s.enter(depth, '}') {
		return
	}
	var seen keySet
	for more := true; more; more = s.next('}') {
		key := s.name(&seen)
		value := s.value(depth)
		if s.err == nil && each != nil && !each(key, value) {
			return
		}
	}
}

// members steps over an object; value, told each name, steps over what it
// names.
func (s *scanner) members(depth int, value func(name []byte)) {
	if s.enter(depth, '}') {
		return
	}
	var seen keySet
	for more := true; more; more = s.next('}') {
		key := s.name(&seen)
		if s.err != nil {
			return
		}
		value(nameOf(s.b[key.Start:key.End]))
	}
}

// name steps over a member's name and the colon behind it.
func (s *scanner) name(seen *keySet) Span {
	if s.peek() != '"' {
		s.fail("expected a member name")
		return Span{}
	}
	key := Span{Start: s.pos}
	s.str()
	key.End = s.pos
	if (s.unique || s.watch) && s.err == nil && !seen.add(s.b[key.Start:key.End]) {
		s.twice = true
		if s.unique {
			s.fail("member %s twice", clip(s.b[key.Start:key.End]))
		}
	}
	if s.peek() != ':' {
		s.fail("expected :")
		return key
	}
	s.pos++
	return key
}

// array skips an array; each, when given, sees every element.
func (s *scanner) array(depth int, each func(Span)) {
	if s.enter(depth, ']') {
		return
	}
	for more := true; more; more = s.next(']') {
		value := s.value(depth)
		if s.err == nil && each != nil {
			each(value)
		}
	}
}

func (s *scanner) str() {
	for i := plain(s.b, s.pos+1); i < len(s.b); i = plain(s.b, i+1) {
		c := s.b[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		if c == '"' {
			s.pos = i + 1
			return
		}
		n := 0
		if c == '\\' {
			n = escapeLen(s.b[i:])
		}
		if n == 0 {
			s.pos = i
			s.fail("bad escape or bare control character in a string")
			return
		}
		i += n - 1
	}
	s.pos = len(s.b)
	s.fail("unfinished string")
}

// plain skips the bytes of a string that need no look, eight at a time. It
// stops at a quote, a backslash or a control character, or up to seven bytes
// before one.
func plain(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// A byte below n has its top bit set in (w - n in each byte) &^ w;
		// a borrow can only add false alarms above a true one.
		if ((w-ones*0x20)&^w|(quote-ones)&^quote|(slash-ones)&^slash)&tops != 0 {
			break
		}
	}
	return i
}

// escapeLen is the length of the escape that b begins with, 0 if it is none.
// A lone surrogate is a valid escape by the grammar and passes.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) >= 6 && isHex(b[2]) && isHex(b[3]) && isHex(b[4]) && isHex(b[5]) {
			return 6
		}
	}
	return 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (s *scanner) number() {
	if s.b[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.b) && s.b[s.pos] == '0' {
		s.pos++
	} else {
		s.digits()
	}
	if s.pos < len(s.b) && s.b[s.pos] == '.' {
		s.pos++
		s.digits()
	}
	if s.pos < len(s.b) && (s.b[s.pos] == 'e' || s.b[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.b) && (s.b[s.pos] == '+' || s.b[s.pos] == '-') {
			s.pos++
		}
		s.digits()
	}
}

func (s *scanner) digits() {
	start := s.pos
	for s.pos < len(s.b) && '0' <= s.b[s.pos] && s.b[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		s.fail("expected a digit")
	}
}

func (s *scanner) literal() {
	for _, word := range [...]string{"true", "false", "null"} {
		if end := s.pos + len(word); end <= len(s.b) && string(s.b[s.pos:end]) == word {
			s.pos = end
			return
		}
	}
	s.fail("expected a value")
}

// end fails unless only white space is left.
func (s *scanner) end() {
	if s.peek(); s.pos < len(s.b) {
		s.fail("something follows the value")
	}
}

// keySet holds the names seen in one object: few are compared, many hashed.
type keySet struct {
	few  [8][]byte
	n    int
	many map[string]struct{}
}

// add reports whether the quoted name is new.
func (k *keySet) add(quoted []byte) bool {
	name := nameOf(quoted)
	for _, have := range k.few[:min(k.n, len(k.few))] {
		if bytes.Equal(have, name) {
			return false
		}
	}
	if k.n < len(k.few) {
		k.few[k.n] = name
		k.n++
		return true
	}
	if k.many == nil {
		k.many = make(map[string]struct{})
	}
	_, twice := k.many[string(name)]
	k.many[string(name)] = struct{}{}
	return !twice
}

// nameOf decodes a scanned member name. One without an escape is its own bytes
// and costs nothing.
func nameOf(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	return []byte(decodeString(quoted))
}

// decodeString decodes a scanned string. Only one with an escape needs more
// than its bytes; invalid UTF-8 without one stays as it is.
func decodeString(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) == nil {
			return s
		}
	}
	return string(inner)
}

// clip shortens bytes of another's choosing for an error text.
func clip(b []byte) []byte {
	return b[:min(len(b), 64)]
}

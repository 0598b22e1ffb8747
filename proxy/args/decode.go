package args

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// decode reads JSON with its numbers as text, and refuses numbers whose value
// would be costly to form.
func decode(raw json.RawMessage) (any, error) {
	r := reader{b: raw}
	v := r.value()
	if r.space(); r.bad || r.i != len(r.b) {
		return nil, fmt.Errorf("%w: it cannot be read", errUnchecked)
	}
	if r.costly {
		return nil, fmt.Errorf("%w: a number is too long", errUnchecked)
	}
	return v, nil
}

// reader decodes what a message held, so its grammar was checked before. It is
// here because encoding/json looks at every byte of a long text three times.
type reader struct {
	b      []byte
	i      int
	depth  int
	bad    bool // it is no JSON after all
	costly bool // a number is too long
}

const maxDepth = 1000

func (r *reader) space() {
	for r.i < len(r.b) && (r.b[r.i] == ' ' || r.b[r.i] == '\n' || r.b[r.i] == '\t' || r.b[r.i] == '\r') {
		r.i++
	}
}

// next takes c if it comes next.
func (r *reader) next(c byte) bool {
	if r.space(); r.i < len(r.b) && r.b[r.i] == c {
		r.i++
		return true
	}
	return false
}

func (r *reader) fail() any {
	r.bad, r.i = true, len(r.b)
	return nil
}

func (r *reader) value() any {
	if r.space(); r.i == len(r.b) || r.depth == maxDepth {
		return r.fail()
	}
	r.depth++
	defer func() { r.depth-- }()
	switch r.b[r.i] {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.text()
	}
	return r.word()
}

func (r *reader) object() any {
	r.i++
	out := map[string]any{}
	if r.next('}') {
		return out
	}
	for {
		if r.space(); r.i == len(r.b) || r.b[r.i] != '"' {
			return r.fail()
		}
		name := r.text()
		if !r.next(':') {
			return r.fail()
		}
		out[name] = r.value()
		switch {
		case r.next(','):
		case r.next('}'):
			return out
		default:
			return r.fail()
		}
	}
}

func (r *reader) array() any {
	r.i++
	out := []any{}
	if r.next(']') {
		return out
	}
	for {
		out = append(out, r.value())
		switch {
		case r.next(','):
		case r.next(']'):
			return out
		default:
			return r.fail()
		}
	}
}

// text reads a string. One without escapes is copied as it stands.
func (r *reader) text() (s string) {
	start := r.i
	plain := true
	for r.i++; r.i < len(r.b); {
		n := bytes.IndexByte(r.b[r.i:], '"')
		if n < 0 {
			break
		}
		if slash := bytes.IndexByte(r.b[r.i:r.i+n], '\\'); slash >= 0 {
			plain = false
			r.i += slash + 2
			continue
		}
		r.i += n + 1
		if plain {
			return string(r.b[start+1 : r.i-1])
		}
		if json.Unmarshal(r.b[start:r.i], &s) != nil {
			r.fail()
		}
		return s
	}
	r.fail()
	return ""
}

// word reads a literal or a number.
func (r *reader) word() any {
	start := r.i
	for r.i < len(r.b) && !bytes.ContainsRune([]byte(" \t\r\n,]}"), rune(r.b[r.i])) {
		r.i++
	}
	switch w := string(r.b[start:r.i]); {
	case w == "true":
		return true
	case w == "false":
		return false
	case w == "null":
		return nil
	case !json.Valid(r.b[start:r.i]):
		return r.fail()
	case !modestNumber(w):
		r.costly = true
		return nil
	default:
		return json.Number(w)
	}
}

// modestNumber says whether a number is short, its exponent included.
func modestNumber(s string) bool {
	mantissa, exponent := s, ""
	if i := bytes.IndexAny([]byte(s), "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	return len(mantissa) <= maxDigits && len(exponent) <= len("+400")
}

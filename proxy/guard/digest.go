package guard

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"strconv"
	"unicode/utf8"

	"toolguardian/proxy/wire"
)

// maxForm is the size of arguments up to which their form does not matter.
// Longer ones are compared as they are written.
const maxForm = 8 << 10

// decode reads arguments whose texts survive that: a lone surrogate or invalid
// UTF-8 would become U+FFFD, and different texts the same.
func decode(args []byte) (v any, ok bool) {
	if len(args) > maxForm || !utf8.Valid(args) || bytes.Contains(args, []byte(`\ud`)) || bytes.Contains(args, []byte(`\uD`)) {
		return nil, false
	}
	v, err := wire.Decode(args)
	return v, err == nil
}

// digest is equal for equal values. Members are summed, so that their order
// does not matter; every kind of value has a first byte of its own.
func (l *Loops) digest(v any) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	switch v := v.(type) {
	case map[string]any:
		var sum uint64
		for name, e := range v {
			var m maphash.Hash
			m.SetSeed(l.seed)
			m.WriteString(name)
			maphash.WriteComparable(&m, l.digest(e))
			sum += m.Sum64()
		}
		h.WriteByte('{')
		maphash.WriteComparable(&h, sum)
	case []any:
		h.WriteByte('[')
		for _, e := range v {
			maphash.WriteComparable(&h, l.digest(e))
		}
	case string:
		h.WriteByte('"')
		h.WriteString(v)
	case json.Number:
		h.WriteByte('0')
		h.WriteString(plainNumber(string(v)))
	default:
		h.WriteByte('t')
		maphash.WriteComparable(&h, v)
	}
	return h.Sum64()
}

// exactDigits is how many digits a double keeps.
const exactDigits = 15

// plainNumber is one text for numbers that are equal. A number that a double
// would round keeps its own.
func plainNumber(s string) string {
	if len(s) > exactDigits {
		return s
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	if f == 0 {
		f = 0 // -0 is 0
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

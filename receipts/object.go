package receipts

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxFree is the longest string of another's choosing kept in a receipt.
const maxFree = 128

// maxInteger bounds every number: beyond it two JSON readers may disagree.
const maxInteger = 1<<53 - 1

// object appends JSON members to b, each followed by a comma; close and end
// replace the last comma. The first fault is kept in err.
type object struct {
	b   []byte
	cut map[string]int
	err error
}

func (o *object) key(k string) {
	o.b = append(append(append(o.b, '"'), k...), '"', ':')
}

func (o *object) str(k, v string) {
	o.key(k)
	o.b = append(appendString(o.b, v), ',')
}

func (o *object) hex(k string, v [32]byte) {
	o.key(k)
	o.b = append(o.b, '"')
	o.b = append(hex.AppendEncode(o.b, v[:]), '"', ',')
}

func (o *object) int(k string, v int64) {
	if v > maxInteger || v < -maxInteger {
		o.fail(fmt.Errorf("receipt member %s is %d: %w", k, v, errRange))
	}
	o.key(k)
	o.b = append(strconv.AppendInt(o.b, v, 10), ',')
}

func (o *object) uint(k string, v uint64) {
	if v > maxInteger {
		o.fail(fmt.Errorf("receipt member %s is %d: %w", k, v, errRange))
	}
	o.key(k)
	o.b = append(strconv.AppendUint(o.b, v, 10), ',')
}

func (o *object) oneOf(k, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		o.fail(notOneOf(k, v, allowed))
	}
	o.str(k, v)
}

// free writes a string of another's choosing; path names it in cut.
func (o *object) free(k, path, v string) { o.str(k, o.shorten(path, v)) }

func (o *object) open(k string)  { o.key(k); o.b = append(o.b, '{') }
func (o *object) close()         { o.b = append(closed(o.b, '}'), ',') }
func (o *object) list(k string)  { o.key(k); o.b = append(o.b, '[') }
func (o *object) endList()       { o.b = append(closed(o.b, ']'), ',') }
func (o *object) fail(err error) { o.err = firstError(o.err, err) }

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// closed ends an object or array whose last member left a comma.
func closed(b []byte, end byte) []byte {
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, end)
}

// changes writes at most maxChanges entries and maxChangesBytes; more counts
// what was left out.
func (o *object) changes(all []string) {
	o.list("changes")
	n, room := 0, maxChangesBytes
	for ; n < min(len(all), maxChanges); n++ {
		entry := appendString(nil, o.shorten("changes."+strconv.Itoa(n), all[n]))
		if room -= len(entry); room < 0 {
			break
		}
		o.b = append(append(o.b, entry...), ',')
	}
	o.endList()
	if n < len(all) {
		o.int("more", int64(len(all)-n))
	}
}

func (o *object) erased(all []Erased) {
	o.list("erased")
	for _, e := range all {
		o.b = append(o.b, '{')
		o.uint("seq", e.Seq)
		o.str("field", e.Field)
		o.close()
	}
	o.endList()
}

// shorten returns v cut to maxFree bytes at a rune boundary. Bytes that are
// not UTF-8 become \xNN rather than U+FFFD. Whatever is not verbatim is noted
// in cut with its original length.
func (o *object) shorten(path, v string) string {
	if len(v) <= maxFree && utf8.ValidString(v) {
		return v
	}
	if o.cut == nil {
		o.cut = map[string]int{}
	}
	o.cut[path] = len(v)
	return visible(v)
}

func visible(v string) string {
	b := make([]byte, 0, maxFree)
	for len(v) > 0 {
		r, n := utf8.DecodeRuneInString(v)
		part := v[:n]
		if r == utf8.RuneError && n == 1 {
			part = fmt.Sprintf(`\x%02x`, v[0])
		}
		if len(b)+len(part) > maxFree {
			break
		}
		b, v = append(b, part...), v[n:]
	}
	return string(b)
}

// appendString writes v as a JSON string, escaping only what RFC 8259 section
// 7 requires. v is valid UTF-8.
func appendString(b []byte, v string) []byte {
	b = append(b, '"')
	for i := range len(v) {
		switch c := v[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

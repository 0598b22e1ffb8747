package shape

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decode reads a JSON string that has been found valid (RFC 8259, section 7).
// A lone surrogate becomes U+FFFD, which mended says.
func decode(quoted string) (text string, mended bool) {
	s := quoted[1 : len(quoted)-1]
	at := strings.IndexByte(s, '\\')
	if at < 0 {
		return s, false
	}
	var b strings.Builder
	b.Grow(len(s))
	for at >= 0 && at+1 < len(s) {
		b.WriteString(s[:at])
		s = s[at:]
		n := 2
		if s[1] == 'u' {
			var lone bool
			n, lone = unicodeEscape(&b, s)
			mended = mended || lone
		} else {
			b.WriteByte(plainEscape(s[1]))
		}
		s = s[n:]
		at = strings.IndexByte(s, '\\')
	}
	b.WriteString(s)
	return b.String(), mended
}

func plainEscape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// unicodeEscape writes what \uXXXX stands for, two of them where they are a
// pair, and gives their length.
func unicodeEscape(b *strings.Builder, s string) (n int, lone bool) {
	r, ok := hex4(s)
	if !ok {
		b.WriteRune(utf8.RuneError)
		return min(len(s), 2), true
	}
	if !utf16.IsSurrogate(r) {
		b.WriteRune(r)
		return 6, false
	}
	if low, ok := hex4(s[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			b.WriteRune(pair)
			return 12, false
		}
	}
	b.WriteRune(utf8.RuneError)
	return 6, true
}

func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 32)
	return rune(n), err == nil
}

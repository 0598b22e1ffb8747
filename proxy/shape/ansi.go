package shape

import "strings"

const esc = '\x1b'

// maxOSC bounds how far the end of an operating system command is looked for.
const maxOSC = 4_096

// stripANSI removes terminal control sequences (ECMA-48, section 5.4): colours,
// cursor moves, character sets, and operating system commands such as titles
// and links, of which it says that they held text. What only looks like one stays.
func stripANSI(s string) (out string, text bool) {
	at := strings.IndexByte(s, esc)
	if at < 0 {
		return s, false
	}
	var b strings.Builder
	b.Grow(len(s))
	for at >= 0 {
		n, osc := sequence(s[at:])
		text = text || osc
		b.WriteString(s[:at])
		if n == 0 {
			b.WriteByte(esc)
			n = 1
		}
		s = s[at+n:]
		at = strings.IndexByte(s, esc)
	}
	b.WriteString(s)
	return b.String(), text
}

// sequence is the length of the control sequence that s begins with, 0 if it
// is none.
func sequence(s string) (n int, osc bool) {
	if len(s) < 2 {
		return 0, false
	}
	switch c := s[1]; {
	case c == '[':
		i := span(s, 2, 0x30, 0x3f)
		return final(s, span(s, i, 0x20, 0x2f), 0x40, 0x7e), false
	case c == ']':
		n := command(s)
		return n, n > 0
	case 0x20 <= c && c <= 0x2f:
		return final(s, span(s, 2, 0x20, 0x2f), 0x30, 0x7e), false
	case c == '7' || c == '8' || c == '=' || c == '>' || c == 'M' || c == 'c':
		return 2, false
	}
	return 0, false
}

// span steps over bytes of a range.
func span(s string, i int, from, to byte) int {
	for i < len(s) && from <= s[i] && s[i] <= to {
		i++
	}
	return i
}

// final is the length of a sequence whose last byte is at i.
func final(s string, i int, from, to byte) int {
	if i < len(s) && from <= s[i] && s[i] <= to {
		return i + 1
	}
	return 0
}

// command is the length of an operating system command, which ends with BEL
// or ESC \ on the same line.
func command(s string) int {
	for i := 2; i < min(len(s), maxOSC); i++ {
		switch s[i] {
		case '\a':
			return i + 1
		case '\n':
			return 0
		case esc:
			if i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			return 0
		}
	}
	return 0
}

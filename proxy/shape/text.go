package shape

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// chars counts the code points of valid UTF-8: the bytes that continue none.
func chars(s string) int {
	const ones = 0x0101010101010101
	n, i := len(s), 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		n -= bits.OnesCount64(w >> 7 & (^w >> 6) & ones)
	}
	for ; i < len(s); i++ {
		if !utf8.RuneStart(s[i]) {
			n--
		}
	}
	return n
}

// first is the beginning of s, at most n code points.
func first(s string, n int) string {
	if n >= len(s) {
		return s
	}
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at]
}

// last is the end of s, at most n code points.
func last(s string, n int) string {
	if n >= len(s) {
		return s
	}
	at := len(s)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:at])
		at -= size
	}
	return s[at:]
}

// LinePiece is how many characters of a line count as a line of its own
// where lines are numbered: by such pieces the archive is read.
const LinePiece = 2_000

// pieces is how many lines a line counts for.
func pieces(line string) int {
	if len(line) <= LinePiece {
		return 1
	}
	return max(1, (chars(line)+LinePiece-1)/LinePiece)
}

// lines is how many lines s holds. What follows the last newline is a line
// only if it is not empty.
func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && s[len(s)-1] != '\n' {
		n++
	}
	return n
}

// oneLine says that s has no newline but at its end.
func oneLine(s string) bool {
	at := strings.IndexByte(s, '\n')
	return at < 0 || at == len(s)-1
}

// numberOfLines is lines with long ones counted in pieces.
func numberOfLines(s string) int {
	n := 0
	for line := range strings.Lines(s) {
		n += pieces(strings.TrimSuffix(line, "\n"))
	}
	return n
}

// Bounds of what is shown of one thing among many, in characters.
const (
	maxLine = 500 // a line, a row, an item
	maxName = 60  // a key or a column's name
)

// bound renders a line, a row or the like in about n characters: without
// colours, and shortened in its middle as the options split a long line.
func (o *Options) bound(s string, n int) string {
	if len(s) > n {
		head := n * o.CharHead / (o.CharHead + o.CharTail)
		return middle(s, chars(s), head, n-head)
	}
	plain, _ := stripANSI(s)
	return plain
}

// middle leaves out what lies between head and tail of the total characters,
// unless that is hardly shorter.
func middle(s string, total, head, tail int) string {
	gap := fmt.Sprintf(" [... %d characters left out ...] ", total-head-tail)
	if head+tail+len(gap) >= total {
		plain, _ := stripANSI(s)
		return plain
	}
	begin, _ := stripANSI(first(s, head))
	end, _ := stripANSI(last(s, tail))
	return strings.ToValidUTF8(begin, "\uFFFD") + gap + strings.ToValidUTF8(end, "\uFFFD")
}

// size is for "1 row", "2 rows".
func size(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

package spill

import (
	"bytes"
	"unicode/utf8"
)

// overlap is how many characters behind a piece of a long line are searched
// with it.
const overlap = 200

// pieceReader splits a text into lines, and lines longer than LinePiece
// characters into pieces of that length.
type pieceReader struct {
	ahead []byte // what follows the last piece on its line, at most overlap characters
}

// split is a bufio.SplitFunc.
func (p *pieceReader) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if len(data) == 0 {
		return 0, nil, nil
	}
	line, ended := data, atEOF
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		line, ended = data[:i], true
	}
	end, cut := prefix(line, LinePiece)
	if !cut {
		if !ended {
			return 0, nil, nil
		}
		p.ahead = nil
		return min(len(line)+1, len(data)), line, nil
	}
	more, full := prefix(line[end:], overlap)
	if !full && !ended {
		return 0, nil, nil
	}
	p.ahead = line[end : end+more]
	return end, line[:end], nil
}

// prefix is how many bytes of b its first n characters take, and whether
// more than those are there.
func prefix(b []byte, n int) (end int, more bool) {
	if len(b) <= n {
		return len(b), false
	}
	for ; n > 0 && end < len(b); n-- {
		_, size := utf8.DecodeRune(b[end:])
		end += size
	}
	return end, end < len(b)
}

// chars counts code points, each byte that is of none as one.
func chars(s string) int { return utf8.RuneCountInString(s) }

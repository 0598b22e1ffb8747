package wire

import "bytes"

// idFinder finds the top-level id of an object too long or too deep to be
// scanned, or broken further on, so that the one call it belongs to can fail
// at once. It is fed the line in pieces and keeps a few bytes. Its answer is
// a guess at the best: it checks no grammar.
type idFinder struct {
	depth    int
	inString bool
	escaped  bool
	inValue  bool // behind the colon of a top-level member
	key, val []byte
	id       ID
}

const (
	finderKey = len(`"id"`)
	finderVal = 1024
)

func (f *idFinder) feed(b []byte) {
	for i := 0; i < len(b); i++ {
		if f.inString && !f.escaped && !f.recording() {
			if i = plain(b, i); i >= len(b) {
				return
			}
		}
		c := b[i]
		if f.inString {
			f.record(c)
			f.inString = f.escaped || c != '"'
			f.escaped = !f.escaped && c == '\\'
			continue
		}
		f.structure(c)
	}
}

// structure takes a byte outside strings.
func (f *idFinder) structure(c byte) {
	top := f.depth == 1
	switch {
	case c == '"':
		f.inString = true
		f.record(c)
	case c == '{' || c == '[':
		f.record(c)
		f.depth++
	case c == '}' || c == ']':
		if top {
			f.member()
		}
		f.depth--
		f.record(c)
	case c == ',' && top:
		f.member()
	case c == ':' && top:
		f.inValue = true
	default:
		f.record(c)
	}
}

// recording says whether this is a top-level name, or the id's value.
func (f *idFinder) recording() bool {
	if f.inValue {
		return string(f.key) == `"id"`
	}
	return f.depth == 1
}

// record keeps a byte, but no more than could matter.
func (f *idFinder) record(c byte) {
	switch {
	case !f.recording():
	case f.inValue && len(f.val) <= finderVal:
		f.val = append(f.val, c)
	case !f.inValue && len(f.key) <= finderKey && (f.inString || c > ' '):
		f.key = append(f.key, c)
	}
}

// member ends a top-level member.
func (f *idFinder) member() {
	if f.inValue && string(f.key) == `"id"` && len(f.val) <= finderVal {
		s := scanner{b: bytes.TrimSpace(f.val)}
		s.value(0)
		if s.end(); s.err == nil {
			f.id = RawID(s.b)
		}
	}
	f.key, f.val, f.inValue = f.key[:0], f.val[:0], false
}

// findID is the idFinder's answer for a whole line.
func findID(line []byte) ID {
	var f idFinder
	f.feed(line)
	return f.id
}

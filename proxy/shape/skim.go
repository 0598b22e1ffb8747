package shape

import "strings"

// skimmer goes through JSON text, looking only at strings and brackets. It
// finds the elements of an array and the names of their members at nearly the
// speed of reading; what stands between brackets, and whether a bracket has
// its own kind as partner, is not checked.
type skimmer struct {
	each   func(item string)        // of the outermost array; may be nil
	member func(name string, i int) // the i-th member of an element; may be nil
}

// What a byte outside of strings is.
const (
	plain = iota
	quote
	opens
	closes
	comma
	colon
)

var class = [256]byte{'"': quote, '{': opens, '[': opens, '}': closes, ']': closes, ',': comma, ':': colon}

// skim says whether s, without blanks around it, is one balanced object or array.
func (k *skimmer) skim(s string) bool {
	if len(s) < 2 || class[s[0]] != opens || s[len(s)-1] != s[0]+2 {
		return false
	}
	depth, start, members := 0, 1, 0
	object := false // the element is one
	var name string // the last string within an element
	for i := 0; i < len(s); i++ {
		switch class[s[i]] {
		case quote:
			end := stringEnd(s, i)
			if end < 0 {
				return false
			}
			if depth == 2 {
				name = s[i:end]
			}
			i = end - 1
		case opens:
			if depth++; depth == 2 {
				object = s[i] == '{'
			}
		case closes:
			if depth--; depth == 0 {
				k.element(s[start:i])
				return i == len(s)-1
			}
		case comma:
			if depth == 1 {
				k.element(s[start:i])
				start, members = i+1, 0
			}
		case colon:
			if depth == 2 && object && k.member != nil {
				k.member(name, members)
				members++
			}
		}
	}
	return false
}

// element gives an element on.
func (k *skimmer) element(s string) {
	if k.each != nil {
		k.each(s)
	}
}

// shortString is how far a string's end is looked for byte by byte.
const shortString = 24

// stringEnd is where the string that begins at i has ended, -1 if nowhere.
func stringEnd(s string, i int) int {
	begin := i + 1
	for i++; i < len(s) && i < begin+shortString; i++ {
		switch s[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return longStringEnd(s, i)
}

// longStringEnd goes on at i, where no escape is under way. A quote ends the
// string unless an odd number of backslashes precedes it.
func longStringEnd(s string, i int) int {
	for from := i; i < len(s); i++ {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		slashes := i
		for slashes > from && s[slashes-1] == '\\' {
			slashes--
		}
		if (i-slashes)%2 == 0 {
			return i + 1
		}
	}
	return -1
}

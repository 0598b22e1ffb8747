package api

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// fields takes `name value` lines in a fixed order; the first failure stays.
type fields struct {
	lines []string
	err   error
}

func (f *fields) next(name string) string {
	if f.err != nil {
		return ""
	}
	if len(f.lines) == 0 {
		f.err = fmt.Errorf("%w: the line %q is missing", ErrMalformed, name)
		return ""
	}
	value, ok := strings.CutPrefix(f.lines[0], name+" ")
	if !ok {
		f.err = fmt.Errorf("%w: want a line %q, have %q", ErrMalformed, name, cut(f.lines[0]))
		return ""
	}
	f.lines = f.lines[1:]
	return value
}

func (f *fields) uint(name string) uint64 {
	s := f.next(name)
	if f.err != nil {
		return 0
	}
	n, err := parseUint(s)
	if err != nil {
		f.err = fmt.Errorf("line %q: %w", name, err)
	}
	return n
}

// parseUint reads a decimal without leading zeroes, at most 2^63-1.
func parseUint(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || strconv.FormatUint(n, 10) != s {
		return 0, fmt.Errorf("%w: %q is not a decimal number below 2^63", ErrMalformed, cut(s))
	}
	return n, nil
}

func parseSizeLine(b []byte) (uint64, error) {
	s, ok := strings.CutSuffix(string(b), "\n")
	if !ok {
		return 0, fmt.Errorf("%w: a size line without a newline", ErrMalformed)
	}
	return parseUint(s)
}

// isWord says whether s is a type name: lowercase letters, digits and dashes.
func isWord(s string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return s != "" && len(s) <= 32 && !strings.ContainsFunc(s, other)
}

func isSpace(r rune) bool { return unicode.IsSpace(r) }

// cut bounds a stranger's text in our messages.
func cut(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

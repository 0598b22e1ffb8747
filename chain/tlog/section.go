package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Section is one named run of bytes of a container, stamp or fork file.
type Section struct {
	Name string // not empty, printable ASCII without spaces
	Data []byte
}

// FormatSections writes header (given without its newline) and the sections,
// each as "name length\n", the bytes, "\n".
func FormatSections(header string, sections []Section) []byte {
	b := append([]byte(header), '\n')
	for _, s := range sections {
		b = fmt.Appendf(b, "%s %d\n", s.Name, len(s.Data))
		b = append(append(b, s.Data...), '\n')
	}
	return b
}

// ParseSections accepts exactly what FormatSections writes with this header.
// Which names may occur, in what order and how often, is the caller's to
// judge. The data are slices of b.
func ParseSections(header string, b []byte) ([]Section, error) {
	rest, ok := bytes.CutPrefix(b, []byte(header+"\n"))
	if !ok {
		line, _, _ := bytes.Cut(b, []byte("\n"))
		return nil, fmt.Errorf("first line %.60q, want %q", line, header)
	}
	var sections []Section
	for len(rest) > 0 {
		s, after, err := cutSection(rest)
		if err != nil {
			return nil, fmt.Errorf("section %d at byte %d: %w", len(sections)+1, len(b)-len(rest), err)
		}
		sections, rest = append(sections, s), after
	}
	return sections, nil
}

func cutSection(b []byte) (Section, []byte, error) {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return Section{}, nil, errors.New("no newline after name and length")
	}
	name, length, ok := strings.Cut(string(line), " ")
	if !ok || !sectionName(name) {
		return Section{}, nil, fmt.Errorf("%.60q is not a name and a length", line)
	}
	n, err := parseDecimal(length)
	if err != nil {
		return Section{}, nil, fmt.Errorf("length of %s: %w", name, err)
	}
	// The newline after the data is counted by comparing with >=.
	if n >= uint64(len(rest)) || rest[n] != '\n' {
		return Section{}, nil, fmt.Errorf("%s is not %d bytes and a newline long", name, n)
	}
	return Section{Name: name, Data: rest[:n:n]}, rest[n+1:], nil
}

func sectionName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

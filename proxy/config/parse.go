package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/tailscale/hujson"
)

const (
	maxFile  = 16 << 20
	maxDepth = 1000
)

// document is a parsed file.
type document struct {
	file     string
	plain    []byte // standard JSON of the same length and offsets as the text
	entries  []entry
	settings json.RawMessage
}

// entry is one server as it stands in the file.
type entry struct {
	name string
	at   int // offset, for messages
	raw  json.RawMessage
	rawEntry
	problem string
}

type rawEntry struct {
	Command       string            `json:"command"`
	Args          []string          `json:"args"`
	Env           map[string]string `json:"env"`
	EnvPass       []string          `json:"envPass"`
	EnvFile       json.RawMessage   `json:"envFile"`
	Cwd           string            `json:"cwd"`
	Disabled      bool              `json:"disabled"`
	Description   string            `json:"description"`
	URL           string            `json:"url"`
	Type          string            `json:"type"`
	Headers       map[string]string `json:"headers"`
	AllowInsecure bool              `json:"allowInsecure"`
	Protocol      string            `json:"protocol"`
	MaxConcurrent int               `json:"maxConcurrent"`
}

func (d *document) dir() string { return filepath.Dir(d.file) }

// parse reads JSON with comments, trailing commas and a byte order mark.
func parse(file string, text []byte) (*document, error) {
	d := &document{file: file}
	if len(text) > maxFile {
		return nil, &FileError{File: file, Err: fmt.Errorf("%d bytes; at most %d are read", len(text), maxFile)}
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if tooDeep(text) {
		return nil, &FileError{File: file, Err: fmt.Errorf("nested more than %d deep", maxDepth)}
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, d.errorAt(text, v.StartOffset, errors.New("the file must hold one JSON object"))
	}
	seen := map[string]int{}
	for i := range root.Members {
		if err := d.member(text, &root.Members[i], seen); err != nil {
			return nil, err
		}
	}
	v.Standardize()
	d.plain = v.Pack()
	return d, nil
}

// tooDeep protects the parser's stack. It takes brackets in strings for real
// ones, of which no sane file leaves a thousand open.
func tooDeep(text []byte) bool {
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		if depth > maxDepth {
			return true
		}
	}
	return false
}

// hujson puts the place into the text only.
var placeRE = regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)

func syntaxError(file string, err error) error {
	e := &FileError{File: file, Err: err}
	if m := placeRE.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Col, _ = strconv.Atoi(m[2])
		if cause := errors.Unwrap(err); cause != nil {
			e.Err = cause
		}
	}
	return e
}

// errorAt gives an offset its line and column, both from 1, the column in
// bytes.
func (d *document) errorAt(text []byte, at int, err error) error {
	before := text[:min(at, len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	col := 1 + len(before) - (1 + bytes.LastIndexByte(before, '\n'))
	return &FileError{File: d.file, Line: line, Col: col, Err: err}
}

// member takes one member of the root. Others' settings are left alone.
func (d *document) member(text []byte, m *hujson.ObjectMember, seen map[string]int) error {
	switch name(m.Name); name(m.Name) {
	case "mcpServers", "servers":
		servers, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			return d.errorAt(text, m.Value.StartOffset, fmt.Errorf("%q must be an object of name: {…}", name(m.Name)))
		}
		return d.servers(text, servers, seen)
	case "toolGuardian":
		d.settings = standard(m.Value)
	}
	return nil
}

func (d *document) servers(text []byte, o *hujson.Object, seen map[string]int) error {
	for i := range o.Members {
		m := &o.Members[i]
		n := name(m.Name)
		if first, twice := seen[n]; twice {
			line := 1 + bytes.Count(text[:first], []byte("\n"))
			return d.errorAt(text, m.Name.StartOffset, fmt.Errorf("server %q is configured twice, first in line %d; rename or remove one", n, line))
		}
		if n == "" {
			return d.errorAt(text, m.Name.StartOffset, errors.New("a server needs a name"))
		}
		seen[n] = m.Name.StartOffset
		d.entries = append(d.entries, d.entry(text, n, m))
	}
	return nil
}

// entry decodes one server. What is wrong with it stays its own problem.
func (d *document) entry(text []byte, n string, m *hujson.ObjectMember) entry {
	e := entry{name: n, at: m.Name.StartOffset, raw: standard(m.Value)}
	if m.Value.Value.Kind() != '{' {
		e.problem = "the entry must be an object"
	} else if err := json.Unmarshal(e.raw, &e.rawEntry); err != nil {
		e.problem = entryProblem(err)
	}
	if e.problem != "" {
		e.problem = d.errorAt(text, e.at, fmt.Errorf("server %q: %s", n, e.problem)).Error()
	}
	return e
}

func entryProblem(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Sprintf("%q cannot be a %s", wrong.Field, wrong.Value)
	}
	return err.Error()
}

func name(v hujson.Value) string {
	lit, ok := v.Value.(hujson.Literal)
	if !ok {
		return ""
	}
	return lit.String()
}

// standard is the value as plain JSON without surrounding comments.
func standard(v hujson.Value) json.RawMessage {
	c := v.Clone()
	c.BeforeExtra, c.AfterExtra = nil, nil
	c.Minimize()
	return json.RawMessage(c.Pack())
}

package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"

	"toolguardian/proxy/config"
)

// ErrTaken is a server's name that the file has already.
var ErrTaken = errors.New("is configured already")

// ErrAbsent is a server's name that the file does not have.
var ErrAbsent = errors.New("is not configured")

// The members of a file that hold servers; the first is the one we write.
var serverMembers = []string{"mcpServers", "servers"}

const bom = "\xef\xbb\xbf"

// Text is a configuration file's bytes, to be edited. Its methods give the new
// bytes and leave the old ones alone.
type Text struct {
	File  string // for messages
	Bytes []byte // nil: there is no file yet
}

// Names are the servers in the file's order.
func (t Text) Names() ([]string, error) {
	d, err := t.parse()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range d.servers() {
		for _, m := range members(o) {
			names = append(names, literal(m.Name))
		}
	}
	return names, nil
}

// Add puts a server into the file. A name that is there is an error that wraps
// ErrTaken, unless it is to be replaced.
func (t Text) Add(name string, entry json.RawMessage, replace bool) ([]byte, error) {
	d, err := t.parse()
	if err != nil {
		return nil, err
	}
	if m := d.find(name); m != nil && !replace {
		return nil, fmt.Errorf("server %q %w in %s", name, ErrTaken, t.File)
	} else if m != nil {
		return d.done(name, d.splice(m.Value.StartOffset, m.Value.EndOffset, d.value(entry, d.indentAt(m.Name.StartOffset))))
	}
	key := string(hujson.String(name))
	if o := d.servers(); len(o) > 0 {
		return d.done(name, d.insert(o[0], key, entry))
	}
	var outer bytes.Buffer
	fmt.Fprintf(&outer, `{%s:%s}`, key, entry)
	return d.done(name, d.insert(d.root, `"`+serverMembers[0]+`"`, outer.Bytes()))
}

// Remove takes a server out of the file. A name that is not there is an error
// that wraps ErrAbsent.
func (t Text) Remove(name string) ([]byte, error) {
	d, err := t.parse()
	if err != nil {
		return nil, err
	}
	for _, o := range d.servers() {
		for i, m := range members(o) {
			if literal(m.Name) == name {
				return d.done(name, d.cut(o, i))
			}
		}
	}
	return nil, fmt.Errorf("server %q %w in %s", name, ErrAbsent, t.File)
}

// draft is a parsed text.
type draft struct {
	file string
	bom  string
	text []byte // without the BOM
	eol  string
	unit string // one step of indentation
	root hujson.Value
}

func (t Text) parse() (*draft, error) {
	text := t.Bytes
	if len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte(bom)))) == 0 {
		text = append(bytes.Clone(text), "{}\n"...)
	}
	if err := config.Check(t.File, text); err != nil {
		return nil, err
	}
	d := &draft{file: t.File, text: text, eol: "\n"}
	if rest, ok := bytes.CutPrefix(text, []byte(bom)); ok {
		d.bom, d.text = bom, rest
	}
	if bytes.Contains(d.text, []byte("\r\n")) {
		d.eol = "\r\n"
	}
	v, err := hujson.Parse(d.text)
	if err != nil {
		return nil, err // Check has parsed it
	}
	d.root = v
	d.unit = d.step()
	return d, nil
}

// servers are the objects that hold servers.
func (d *draft) servers() (found []hujson.Value) {
	for _, want := range serverMembers {
		for _, m := range members(d.root) {
			if literal(m.Name) == want {
				found = append(found, m.Value)
			}
		}
	}
	return found
}

// members are those of an object; none of another value.
func members(v hujson.Value) []hujson.ObjectMember {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	return o.Members
}

func (d *draft) find(name string) *hujson.ObjectMember {
	for _, o := range d.servers() {
		for _, m := range members(o) {
			if literal(m.Name) == name {
				return &m
			}
		}
	}
	return nil
}

func literal(v hujson.Value) string {
	lit, ok := v.Value.(hujson.Literal)
	if !ok {
		return ""
	}
	return lit.String()
}

// done checks that an edit changed what it should and nothing else.
func (d *draft) done(name string, text []byte) ([]byte, error) {
	out := append([]byte(d.bom), text...)
	if err := config.Check(d.file, out); err != nil {
		return nil, fmt.Errorf("the edit would have broken the file, which is left alone: %w", err)
	}
	was, err := without(d.text, name)
	if err != nil {
		return nil, err
	}
	is, err := without(text, name)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(was, is) {
		return nil, fmt.Errorf("the edit of %q would have changed more of %s, which is left alone", name, d.file)
	}
	return out, nil
}

// without is what a text holds but for one server.
func without(text []byte, name string) (map[string]any, error) {
	plain, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return nil, err
	}
	var all map[string]any
	n := json.NewDecoder(bytes.NewReader(plain))
	n.UseNumber()
	if err := n.Decode(&all); err != nil {
		return nil, err
	}
	for _, member := range serverMembers {
		if servers, ok := all[member].(map[string]any); ok {
			if delete(servers, name); len(servers) == 0 {
				delete(all, member) // a file without servers may lack the member
			}
		}
	}
	return all, nil
}

// step is the file's own indentation: that of its first indented line.
func (d *draft) step() string {
	for line := range strings.Lines(string(d.text)) {
		body := strings.TrimLeft(line, " \t")
		if indent := line[:len(line)-len(body)]; indent != "" && strings.TrimSpace(body) != "" && body[0] != '*' {
			return indent
		}
	}
	return "  "
}

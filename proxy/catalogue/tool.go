package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// Tool is one definition as its backend sent it, with what we read from it.
type Tool struct {
	Server      string
	Name        string          // decoded
	NameJSON    json.RawMessage // the bytes of the name, to be sent back
	Raw         json.RawMessage // the whole definition
	Description string
	Params      []Param // in the order of the schema
	ReadOnly    bool    // annotations.readOnlyHint, the server's own claim
}

// Param is one property of a tool's inputSchema.
type Param struct {
	Name     string
	Type     string // "string", "array", "string|null", "any"…
	Required bool
	Enum     []string // JSON texts of the allowed values, strings unquoted
}

// Has says whether the tool's schema names the parameter.
func (t Tool) Has(param string) bool {
	_, ok := t.param(param)
	return ok
}

// TakesArray says whether the parameter is an array and nothing else.
func (t Tool) TakesArray(param string) bool {
	p, ok := t.param(param)
	return ok && p.Type == "array"
}

func (t Tool) param(name string) (Param, bool) {
	for _, p := range t.Params {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

var (
	errNoName   = errors.New("a tool without a name")
	errNoObject = errors.New("a tool that is no object")
)

// ParseTool reads what a list needs from one definition. It reads leniently:
// only a tool that could not be called is an error.
func ParseTool(server string, raw json.RawMessage) (Tool, error) {
	var d struct {
		Name        json.RawMessage `json:"name"`
		Title       json.RawMessage `json:"title"`
		Description json.RawMessage `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations json.RawMessage `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return Tool{}, errNoObject
	}
	t := Tool{Server: server, NameJSON: d.Name, Raw: raw, Name: text(d.Name)}
	if t.Name == "" {
		return Tool{}, errNoName
	}
	if t.Description = text(d.Description); t.Description == "" {
		t.Description = text(d.Title)
	}
	t.ReadOnly = readOnlyHint(d.Annotations)
	t.Params = params(d.InputSchema)
	return t, nil
}

// text decodes a JSON string; anything else is "".
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func readOnlyHint(annotations json.RawMessage) bool {
	var a struct {
		ReadOnlyHint json.RawMessage `json:"readOnlyHint"`
	}
	return json.Unmarshal(annotations, &a) == nil && string(a.ReadOnlyHint) == "true"
}

// maxRefs bounds how many references are followed for one type's name, so
// that a schema which refers to itself ends.
const maxRefs = 16

// schema is the part of a JSON Schema that a list shows.
type schema struct {
	Type       json.RawMessage   `json:"type"`
	Enum       []json.RawMessage `json:"enum"`
	Const      json.RawMessage   `json:"const"`
	Ref        json.RawMessage   `json:"$ref"`
	AnyOf      []json.RawMessage `json:"anyOf"`
	OneOf      []json.RawMessage `json:"oneOf"`
	AllOf      []json.RawMessage `json:"allOf"`
	Required   []json.RawMessage `json:"required"`
	Properties json.RawMessage   `json:"properties"`
	Items      json.RawMessage   `json:"items"`
}

// decode reads what it can: a member of an unexpected type is passed over.
func decode(raw json.RawMessage) (s schema) {
	_ = json.Unmarshal(raw, &s)
	return s
}

func params(input json.RawMessage) []Param {
	s := decode(input)
	required := make(map[string]bool, len(s.Required))
	for _, r := range s.Required {
		required[text(r)] = true
	}
	var out []Param
	eachMember(s.Properties, func(name string, value json.RawMessage) {
		v := view{root: input}
		out = append(out, Param{Name: name, Type: v.typeName(value), Required: required[name], Enum: v.enum(value)})
	})
	return out
}

// view looks at the schemas below one root. It counts the references it
// followed.
type view struct {
	root json.RawMessage
	refs int
}

// parse reads one schema and follows its $ref, if it is local.
func (v *view) parse(raw json.RawMessage) (s schema) {
	for {
		if s = decode(raw); s.Ref == nil || v.refs >= maxRefs {
			return s
		}
		v.refs++
		target, ok := resolve(v.root, text(s.Ref))
		if !ok {
			return s
		}
		raw = target
	}
}

func (v *view) typeName(raw json.RawMessage) string {
	s := v.parse(raw)
	if s.Type != nil {
		return writtenType(s.Type)
	}
	var names []string
	for _, alternative := range append(append([]json.RawMessage{}, s.AnyOf...), s.OneOf...) {
		if v.refs++; v.refs > maxRefs {
			break
		}
		names = appendNew(names, v.typeName(alternative))
	}
	if len(names) > 0 {
		return strings.Join(names, "|")
	}
	return s.guess(v)
}

// guess names the type of a schema that does not say it.
func (s schema) guess(v *view) string {
	switch {
	case len(s.AllOf) > 0 && v.refs < maxRefs:
		v.refs++
		return v.typeName(s.AllOf[0])
	case len(s.Enum) > 0:
		return jsonType(s.Enum[0])
	case s.Const != nil:
		return jsonType(s.Const)
	case s.Properties != nil:
		return "object"
	case s.Items != nil:
		return "array"
	}
	return "any"
}

func (v *view) enum(raw json.RawMessage) []string {
	inner := view{root: v.root}
	s := inner.parse(raw)
	if s.Const != nil {
		s.Enum = []json.RawMessage{s.Const}
	}
	out := make([]string, 0, len(s.Enum))
	for _, e := range s.Enum {
		if e = bytes.TrimSpace(e); len(e) > 0 && e[0] == '"' {
			out = append(out, text(e))
		} else {
			out = append(out, string(e))
		}
	}
	return out
}

func writtenType(raw json.RawMessage) string {
	if one := text(raw); one != "" {
		return one
	}
	var several []string
	if json.Unmarshal(raw, &several) != nil || len(several) == 0 {
		return "any"
	}
	return strings.Join(several, "|")
}

func jsonType(raw json.RawMessage) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0:
		return "any"
	case raw[0] == '"':
		return "string"
	case raw[0] == '{':
		return "object"
	case raw[0] == '[':
		return "array"
	case raw[0] == 't' || raw[0] == 'f':
		return "boolean"
	case raw[0] == 'n':
		return "null"
	}
	return "number"
}

func appendNew(list []string, s string) []string {
	for _, have := range list {
		if have == s {
			return list
		}
	}
	return append(list, s)
}

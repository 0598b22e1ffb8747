package args

import (
	"bytes"
	"encoding/json"
	"slices"

	"toolguardian/proxy/wire"
)

// usual is a schema of the few keywords that most tools use, which mean the
// same in every draft. It only ever says yes, from the bytes alone: what it does
// not take is judged by the compiled schema.
type usual struct {
	types      []string // nil: any
	enum       []json.RawMessage
	items      *usual // nil: any
	properties map[string]*usual
	required   []string
	closed     bool // no members but properties
}

// maxRequired bounds the names that are kept track of, one bit each.
const maxRequired = 64

// words say nothing about a value, in every draft.
var words = []string{"title", "description", "default", "examples", "$comment"}

// readUsual is nil where a schema has any other keyword, or a known one in a
// form that is not the usual.
func readUsual(raw json.RawMessage, root bool) *usual {
	p := &usual{}
	var seen []string
	for m, err := range wire.Members(raw) {
		switch {
		case err != nil, slices.Contains(seen, m.Key):
			return nil
		case slices.Contains(words, m.Key), root && m.Key == "$schema":
		case !p.keyword(m.Key, m.Value):
			return nil
		}
		seen = append(seen, m.Key)
	}
	return p
}

func (p *usual) keyword(name string, value json.RawMessage) bool {
	switch name {
	case "type":
		return p.readTypes(value)
	case "enum":
		return readList(value, &p.enum) && len(p.enum) > 0
	case "required":
		return value[0] == '[' && json.Unmarshal(value, &p.required) == nil && len(p.required) < maxRequired
	case "additionalProperties":
		p.closed = string(value) == "false"
		return p.closed || string(value) == "true"
	case "items":
		p.items = readUsual(value, false)
		return p.items != nil
	case "properties":
		return p.readProperties(value)
	}
	return false
}

func (p *usual) readTypes(value json.RawMessage) bool {
	if value[0] != '[' {
		one, ok := wire.GetString(value)
		p.types = []string{one}
		return ok
	}
	return json.Unmarshal(value, &p.types) == nil && len(p.types) > 0
}

func (p *usual) readProperties(value json.RawMessage) bool {
	p.properties = map[string]*usual{}
	for m, err := range wire.Members(value) {
		if err != nil || p.properties[m.Key] != nil {
			return false
		}
		one := readUsual(m.Value, false)
		if one == nil {
			return false
		}
		p.properties[m.Key] = one
	}
	return true
}

func readList(raw json.RawMessage, to *[]json.RawMessage) bool {
	list, err := wire.Elements(raw)
	*to = list
	return err == nil
}

// takesAll says that arguments surely fit. A member given twice must fit twice.
func (p *usual) takesAll(args json.RawMessage) bool {
	args = bytes.TrimSpace(args)
	return p != nil && len(args) > 0 && args[0] == '{' && p.takes(args)
}

// takes judges a value without white space around it. A number has to be
// written with few digits, and as an integer where one is asked for; an enum's
// value has to have its very bytes.
func (p *usual) takes(raw json.RawMessage) bool {
	if p.types != nil && !p.ofType(raw) {
		return false
	}
	if p.enum != nil && !slices.ContainsFunc(p.enum, func(e json.RawMessage) bool { return bytes.Equal(e, raw) }) {
		return false
	}
	switch raw[0] {
	case '{':
		return p.takesObject(raw)
	case '[':
		return p.takesArray(raw)
	}
	return true
}

func (p *usual) takesObject(raw json.RawMessage) bool {
	missing := uint64(1)<<len(p.required) - 1
	for m, err := range wire.Members(raw) {
		if err != nil {
			return false
		}
		if i := slices.Index(p.required, m.Key); i >= 0 {
			missing &^= 1 << i
		}
		property := p.properties[m.Key]
		if property == nil && p.closed || property != nil && !property.takes(m.Value) {
			return false
		}
	}
	return missing == 0
}

func (p *usual) takesArray(raw json.RawMessage) bool {
	if p.items == nil {
		return true
	}
	list, err := wire.Elements(raw)
	for _, e := range list {
		if !p.items.takes(e) {
			return false
		}
	}
	return err == nil
}

// fewDigits is how many an integer may have that no reader rounds.
const fewDigits = 15

func (p *usual) ofType(raw json.RawMessage) bool {
	switch raw[0] {
	case '{':
		return slices.Contains(p.types, "object")
	case '[':
		return slices.Contains(p.types, "array")
	case '"':
		return slices.Contains(p.types, "string")
	case 't', 'f':
		return slices.Contains(p.types, "boolean")
	case 'n':
		return slices.Contains(p.types, "null")
	}
	if len(raw) > fewDigits {
		return false
	}
	whole := !bytes.ContainsAny(raw, ".eE")
	return slices.Contains(p.types, "number") || whole && slices.Contains(p.types, "integer")
}

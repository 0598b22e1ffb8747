package args

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/wire"
)

// Call is what call_tool takes, before the tool is known.
type Call struct {
	Server, Tool string
	Intent       string          // what the model looks for in the result; "": not said
	args         json.RawMessage // as the model wrote them; nil: absent
	whole        json.RawMessage // all that call_tool was given
	beside       []wire.Member   // members that are no key of the router's
}

// own are call_tool's keys: they are never arguments of a backend's tool.
var own = map[string]bool{"server": true, "tool": true, "args": true, "_meta": true}

// optional are keys that are call_tool's while they are in use. Otherwise they
// belong to a tool that has such a parameter, and are passed over without one.
var optional = map[string]bool{"confirm": true, "intent": true}

// ParseCall reads the names, and sets the rest aside for For. used are the
// optional keys in use.
func ParseCall(raw json.RawMessage, used ...string) (c Call, err error) {
	g, order, err := read(raw)
	if err != nil {
		return c, err
	}
	var from string
	if c.Server, c.Tool, from, err = g.names(order); err != nil {
		return c, err
	}
	c.whole = raw
	c.Intent, _ = g.str("intent") // anything else than text says nothing
	if !absent(g["args"]) {
		c.args = g["args"]
	}
	for _, m := range order {
		if !own[m.Key] && m.Key != from && !slices.Contains(used, m.Key) {
			c.beside = append(c.beside, m)
		}
	}
	return c, nil
}

// Received is what the model wrote: the value of args, or, without one, all
// that call_tool was given.
func (c Call) Received() json.RawMessage {
	if c.args != nil {
		return c.args
	}
	return c.whole
}

// For forms what goes into params.arguments for a tool: args where it is given, else the members
// beside the router's keys if the tool has a parameter for every one of them,
// else {}.
func (c Call) For(t catalogue.Tool) (json.RawMessage, error) {
	if c.args == nil {
		return c.flat(t)
	}
	for _, m := range c.beside {
		if t.Has(m.Key) {
			return nil, problem("put every argument inside args.", "%q stands beside args, where it would be lost", m.Key)
		}
	}
	object, err := c.object()
	if err != nil {
		return nil, err
	}
	return unwrapArrays(object, t)
}

const passObject = "use call_tool with args as one JSON object, not as text."

// object is args, unwrapped once where it is a JSON text.
func (c Call) object() (json.RawMessage, error) {
	raw := bytes.TrimSpace(c.args)
	switch raw[0] {
	case '{':
		return c.args, nil
	case '"':
	default:
		return nil, problem(passObject, "args must be an object, not %s", short(raw))
	}
	text, err := unquote(raw)
	if err != nil {
		return nil, problem(passObject, "args is text that is not JSON: %v", err)
	}
	if text[0] != '{' {
		return nil, problem(passObject, "args is text that holds no object: %s", short(text))
	}
	return text, nil
}

// unquote is the JSON inside a JSON string, checked as strictly as a message.
func unquote(raw json.RawMessage) (json.RawMessage, error) {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	text := []byte(strings.TrimSpace(s))
	var valid json.RawMessage
	if err := json.Unmarshal(text, &valid); err != nil {
		return nil, err
	}
	return text, wire.CheckStrict(wire.Message{Raw: []byte("{}"), Params: text})
}

// flat gathers members that stand where args belongs.
func (c Call) flat(t catalogue.Tool) (json.RawMessage, error) {
	var object []byte
	for _, m := range c.beside {
		if !t.Has(m.Key) && optional[m.Key] {
			continue
		}
		if !t.Has(m.Key) {
			return nil, notAParameter(t, m.Key)
		}
		object = append(object, ',')
		object = append(object, c.whole[m.Whole.Start:m.Whole.End]...)
	}
	if object == nil {
		return json.RawMessage("{}"), nil
	}
	object[0] = '{'
	return unwrapArrays(append(object, '}'), t)
}

func notAParameter(t catalogue.Tool, key string) error {
	text := ""
	if near := t.Nearest(key, 3); len(near) > 0 {
		text = "; the nearest: " + strings.Join(near, ", ")
	}
	return problem("use call_tool with server "+t.Server+", tool "+t.Name+", args: "+t.Args()+".",
		"%q is no argument of %s.%s%s", key, t.Server, t.Name, text)
}

// unwrapArrays replaces the JSON text of an array by the array where the tool
// takes an array and nothing else. Other bytes are equal.
func unwrapArrays(object json.RawMessage, t catalogue.Tool) (json.RawMessage, error) {
	type change struct {
		at   wire.Span
		with []byte
	}
	var changes []change
	for m, err := range wire.Members(object) {
		if err != nil {
			return nil, problem(passObject, "args cannot be read: %v", err)
		}
		if m.Value[0] != '"' || !t.TakesArray(m.Key) {
			continue
		}
		if array, err := unquote(m.Value); err == nil && array[0] == '[' {
			changes = append(changes, change{m.Span, array})
		}
	}
	for i := len(changes) - 1; i >= 0; i-- {
		object = wire.Replace(object, changes[i].at, changes[i].with)
	}
	return object, nil
}

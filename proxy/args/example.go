package args

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	maxFaults  = 10   // told of one call
	maxExample = 1000 // bytes of an example
	maxNodes   = 200  // values in an example
)

// refusal tells every fault, and arguments that would fit.
func (s *schema) refusal(value any, faults []fault, limit time.Duration) *Error {
	lines := make([]string, 0, maxFaults+2)
	for _, f := range faults[:min(len(faults), maxFaults)] {
		lines = append(lines, f.text)
	}
	if more := len(faults) - maxFaults; more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", more))
	}
	next := "correct the arguments named above and use call_tool again."
	if example := s.example(value, faults, limit); example != "" {
		lines = append(lines, "args that would fit: "+example)
		next = "correct the arguments named above, after the example, and use call_tool again."
	}
	return &Error{text: strings.Join(lines, "\n"), Next: next}
}

// example is JSON that passes the schema: the arguments as given with the
// faults repaired, or the required ones alone; "" where neither passes.
func (s *schema) example(value any, faults []fault, limit time.Duration) string {
	root := s.v.document
	for _, form := range []func(*sampler) any{
		func(p *sampler) any { return p.repair(value, faults) },
		func(p *sampler) any { return p.sample(root) },
	} {
		text, err := encode(form(&sampler{root: root, left: maxNodes}))
		if err != nil || len(text) > maxExample || text[0] != '{' || len(text) == 2 {
			continue // {} shows nothing
		}
		again, err := decode(text)
		if err != nil {
			continue
		}
		if left, err := s.v.check(again, limit); err == nil && len(left) == 0 {
			return string(text)
		}
	}
	return ""
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// sampler makes values up that fit a schema.
type sampler struct {
	root any
	left int // values it may still make
}

// repair is a copy of the arguments in which what is wrong was replaced.
func (p *sampler) repair(value any, faults []fault) any {
	out := value
	for _, f := range faults {
		if f.remove {
			out = edit(out, f.at, nil, true)
		} else {
			out = edit(out, f.at, p.sample(f.schema), false)
		}
	}
	return out
}

// edit copies v with the value at a place replaced or removed.
func edit(v any, at []string, with any, remove bool) any {
	if len(at) == 0 {
		return with
	}
	switch in := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(in)+1)
		for k, e := range in {
			out[k] = e
		}
		if remove && len(at) == 1 {
			delete(out, at[0])
			return out
		}
		out[at[0]] = edit(in[at[0]], at[1:], with, remove)
		return out
	case []any:
		n, err := strconv.Atoi(at[0])
		if err != nil || n < 0 || n >= len(in) {
			return v
		}
		out := append([]any{}, in...)
		out[n] = edit(in[n], at[1:], with, remove)
		return out
	}
	return v
}

// sample is a value for a schema: what it names itself, else the simplest of
// its type.
func (p *sampler) sample(schema any) any {
	s, _ := schema.(map[string]any)
	if p.left--; p.left <= 0 || s == nil {
		return "text"
	}
	if ref, ok := s["$ref"].(string); ok {
		return p.sample(follow(p.root, ref))
	}
	for _, key := range []string{"const", "default"} {
		if v, ok := s[key]; ok && v != nil {
			return v
		}
	}
	for _, key := range []string{"enum", "examples"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	if s["type"] == nil && s["properties"] == nil {
		for _, key := range []string{"anyOf", "oneOf", "allOf"} {
			if list, ok := s[key].([]any); ok && len(list) > 0 {
				return p.sample(list[0])
			}
		}
	}
	return p.typed(s)
}

func (p *sampler) typed(s map[string]any) any {
	name, _ := s["type"].(string)
	if several, ok := s["type"].([]any); ok && len(several) > 0 {
		name, _ = several[0].(string)
	}
	switch {
	case name == "object", name == "" && s["properties"] != nil:
		return p.object(s)
	case name == "array":
		return p.array(s)
	case name == "integer", name == "number":
		return lowest(s)
	case name == "boolean":
		return true
	case name == "null":
		return nil
	}
	least := asInt(s["minLength"])
	if least > maxExample {
		return ""
	}
	return "text" + strings.Repeat("x", max(0, least-len("text")))
}

func (p *sampler) object(s map[string]any) any {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, r := range required {
		if name, ok := r.(string); ok {
			out[name] = p.sample(properties[name])
		}
	}
	return out
}

func (p *sampler) array(s map[string]any) any {
	out := []any{}
	for range min(max(1, asInt(s["minItems"])), maxNodes) {
		out = append(out, p.sample(s["items"]))
	}
	return out
}

// lowest is the least number a schema allows, or 1.
func lowest(s map[string]any) any {
	if v, ok := s["minimum"].(json.Number); ok {
		return v
	}
	if v := asInt(s["exclusiveMinimum"]); v != 0 {
		return v + 1
	}
	return 1
}

func asInt(v any) int {
	n, _ := v.(json.Number)
	i, err := strconv.Atoi(string(n))
	if err != nil {
		return 0
	}
	return i
}

// follow resolves a reference within a schema (RFC 6901 in a fragment); nil
// where it leads nowhere.
func follow(root any, ref string) any {
	fragment, local := strings.CutPrefix(ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if !local || err != nil {
		return nil
	}
	if fragment == "" {
		return root
	}
	steps := strings.Split(strings.TrimPrefix(fragment, "/"), "/")
	for i, step := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
	}
	return find(root, steps)
}

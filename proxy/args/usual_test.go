package args

import (
	"encoding/json"
	"testing"
	"time"
)

func TestUsual(t *testing.T) {
	const schema = `{"type":"object","properties":{"s":{"type":"string","description":"d"},"n":{"type":["integer","null"]},"f":{"type":"number"},` +
		`"e":{"enum":["a","b"]},"l":{"type":"array","items":{"type":"string"}},"o":{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"],"additionalProperties":false}},"required":["s"]}`
	for in, want := range map[string]bool{
		`{"s":""}`: true, `{"s":"a","n":-12,"f":1.5e3,"e":"b","l":["x",""],"o":{"x":true},"more":[1e999]}`: true, ` {"s":"a","n":null} `: true,
		`{"s":"a","s":"b"}`: true, `{"s":1,"s":"b"}`: false, `{}`: false, `{"n":1}`: false, `{"s":"a","n":1.0}`: false, `{"s":"a","f":"1"}`: false,
		`{"s":"a","n":1234567890123456}`: false, `{"s":"a","e":"c"}`: false, `{"s":"a","e":"\u0061"}`: false, `{"s":"a","l":["x",1]}`: false,
		`{"s":"a","o":{}}`: false, `{"s":"a","o":{"x":true,"y":1}}`: false, `[]`: false, `"s"`: false, ``: false, `{"s":"a"`: false,
	} {
		if got := readUsual(json.RawMessage(schema), true).takesAll(json.RawMessage(in)); got != want {
			t.Errorf("%s: %v", in, got)
		}
	}
	for _, schema := range []string{``, `true`, `{"type":"string","pattern":"a"}`, `{"properties":{"a":true}}`, `{"properties":{"a":{"minimum":1}}}`, `{"required":"a"}`,
		`{"type":5}`, `{"type":[]}`, `{"enum":[]}`, `{"items":[{}]}`, `{"$ref":"#/a"}`, `{"additionalProperties":{}}`, `{"properties":{"a":{"$schema":"x"}}}`, `{"type":"a","type":"b"}`} {
		if p := readUsual(json.RawMessage(schema), true); p != nil {
			t.Errorf("%s is taken for %+v", schema, p)
		}
	}
}

// What plainly fits, the compiled schema takes too.
func FuzzUsual(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"enum":[1,"x",null]}},"required":["a"]}`), []byte(`{"a":1,"b":"x","b":1}`))
	f.Add([]byte(`{"properties":{"a":{"type":["number","null"]},"l":{"items":{"type":"string"}}},"additionalProperties":false}`), []byte(`{"a":1e3,"l":["x"]}`))
	f.Add([]byte(`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"type":"object","properties":{"x":{"type":"boolean"}}}}}`), []byte(`{"a":{"x":true}}`))
	f.Fuzz(func(t *testing.T, input, in []byte) {
		if !readUsual(input, true).takesAll(in) {
			return
		}
		s := &schema{input: input}
		var err error
		if s.v, err = compile(input, time.Minute); err != nil {
			return // nothing would be refused
		}
		if value, err := decode(in); err == nil {
			if faults, err := s.v.check(value, time.Minute); err == nil && len(faults) > 0 {
				t.Errorf("schema %q takes %q: %v", input, in, faults[0].text)
			}
		}
	})
}

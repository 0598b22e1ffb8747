package args

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// patient has time for a first compilation on a busy machine.
func patient() *Checker { return NewChecker(time.Minute) }

const d7 = `"$schema":"http://json-schema.org/draft-07/schema#",`

func TestCoercions(t *testing.T) {
	for _, tt := range []struct{ name, schema, in, want string }{
		{"text for a whole number", `{"properties":{"n":{"type":"integer"}}}`, `{ "n" : "2" , "z":1.0}`, `{ "n" : 2 , "z":1.0}`},
		{"2.0 is whole", `{"properties":{"n":{"type":"integer"}}}`, `{"n":"2.0"}`, `{"n":2.0}`},
		{"text for a number", `{"properties":{"n":{"type":"number"}}}`, `{"n":"-1.50e2"}`, `{"n":-1.50e2}`},
		{"the digits stay", `{"properties":{"n":{"type":"number"}}}`, `{"n":"9007199254740993"}`, `{"n":9007199254740993}`},
		{"text for a boolean", `{"properties":{"b":{"type":"boolean"}}}`, `{"b":"true"}`, `{"b":true}`},
		{"number for a text", `{"properties":{"s":{"type":"string"}}}`, `{"s":1.0}`, `{"s":"1.0"}`},
		{"optional", `{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"n":"2"}`, `{"n":2}`},
		{"optional, types in a list", `{"properties":{"n":{"type":["integer","null"]}}}`, `{"n":"2"}`, `{"n":2}`},
		{"nested", `{"properties":{"a":{"type":"array","items":{"properties":{"b.c":{"type":"integer"}}}}}}`,
			`{"a":[ {}, {"x":[1,{}] ,"b.c": "7"} ]}`, `{"a":[ {}, {"x":[1,{}] ,"b.c": 7} ]}`},
		{"several", `{"properties":{"a":{"type":"integer"},"b":{"type":"boolean"},"c":{"type":"string"}}}`, `{"b":"false","c":5,"a":"1"}`, `{"b":false,"c":"5","a":1}`},
		{"behind a reference", `{"$defs":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/n"}}}`, `{"n":"2"}`, `{"n":2}`},
		{"a reference to a sibling", `{"properties":{"n":{"type":"integer"},"m":{"$ref":"#/properties/n"}}}`, `{"m":"2"}`, `{"m":2}`},
		{"draft-07 definitions", `{` + d7 + `"definitions":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/definitions/n"}}}`, `{"n":"2"}`, `{"n":2}`},
		{"a cycle", `{"$defs":{"t":{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#/$defs/t"}}}},"$ref":"#/$defs/t"}`,
			`{"next":{"next":{"n":"3"}}}`, `{"next":{"next":{"n":3}}}`},
		{"then of an if", `{"properties":{"m":{}},"if":{"properties":{"m":{"const":"x"}}},"then":{"properties":{"n":{"type":"integer"}}}}`, `{"m":"x","n":"2"}`, `{"m":"x","n":2}`},
		{"an escaped name", `{"properties":{"né":{"type":"integer"}}}`, `{"n\u00e9":"2"}`, `{"n\u00e9":2}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := patient().Check(tool(t, tt.schema), json.RawMessage(tt.in)); err != nil || string(got) != tt.want {
				t.Errorf("sent %s (%v), want %s", got, err, tt.want)
			}
		})
	}
}

func TestPassesAsItIs(t *testing.T) {
	for _, tt := range []struct{ name, schema, in string }{
		{"fits", `{"properties":{"n":{"type":"integer"}}}`, `{"n": 2 , "more":1e400}`},
		{"text is allowed too", `{"properties":{"n":{"type":["integer","string"]}}}`, `{"n":"2"}`},
		{"no schema", `null`, `{"n":"2"}`},
		{"true", `true`, `{"n":"2"}`},
		{"a lone surrogate", `{"properties":{"s":{"type":"string","maxLength":1}}}`, `{"s":"\ud800"}`},
		{"formats are the server's business", `{` + d7 + `"properties":{"s":{"type":"string","format":"email"}}}`, `{"s":"no address"}`},
		{"a lookahead", `{"properties":{"s":{"type":"string","pattern":"^(?!a)b$"}}}`, `{"s":"b"}`},
		{"root anyOf", `{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := patient().Check(tool(t, tt.schema), json.RawMessage(tt.in)); err != nil || string(got) != tt.in {
				t.Errorf("sent %s (%v)", got, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	const filters = `{"type":"object","properties":{"params":{"type":"object","properties":{"filters":{"type":"array","items":{"type":"object",` +
		`"properties":{"op":{"enum":["eq","lt","gt"]},"v":{"type":"number"}},"required":["op"],"additionalProperties":false}}}}},"required":["params"]}`
	for _, tt := range []struct {
		name, schema, in string
		want             []string
		example          string
	}{
		{"an enum, deep", filters, `{"params":{"filters":[{"op":"eq"},{"op":"lt"},{"op":"like","v":"3"}]}}`,
			[]string{"argument 'params.filters[2].op' must be one of: eq, lt, gt"}, `{"params":{"filters":[{"op":"eq"},{"op":"lt"},{"op":"eq","v":3}]}}`},
		{"missing and unknown", filters, `{"params":{"filters":[{"opp":"eq"}]}}`,
			[]string{"argument 'params.filters[0].op' is missing", "argument 'params.filters[0].opp' is not known; the nearest: op"}, `{"params":{"filters":[{"op":"eq"}]}}`},
		{"missing at the top", filters, `{}`, []string{"argument 'params' is missing"}, `{"params":{}}`},
		{"a type", `{"properties":{"n":{"type":"integer"}}}`, `{"n":"two"}`, []string{`argument 'n' must be a whole number, not text "two"`}, `{"n":1}`},
		{"no whole number", `{"properties":{"n":{"type":"integer"}}}`, `{"n":"2.5"}`, []string{`argument 'n' must be a whole number, not the number 2.5`}, `{"n":1}`},
		{"a boolean is no text", `{"properties":{"s":{"type":"string"}}}`, `{"s":true}`, []string{"argument 's' must be text, not true"}, `{"s":"text"}`},
		{"hexadecimal", `{"properties":{"n":{"type":"number"}}}`, `{"n":"0x10"}`, []string{"argument 'n' must be a number"}, `{"n":1}`},
		{"True", `{"properties":{"b":{"type":"boolean"}}}`, `{"b":"True"}`, []string{"argument 'b' must be true or false"}, `{"b":true}`},
		{"which alternative is doubtful", `{"properties":{"p":{"anyOf":[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},{"type":"object","required":["m","n"]}]}}}`,
			`{"p":{"n":"2"}}`, []string{"argument 'p.n' must be a whole number"}, `{"p":{"n":1}}`},
		{"a tagged union", `{"properties":{"p":{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k","n"]},` +
			`{"type":"object","properties":{"k":{"const":"b"},"m":{"type":"string"}},"required":["k","m"]}]}}}`, `{"p":{"k":"b"}}`, []string{"argument 'p.m' is missing"}, `{"p":{"k":"b","m":"text"}}`},
		{"bounds", `{"properties":{"n":{"type":"number","minimum":1.5,"maximum":3},"s":{"type":"string","minLength":6},"l":{"type":"array","minItems":2,"items":{"type":"string"}}}}`,
			`{"n":0,"s":"abc","l":["x"]}`, []string{"argument 'n' must be at least 1.5", "argument 's' needs at least 6 characters and has 3", "argument 'l' needs at least 2 items and has 1"},
			`{"l":["text","text"],"n":1.5,"s":"textxx"}`},
		{"a pattern", `{"properties":{"s":{"type":"string","pattern":"^\\d+$"}}}`, `{"s":"x"}`, []string{`argument 's' must match the pattern ^\d+$`}, ""},
		{"root anyOf", `{"type":"object","anyOf":[{"required":["a"]},{"required":["b","c"]}]}`, `{}`, []string{"argument 'a' is missing"}, `{"a":"text"}`},
		{"an odd name", `{"properties":{"a.b":{"type":"object","properties":{"":{"type":"integer"}}}}}`, `{"a.b":{"":[]}}`, []string{`argument '["a.b"][""]' must be a whole number, not a list`}, `{"a.b":{"":1}}`},
		{"unevaluated", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, []string{"argument 'b' is not known"}, `{"a":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sent, err := patient().Check(tool(t, tt.schema), json.RawMessage(tt.in))
			var bad *Error
			if !errors.As(err, &bad) || bad.Next == "" || sent != nil {
				t.Fatalf("sent %s, error %v", sent, err)
			}
			lines := strings.Split(bad.Error(), "\n")
			if lines[0] != "files.read was not called, because its arguments cannot work." {
				t.Errorf("begins %q", lines[0])
			}
			for _, want := range tt.want {
				if !strings.Contains(bad.Error(), want) {
					t.Errorf("no %q in:\n%s", want, bad)
				}
			}
			last, found := strings.CutPrefix(lines[len(lines)-1], "args that would fit: ")
			if found != (tt.example != "") || found && last != tt.example {
				t.Errorf("example %q, want %q", last, tt.example)
			}
		})
	}
}

// What cannot be compiled, or would cost too much, never refuses a call.
func TestNotChecked(t *testing.T) {
	doubling := &bytes.Buffer{}
	doubling.WriteString(`{"$defs":{"d0":{"type":"integer"}`)
	for i := range 40 {
		fmt.Fprintf(doubling, `,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	doubling.WriteString(`},"properties":{"n":{"$ref":"#/$defs/d40"}}}`)
	for _, tt := range []struct{ name, schema, in string }{
		{"another document", `{"properties":{"n":{"$ref":"https://example.com/n.json"}}}`, `{"n":"x"}`},
		{"a file", `{"properties":{"n":{"$ref":"file:///etc/passwd"}}}`, `{"n":"x"}`},
		{"an unknown draft", `{"$schema":"https://example.com/draft","type":"object","required":["n"]}`, `{}`},
		{"a dangling reference", `{"required":["n"],"properties":{"n":{"$ref":"#/$defs/gone"}}}`, `{}`},
		{"a reference to itself", `{"$ref":"#"}`, `{}`},
		{"no schema at all", `{"type":"objekt","required":["n"]}`, `{}`},
		{"a list", `["x"]`, `{}`},
		{"a bad pattern", `{"required":["n"],"properties":{"s":{"pattern":"("}}}`, `{}`},
		{"work that doubles at every step", doubling.String(), `{"n":"x"}`},
		{"an expression that backtracks", `{"properties":{"s":{"type":"string","pattern":"^(a+)+$"}}}`, `{"s":"` + strings.Repeat("a", 40) + `!"}`},
		{"a huge exponent", `{"properties":{"n":{"type":"number","maximum":1}}}`, `{"n":1e999999999}`},
		{"a huge exponent in the schema", `{"properties":{"n":{"type":"number","maximum":1e999999999}}}`, `{"n":"x"}`},
		{"a huge schema", `{"required":["n"],"description":"` + strings.Repeat("x", maxSchema) + `"}`, `{}`},
		{"huge arguments", `{"required":["n"]}`, `{"x":"` + strings.Repeat("x", maxArgs) + `"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			got, err := NewChecker(200*time.Millisecond).Check(tool(t, tt.schema), json.RawMessage(tt.in))
			if err != nil || string(got) != tt.in {
				t.Errorf("sent %.100s (%v)", got, err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestSchemaIsReadAgainWhenItChanges(t *testing.T) {
	c := patient()
	in := json.RawMessage(`{"n":"x"}`)
	if _, err := c.Check(tool(t, `{"properties":{"n":{"type":"integer"}}}`), in); err == nil {
		t.Error("a text passed for a number")
	}
	if _, err := c.Check(tool(t, `{"properties":{"n":{"type":"string"}}}`), in); err != nil {
		t.Error("the former schema is in force:", err)
	}
}

func TestChecksSideBySide(t *testing.T) {
	c := patient()
	it := tool(t, `{"properties":{"n":{"type":"integer"},"s":{"type":"string","pattern":"^a"}}}`)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			in := fmt.Sprintf(`{"n":"%d","s":"a"}`, i)
			if got, err := c.Check(it, json.RawMessage(in)); err != nil || string(got) != fmt.Sprintf(`{"n":%d,"s":"a"}`, i) {
				t.Errorf("sent %s (%v)", got, err)
			}
		})
	}
	all.Wait()
}

// Whatever a server's schema and a model's arguments are, a check ends, and
// what it sends is the arguments or something that is valid JSON.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"properties":{"n":{"type":"integer"}}}`), []byte(`{"n":"2"}`))
	f.Add([]byte(`{"$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`), []byte(`{}`))
	f.Add([]byte(`{"properties":{"s":{"pattern":"^(a+)+$"}},"required":["s"]}`), []byte(`{"s":1}`))
	f.Add([]byte(`{"anyOf":[{"required":["a"]},{"type":"object","minProperties":3}]}`), []byte(`{"a":[1,[2]]}`))
	f.Fuzz(func(t *testing.T, schema, in []byte) {
		if !json.Valid(schema) || !json.Valid(in) {
			return
		}
		sent, err := NewChecker(0).Check(tool(t, string(schema)), in)
		var bad *Error
		if err == nil && !json.Valid(sent) || err != nil && !errors.As(err, &bad) {
			t.Fatalf("sent %q (%v)", sent, err)
		}
	})
}

// The decoder reads what encoding/json reads, wherever a message's grammar was
// checked before.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(` { "a" : [ 1.0 , "x\\\"\u0041\ud800" , null , true , {} , [] ] , "b" : -1e5 } `))
	f.Add([]byte(`"\\"`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decode(b)
		if !json.Valid(b) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		var want any
		if err2 := d.Decode(&want); err2 != nil {
			t.Fatal(err2)
		}
		if err == nil && utf8.Valid(b) && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is %#v, want %#v", b, got, want)
		}
		if err != nil && !bytes.ContainsAny(b, "[{0123456789") {
			t.Fatalf("%q: %v", b, err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	for name, size := range map[string]int{"small": 16, "64KB": 64 << 10} {
		b.Run(name, func(b *testing.B) {
			c := patient()
			it := tool(b, `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
			in := json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Check(it, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

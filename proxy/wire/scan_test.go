package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

// scan runs the scanner over one whole value.
func scan(b []byte) error {
	s := scanner{b: b}
	s.value(0)
	s.end()
	return s.err
}

func TestScanGrammar(t *testing.T) {
	for _, good := range []string{
		`{}`, `[]`, `""`, `0`, `-0`, `1e400`, `1.10`, `9007199254740993`, `null`, `true`, `false`,
		` { "a" : [ 1 , 2.5E-3 , "\u00e9\ud800\n" ] } `, "\"\xff\xfe\"", `{"a":1,"a":2}`,
	} {
		if err := scan([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		``, ` `, `{`, `[1,]`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `{"a":1]`, `[1}`, `01`, `1.`, `.5`, `1e`, `+1`, `-`,
		`"`, `"\x"`, `"\u12g4"`, `"\u12`, "\"\t\"", `tru`, `nul`, `{} {}`, `[1 2]`, "\"a\nb\"", `NaN`,
	} {
		if scan([]byte(bad)) == nil {
			t.Errorf("%q was taken for JSON", bad)
		}
	}
}

func TestScanDepth(t *testing.T) {
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := scan(nest(MaxDepth)); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if err := scan(nest(MaxDepth + 1)); scanCode(err) != CodeInvalidRequest {
		t.Errorf("depth %d: %v", MaxDepth+1, err)
	}
	if err := scan([]byte(strings.Repeat("[", 5_000_000))); err == nil {
		t.Error("five million brackets were taken for JSON")
	}
}

// The standard library is the second implementation: both accept the same
// texts, but for our bound on depth.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\u0000",{"b":null}]}`, `"\ud800"`, `-1.5e+9`, "\"\xff\"", `[[]`, `{"a":}`, ` 1 `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := scan(b)
		if err != nil && strings.Contains(err.Error(), errDeep.Error()) {
			return
		}
		if ours, theirs := err == nil, json.Valid(b); ours != theirs {
			t.Errorf("%q: we say %v (%v), encoding/json %v", b, ours, err, theirs)
		}
	})
}

func TestCheckStrict(t *testing.T) {
	many := func(last string) string {
		var b strings.Builder
		for i := range 100 {
			b.WriteString(`"k` + string(rune('a'+i/26)) + string(rune('a'+i%26)) + `":0,`)
		}
		return `{"method":"m","params":{` + b.String() + last + `}}`
	}
	tests := []struct {
		name, raw string
		twice     bool
	}{
		{"none", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":{"b":1},"c":{"b":2}}}`, false},
		{"envelope", `{"id":1,"method":"m","method":"n"}`, true},
		{"unknown member of the envelope", `{"id":1,"method":"m","x":1,"x":1}`, true},
		{"escaped name", `{"id":1,"method":"m","meth\u006fd":"n"}`, true},
		{"params", `{"id":1,"method":"m","params":{"a":1,"a":1}}`, true},
		{"deep in params", `{"id":1,"method":"m","params":{"arguments":{"l":[{"p":1,"\u0070":2}]}}}`, true},
		{"case differs", `{"id":1,"method":"m","params":{"a":1,"A":1}}`, false},
		{"in a result", `{"id":1,"result":{"a":1,"a":1}}`, false},
		{"many", many(`"zz":1`), false},
		{"many and one twice", many(`"kcc":1`), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := Parse([]byte(test.raw))
			if err != nil {
				t.Fatal(err)
			}
			if err := CheckStrict(m); (err != nil) != test.twice {
				t.Errorf("CheckStrict: %v", err)
			}
		})
	}
}

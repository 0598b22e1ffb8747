package backend

import (
	"bytes"
	"encoding/json"
	"testing"

	"toolguardian/proxy/wire"
)

func TestWithMeta(t *testing.T) {
	for _, c := range []struct{ params, members, want string }{
		{"", "", ""},
		{`{"a":1}`, "", `{"a":1}`},
		{"", `"k":1`, `{"_meta":{"k":1}}`},
		{`{}`, `"k":1`, `{"_meta":{"k":1}}`},
		{`{ }`, `"k":1`, `{"_meta":{"k":1} }`},
		{` {"a":1e400}`, `"k":1`, ` {"_meta":{"k":1},"a":1e400}`},
		{`{"_meta":{}}`, `"k":1`, `{"_meta":{"k":1}}`},
		{`{"_meta":null,"a":1}`, `"k":1`, `{"_meta":{"k":1},"a":1}`},
		{`{"_meta":[],"a":1}`, `"k":1`, `{"_meta":{"k":1},"a":1}`},
		{`{"a":{"_meta":{}},"_meta":{"x":1.10}}`, `"k":1`, `{"a":{"_meta":{}},"_meta":{"k":1,"x":1.10}}`},
		{`{"_meta":{"progressToken":"p","x":1}}`, `"k":1`, `{"_meta":{"k":1,"x":1}}`},
		{`{"_meta":{"progressToken":"p"}}`, `"k":1`, `{"_meta":{"k":1}}`},
		{`{"_meta":{"io.modelcontextprotocol/clientInfo":{},"com.example/x":2}}`, `"k":1`, `{"_meta":{"k":1,"com.example/x":2}}`},
	} {
		var params json.RawMessage
		if c.params != "" {
			params = json.RawMessage(c.params)
		}
		got, err := withMeta(params, []byte(c.members))
		if err != nil || string(got) != c.want {
			t.Errorf("%s + %s = %s, %v; want %s", c.params, c.members, got, err, c.want)
		}
	}
	for _, bad := range []string{`[]`, `5`, `{"a"`, `{"_meta":{"x":}}`, `{"a":1,`, `x`} {
		if got, err := withMeta(json.RawMessage(bad), []byte(`"k":1`)); err == nil {
			t.Errorf("%s became %s", bad, got)
		}
	}
}

// What withMeta makes of an object is one, with the member in it and the
// arguments' bytes untouched.
func FuzzWithMeta(f *testing.F) {
	f.Add([]byte(`{"arguments":{"a":1e400},"_meta":{"progressToken":1,"x":[]}}`))
	f.Add([]byte(`{ "_meta" : null , "arguments":"\ud800"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		if _, err := wire.Parse(params); err != nil {
			return // the front lets only objects through
		}
		in := bytes.Clone(params)
		got, err := withMeta(params, progressMember(42))
		if err != nil {
			return
		}
		if !bytes.Equal(in, params) {
			t.Fatalf("the input was changed: %q", params)
		}
		if _, err := wire.Parse(got); err != nil {
			t.Fatalf("%q became %q: %v", params, got, err)
		}
		if id := wire.ProgressToken(got); id.String() != "42" {
			t.Errorf("token %s in %q", id, got)
		}
		if a, b := wire.Get(in, "arguments"), wire.Get(got, "arguments"); !bytes.Equal(a, b) {
			t.Errorf("arguments %q became %q", a, b)
		}
	})
}

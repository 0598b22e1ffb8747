package args

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"toolguardian/proxy/catalogue"
)

func tool(t testing.TB, schema string) catalogue.Tool {
	t.Helper()
	out, err := catalogue.ParseTool("files", json.RawMessage(`{"name":"read","inputSchema":`+schema+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const readSchema = `{"type":"object","properties":{"path":{"type":"string"},"paths":{"type":"array"},` +
	`"either":{"type":["array","string"]},"name":{"type":"string"},"query":{"type":"string"}}}`

func TestCallArguments(t *testing.T) {
	for _, tt := range []struct {
		name, in   string
		want       string // what is sent, or
		wantErr    string // a part of the error
		wantServer string // "": files
	}{
		{name: "absent", in: `{"server":"files","tool":"read"}`, want: `{}`},
		{name: "null", in: `{"server":"files","tool":"read","args":null}`, want: `{}`},
		{name: "object as it stands", in: `{"server":"files","tool":"read","args":{ "path" : "a", "x":1.0 }}`, want: `{ "path" : "a", "x":1.0 }`},
		{name: "numbers as written", in: `{"server":"files","tool":"read","args":{"x":9007199254740993,"y":1e400,"z":-0}}`, want: `{"x":9007199254740993,"y":1e400,"z":-0}`},
		{name: "JSON text once", in: `{"server":"files","tool":"read","args":"{\"path\": \"a\"}"}`, want: `{"path": "a"}`},
		{name: "JSON text not twice", in: `{"server":"files","tool":"read","args":"\"{}\""}`, wantErr: "holds no object"},
		{name: "malformed text", in: `{"server":"files","tool":"read","args":"{path: a}"}`, wantErr: "not JSON"},
		{name: "cut text", in: `{"server":"files","tool":"read","args":"{\"path\":"}`, wantErr: "not JSON"},
		{name: "empty text", in: `{"server":"files","tool":"read","args":""}`, wantErr: "not JSON"},
		{name: "text with a member twice", in: `{"server":"files","tool":"read","args":"{\"path\":\"a\",\"path\":\"b\"}"}`, wantErr: "path"},
		{name: "an array for args", in: `{"server":"files","tool":"read","args":["a"]}`, wantErr: "must be an object"},
		{name: "array parameter stays an array", in: `{"server":"files","tool":"read","args":{"paths":["/a"]}}`, want: `{"paths":["/a"]}`},
		{name: "array as text", in: `{"server":"files","tool":"read","args":{"x":1, "paths":"[\"/a\", 1.0]" ,"path":"[1]"}}`, want: `{"x":1, "paths":["/a", 1.0] ,"path":"[1]"}`},
		{name: "text allowed beside array", in: `{"server":"files","tool":"read","args":{"either":"[1]"}}`, want: `{"either":"[1]"}`},
		{name: "text for an array that is none", in: `{"server":"files","tool":"read","args":{"paths":"[/a]"}}`, want: `{"paths":"[/a]"}`},
		{name: "flat", in: `{"server":"files", "path":"a", "tool":"read", "paths" : [1.0]}`, want: `{"path":"a","paths" : [1.0]}`},
		{name: "flat with _meta", in: `{"server":"files","tool":"read","path":"a","_meta":{"x":1}}`, want: `{"path":"a"}`},
		{name: "flat with a foreign key", in: `{"server":"files","tool":"read","path":"a","pth":"b"}`, wantErr: `"pth" is no argument of files.read; the nearest: path`},
		{name: "beside args, a parameter", in: `{"server":"files","tool":"read","args":{},"path":"a"}`, wantErr: "beside args"},
		{name: "beside args, no parameter", in: `{"server":"files","tool":"read","args":{"path":"a"},"reason":"why"}`, want: `{"path":"a"}`},
		{name: "name fills the server", in: `{"name":"files","tool":"read"}`, want: `{}`},
		{name: "query fills the server", in: `{"query":"files","tool":"read","path":"x"}`, want: `{"path":"x"}`},
		{name: "name is a parameter", in: `{"server":"files","tool":"read","name":"n"}`, want: `{"name":"n"}`},
		{name: "name is no text and a parameter", in: `{"server":"files","tool":"read","query":5}`, want: `{"query":5}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := ParseCall(json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if c.Server != "files" || c.Tool != "read" {
				t.Fatalf("addressed %q %q", c.Server, c.Tool)
			}
			sent, err := c.For(tool(t, readSchema))
			if tt.wantErr != "" {
				var bad *Error
				if !errors.As(err, &bad) || !strings.Contains(bad.Error(), tt.wantErr) || bad.Next == "" {
					t.Fatalf("error %v, want one with %q and a next step", err, tt.wantErr)
				}
				return
			}
			if err != nil || string(sent) != tt.want {
				t.Errorf("sent %s (%v), want %s", sent, err, tt.want)
			}
		})
	}
}

// intent and confirm are call_tool's where they are in use, and otherwise the
// tool's, if it has such a parameter.
func TestOptionalKeys(t *testing.T) {
	const schema = `{"properties":{"intent":{"type":"string"},"path":{"type":"string"}}}`
	for _, tt := range []struct {
		in   string
		used []string
		want string // "": refused
	}{
		{`{"server":"files","tool":"read","intent":"i","confirm":"c","path":"a"}`, nil, `{"intent":"i","path":"a"}`},
		{`{"server":"files","tool":"read","intent":"i","path":"a"}`, []string{"intent"}, `{"path":"a"}`},
		{`{"server":"files","tool":"read","intent":"i"}`, []string{"intent"}, `{}`},
		{`{"server":"files","tool":"read","confirm":"c"}`, nil, `{}`},
		{`{"server":"files","tool":"read","args":{},"intent":"i"}`, []string{"intent"}, `{}`},
		{`{"server":"files","tool":"read","args":{},"intent":"i"}`, nil, ``},
		{`{"server":"files","tool":"read","args":{},"confirm":"c"}`, nil, `{}`},
	} {
		c, err := ParseCall(json.RawMessage(tt.in), tt.used...)
		if err != nil {
			t.Fatal(err)
		}
		if sent, err := c.For(tool(t, schema)); string(sent) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s, used %v: sent %s (%v)", tt.in, tt.used, sent, err)
		}
	}
}

func TestReceivedIsWhatTheModelWrote(t *testing.T) {
	for in, want := range map[string]string{
		`{"server":"s","tool":"t","args": {"a" : 1}}`: `{"a" : 1}`,
		`{"server":"s","tool":"t","args":"{}"}`:       `"{}"`,
		`{"server":"s","tool":"t","a":1}`:             `{"server":"s","tool":"t","a":1}`,
		`{"server":"s","tool":"t"}`:                   `{"server":"s","tool":"t"}`,
	} {
		c, err := ParseCall(json.RawMessage(in))
		if err != nil || string(c.Received()) != want {
			t.Errorf("%s: received %s (%v), want %s", in, c.Received(), err, want)
		}
	}
}

func TestNamesMustBeText(t *testing.T) {
	for _, in := range []string{`{"server":5,"tool":"t"}`, `{"server":"s","tool":["t"]}`, `[]`, `5`} {
		if _, err := ParseCall(json.RawMessage(in)); err == nil {
			t.Errorf("%s was read", in)
		}
	}
}

func TestMisnamedNames(t *testing.T) {
	for in, want := range map[string]string{
		`{"server":"s","tool_name":"t"}`: `"tool_name" is no argument here; the nearest: tool`,
		`{"server":"s","toolName":"t"}`:  `"toolName" is no argument here; the nearest: tool`,
		`{"servers":"s","tool":"t"}`:     `"servers" is no argument here; the nearest: server`,
	} {
		if _, err := ParseCall(json.RawMessage(in)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", in, err)
		}
		if _, err := ParseDescribe(json.RawMessage(in)); err == nil || err.Error() != want {
			t.Errorf("describe %s: %v", in, err)
		}
	}
	if _, err := ParseSearch(json.RawMessage(`{"querry":"q"}`)); err == nil || !strings.Contains(err.Error(), "nearest: query") {
		t.Errorf("search: %v", err)
	}
}

func TestSearchArguments(t *testing.T) {
	for in, want := range map[string]Search{
		`{"query":"read file"}`:                             {Query: "read file"},
		`{"query":"q","limit":"5"}`:                         {Query: "q", Limit: 5},
		`{"query":"q","limit":3.0,"server":"s"}`:            {Query: "q", Limit: 3, Server: "s"},
		`{"query":"q","limit":-1}`:                          {Query: "q", Limit: -1},
		`{"query":"q","limit":0}`:                           {Query: "q", Limit: 1},
		`{"query":"q","limit":1e300}`:                       {Query: "q", Limit: 1<<31 - 1},
		`{"query":"q","name":"never a server on a search"}`: {Query: "q"},
	} {
		got, err := ParseSearch(json.RawMessage(in))
		if err != nil || got != want {
			t.Errorf("%s: got %+v (%v), want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{`{}`, ``, `{"query":" "}`, `{"query":"q","limit":"many"}`, `{"query":"q","limit":"NaN"}`, `{"name":"q"}`} {
		if _, err := ParseSearch(json.RawMessage(in)); err == nil {
			t.Errorf("%s was read", in)
		}
	}
}

func TestListAndDescribeArguments(t *testing.T) {
	for in, want := range map[string]string{``: "", `null`: "", `{}`: "", `{"server":"a"}`: "a", `{"query":"a"}`: "a",
		`{"name":"b","query":"a"}`: "a", `{"server":"","name":"b"}`: "b", `{"server":"c","query":"a"}`: "c"} {
		if got, err := ParseList(json.RawMessage(in)); err != nil || got.Server != want {
			t.Errorf("%s: got %+v (%v)", in, got, err)
		}
	}
	got, err := ParseDescribe(json.RawMessage(`{"name":"s","tool":"t","detail":"full"}`))
	if err != nil || got != (Describe{"s", "t", "full"}) {
		t.Errorf("got %+v (%v)", got, err)
	}
	if _, err := ParseDescribe(json.RawMessage(`{"server":"s","tool":"t","detail":"all"}`)); err == nil {
		t.Error("an unknown detail was read")
	}
}

// What goes to a backend is an object, made of bytes the model wrote.
func FuzzCall(f *testing.F) {
	f.Add([]byte(`{"server":"files","tool":"read","args":"{\"paths\":\"[1]\"}"}`))
	f.Add([]byte(`{"server":"files","tool":"read","path":"a","paths":"[1,2]"}`))
	f.Add([]byte(`{"name":"files","tool":"read","args":{"x":1e400}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if !json.Valid(in) {
			return // the front lets only JSON through
		}
		c, err := ParseCall(in)
		if err != nil {
			return
		}
		sent, err := c.For(tool(t, readSchema))
		if err != nil {
			return
		}
		if !json.Valid(sent) || strings.TrimSpace(string(sent))[0] != '{' {
			t.Fatalf("sent %q for %q", sent, in)
		}
	})
}

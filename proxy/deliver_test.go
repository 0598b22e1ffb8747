package proxy

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/proxy/wire"
)

const step = `{"type":"text","text":"NEXT STEP: go on."}`
const empty = `{"type":"text","text":"[the tool returned an empty result]"}`

func TestDeliver(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"blocks of every kind as they came",
			`{"content":[ {"type":"image","data":"QUJD\nRA==","mimeType":"image/png","x":1.0}, {"type":"resource_link","uri":"a"} ],"isError":false,"_meta":{"k":1e400}}`,
			`{"content":[{"type":"image","data":"QUJD\nRA==","mimeType":"image/png","x":1.0}, {"type":"resource_link","uri":"a"},` + step + `],"isError":false,"_meta":{"k":1e400}}`},
		{"text and structure both stay", `{"structuredContent":{"a":9007199254740993},"content":[{"type":"text","text":"a"}]}`,
			`{"structuredContent":{"a":9007199254740993},"content":[{"type":"text","text":"a"},` + step + `]}`},
		{"structure alone", `{"structuredContent":{"a":"\"ü\"","b":1.0}}`,
			`{"structuredContent":{"a":"\"ü\"","b":1.0},"content":[{"type":"text","text":"{\"a\":\"\\\"ü\\\"\",\"b\":1.0}"},` + step + `]}`},
		{"structure and an empty list", `{"content":[],"structuredContent":[1],"isError":true}`,
			`{"content":[{"type":"text","text":"[1]"},` + step + `],"structuredContent":[1],"isError":true}`},
		{"structure and null", `{"content":null,"structuredContent":{}}`, `{"content":[{"type":"text","text":"{}"},` + step + `],"structuredContent":{}}`},
		{"nothing", `{"content":[ ]}`, `{"content":[` + empty + `,` + step + `]}`},
		{"no members", `{}`, `{"content":[` + empty + `,` + step + `]}`},
		{"blank text", `{"content":[{"type":"text","text":" \n"}]}`, `{"content":[` + empty + `,{"type":"text","text":" \n"},` + step + `]}`},
		{"blank text and an image", `{"content":[{"type":"text","text":""},{"type":"image","data":""}]}`,
			`{"content":[{"type":"text","text":""},{"type":"image","data":""},` + step + `]}`},
		{"content is text", `{"content":"a\u0062"}`, `{"content":[{"type":"text","text":"a\u0062"},` + step + `]}`},
		{"content is one block", `{"content":{"type":"text","text":"a"}}`, `{"content":[{"type":"text","text":"a"},` + step + `]}`},
		{"content is a number", `{"content":5.0}`, `{"content":[{"type":"text","text":"5.0"},` + step + `]}`},
		{"lone surrogate and bytes that are no UTF-8", "{\"content\":[{\"type\":\"text\",\"text\":\"\\ud800\xff\"}]}", "{\"content\":[{\"type\":\"text\",\"text\":\"\\ud800\xff\"}," + step + "]}"},
		{"more to come", `{"resultType":"input_required","inputRequests":{}}`, `{"resultType":"input_required","inputRequests":{}}`},
		{"complete", `{"resultType":"complete","content":[{"type":"text","text":"a"}]}`, `{"resultType":"complete","content":[{"type":"text","text":"a"},` + step + `]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := readResult(json.RawMessage(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			got, changes, err := r.deliver(nil, "go on.")
			if err != nil || string(got) != tt.want {
				t.Errorf("delivered %s (%v)\nwant %s", got, err, tt.want)
			}
			if differs := string(got) != tt.in; differs != (len(changes) > 0) {
				t.Errorf("changes are %q", changes)
			}
		})
	}
}

func TestWhatIsNoResult(t *testing.T) {
	for _, in := range []string{``, `null`, `[]`, `5`, `"text"`} {
		if _, err := readResult(json.RawMessage(in)); err == nil {
			t.Errorf("%q was read", in)
		}
	}
}

// Real results pass with every block's bytes and every other member as it came.
func TestRealResultsPass(t *testing.T) {
	root := os.Getenv("TOOL_GUARDIAN_SHARED")
	if root == "" {
		root = "../../shared"
	}
	files, err := filepath.Glob(filepath.Join(root, "results", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("no recorded results at " + root)
	}
	tried := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		raw := wire.Get(b, "result")
		if len(raw) == 0 || raw[0] != '{' {
			continue
		}
		tried++
		checkSplice(t, file, raw)
	}
	if tried == 0 {
		t.Errorf("none of %d files holds a result", len(files))
	}
}

func checkSplice(t *testing.T, name string, raw json.RawMessage) {
	t.Helper()
	r, err := readResult(raw)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	got, _, err := r.deliver(nil, "go on.")
	if err != nil || !json.Valid(got) && json.Valid(raw) {
		t.Fatalf("%s: %v: %.300s", name, err, got)
	}
	var before, after []json.RawMessage
	_ = json.Unmarshal(wire.Get(raw, "content"), &before)
	_ = json.Unmarshal(wire.Get(got, "content"), &after)
	for i, b := range before {
		if !bytes.Equal(b, after[i]) {
			t.Errorf("%s: block %d changed", name, i)
		}
	}
	for m, err := range wire.Members(raw) {
		if err != nil {
			t.Fatal(err)
		}
		if m.Key != "content" && !bytes.Equal(wire.Get(got, m.Key), m.Value) {
			t.Errorf("%s: member %s changed", name, m.Key)
		}
	}
}

func FuzzDeliver(f *testing.F) {
	for _, in := range []string{`{}`, `{"content":[{"type":"text","text":""}],"structuredContent":{}}`, `{"content":"x"}`, `{"content":5}`} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := wire.Parse(append(append([]byte(`{"id":1,"result":`), in...), '}'))
		if err != nil || m.Result == nil {
			return
		}
		r, err := readResult(m.Result)
		if err != nil {
			return
		}
		got, _, err := r.deliver(nil, "go on.")
		if err != nil {
			t.Fatal(err)
		}
		if json.Valid(m.Result) && !json.Valid(got) {
			t.Fatalf("%q became %q", in, got)
		}
	})
}

func TestTextBlockIsTheText(t *testing.T) {
	for _, s := range []string{"", "a\"b\\c\n\r\t\x00\x1f\x7f", "<&>é\u2028😀", strings.Repeat("x", 1000)} {
		var b struct{ Text string }
		if err := json.Unmarshal(textBlock(s), &b); err != nil || b.Text != s {
			t.Errorf("%q became %q (%v)", s, b.Text, err)
		}
	}
	if got := string(textBlock("\xff")); got != "{\"type\":\"text\",\"text\":\"\xff\"}" {
		t.Errorf("bytes changed: %q", got)
	}
}

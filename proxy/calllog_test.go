package proxy

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"toolguardian/policy"
	"toolguardian/proxy/journal"
	"toolguardian/proxy/wire"
)

// logged runs a session and returns the rows it left.
func logged(t *testing.T, o Options, play func(*client)) (rows []journal.Row, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	o.Calls = journal.OpenCalls(path, slog.New(slog.DiscardHandler))
	c := connect(t, newRouter(t, o), latest)
	play(c)
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	o.Calls.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r journal.Row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows, string(b)
}

// brief is a row without its time and session.
func brief(t *testing.T, r journal.Row) string {
	t.Helper()
	if r.Session == "" || r.Time.IsZero() {
		t.Errorf("a row without session or time: %+v", r)
	}
	if r.Millis != nil {
		*r.Millis = 0
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	short, err := wire.Remove(b, func(name string) bool { return name == "ts" || name == "session" })
	if err != nil {
		t.Fatal(err)
	}
	return string(short)
}

// What a call leaves in the log: names, counts, codes.
func TestCallLog(t *testing.T) {
	const secret = "s3cret-value"
	m := newMemory(nil, echoTool, schemaTool, `{"name":"drop"}`)
	m.answer = answers(`{"content":[{"type":"text","text":"å\"` + secret + `"}],"isError":true}`)
	o := memories(map[string]*memory{"s": m})
	var err error
	if o.Policy, err = policy.Parse([]byte(`{"servers":{"s":{"deny":["^drop$"]}}}`)); err != nil {
		t.Fatal(err)
	}
	var shown []any // characters that the client got, call by call
	rows, text := logged(t, o, func(c *client) {
		tool := func(name, arguments string) {
			shown = append(shown, utf8.RuneCountInString(strings.Join(texts(t, c.tool(name, arguments)), "")))
		}
		tool("describe_tool", `{"server":"s","tool":"echo","detail":"full"}`)
		tool("call_tool", `{"server":"s","tool":"echo","args":{"text":"`+secret+`","b":1}}`)
		tool("call_tool", `{"server":"s","tool":"n","args":{"n":"`+secret+`"}}`)
		tool("call_tool", `{"server":"s","tool":"drop","args":{"a":"`+secret+`"}}`)
		tool("call_tool", `{"server":"s","tool":"ech","some":1}`)
		m.answer = answers(`{"content":[],"structuredContent":{"a":"` + secret + `"}}`)
		tool("call_tool", `{"server":"s","tool":"echo"}`)
	})
	want := strings.Split(fmt.Sprintf(`{"kind":"session","event":"start","harness":"mcp","client":"tester"}
{"kind":"call","tool":"describe_tool","server":"s","target":"echo","ok":true,"ms":0,"original_chars":%[1]d,"final_chars":%[1]d}
{"kind":"call","tool":"call_tool","server":"s","target":"echo","arg_keys":["text","b"],"ok":false,"ms":0,"original_chars":14,"final_chars":%[2]d,"error":"tool_error"}
{"kind":"call","tool":"call_tool","server":"s","target":"n","arg_keys":["n"],"ok":false,"ms":0,"original_chars":%[3]d,"final_chars":%[3]d,"error":"BAD_ARGUMENTS"}
{"kind":"policy","tool":"drop","server":"s","rule":"deny ^drop$","decision":"deny","via":"rule","outcome":"deny"}
{"kind":"call","tool":"call_tool","server":"s","target":"drop","arg_keys":["a"],"ok":false,"ms":0,"original_chars":%[4]d,"final_chars":%[4]d,"error":"POLICY_DENIED"}
{"kind":"call","tool":"call_tool","server":"s","target":"ech","arg_keys":["some"],"ok":false,"ms":0,"original_chars":%[5]d,"final_chars":%[5]d,"error":"NOT_FOUND"}
{"kind":"call","tool":"call_tool","server":"s","target":"echo","ok":true,"ms":0,"original_chars":55,"final_chars":%[6]d}
{"kind":"session","event":"end","harness":"mcp","client":"tester"}`, shown...), "\n")
	for i, r := range rows {
		if got := brief(t, r); i >= len(want) || got != want[i] {
			t.Errorf("row %d is  %s", i, got)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
	if strings.Contains(text, secret) || strings.Contains(text, "å") {
		t.Errorf("a value is in the log:\n%s", text)
	}
}

func FuzzQuotedChars(f *testing.F) {
	for _, s := range []string{`""`, `"å\"\\\n\u0041"`, `"\ud83d\uDE00"`, `"\ud83dx"`, `"\ud83d\ud83d\ude00"`, `"\udc00\\u"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var text string
		if len(b) < 2 || b[0] != '"' || json.Unmarshal(b, &text) != nil || b[len(b)-1] != '"' {
			return
		}
		if got, want := quotedChars(b), utf8.RuneCountInString(text); got != want {
			t.Errorf("%s: %d characters, want %d", b, got, want)
		}
	})
}

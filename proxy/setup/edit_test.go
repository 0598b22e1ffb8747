package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolguardian/proxy/config"
)

var entry = json.RawMessage(`{"command":"c","args":["-x"]}`)

// Each text, with a server added, and after its removal where that is not the text again.
var edits = []struct{ name, before, added, removed string }{
	{"no file", "", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"c\",\n      \"args\": [\n        \"-x\"\n      ]\n    }\n  }\n}\n", ""},
	{"empty object", "{}", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"c\",\n      \"args\": [\n        \"-x\"\n      ]\n    }\n  }\n}", ""},
	{"other settings alone", "{\n\t\"a\": 1.50 // one\n}\n",
		"{\n\t\"a\": 1.50, // one\n\t\"mcpServers\": {\n\t\t\"new\": {\n\t\t\t\"command\": \"c\",\n\t\t\t\"args\": [\n\t\t\t\t\"-x\"\n\t\t\t]\n\t\t}\n\t}\n}\n", ""},
	{"comments and order", `{
  // who
  "z": {"mcpServers": {}}, /* kept */
  "mcpServers": {
    // the first
    "old": {"command": "o"} // its own
    // the end
  },
  "a": [1,2 ,3],
}
`, `{
  // who
  "z": {"mcpServers": {}}, /* kept */
  "mcpServers": {
    // the first
    "old": {"command": "o"}, // its own
    // the end
    "new": {
      "command": "c",
      "args": [
        "-x"
      ]
    }
  },
  "a": [1,2 ,3],
}
`, `{
  // who
  "z": {"mcpServers": {}}, /* kept */
  "mcpServers": {
    // the first
    "old": {"command": "o"} // its own
    // the end
  },
  "a": [1,2 ,3],
}
`},
	{"trailing comma, CRLF and BOM", "\ufeff{\"servers\": {\r\n    \"old\": {\"command\": \"o\",},\r\n},}\r\n",
		"\ufeff{\"servers\": {\r\n    \"old\": {\"command\": \"o\",},\r\n    \"new\": {\r\n        \"command\": \"c\",\r\n        \"args\": [\r\n            \"-x\"\r\n        ]\r\n    },\r\n},}\r\n",
		"\ufeff{\"servers\": {\r\n    \"old\": {\"command\": \"o\",},\r\n},}\r\n"},
	{"one line", `{"mcpServers":{"old":{"command":"o"}}}`,
		"{\"mcpServers\":{\"old\":{\"command\":\"o\"}, \"new\": {\n  \"command\": \"c\",\n  \"args\": [\n    \"-x\"\n  ]\n}}}", ""},
	{"comment ends the line", "{\"mcpServers\":{\"old\":{\"command\":\"o\"} // no comma\n}}",
		"{\"mcpServers\":{\"old\":{\"command\":\"o\"}, // no comma\n  \"new\": {\n  \"command\": \"c\",\n  \"args\": [\n    \"-x\"\n  ]\n}\n}}", ""},
}

func TestAddTouchesOneKey(t *testing.T) {
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			before := Text{File: "mcp.json", Bytes: []byte(e.before)}
			got, err := before.Add("new", entry, false)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(e.added, string(got)); d != "" {
				t.Fatal(d)
			}
			after := Text{File: "mcp.json", Bytes: got}
			if _, err := after.Add("new", entry, false); !errors.Is(err, ErrTaken) {
				t.Errorf("added twice: %v", err)
			}
			back, err := after.Remove("new")
			if err != nil {
				t.Fatal(err)
			}
			if e.removed != "" {
				if d := cmp.Diff(e.removed, string(back)); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

func TestReplaceTouchesOneValue(t *testing.T) {
	before := Text{File: "mcp.json", Bytes: []byte("{\"mcpServers\": {\n  \"a\": {\"command\": \"o\"}, // first\n  \"b\": 1,\n}}")}
	got, err := before.Add("a", json.RawMessage(`{"command":"c"}`), true)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("{\"mcpServers\": {\n  \"a\": {\n    \"command\": \"c\"\n  }, // first\n  \"b\": 1,\n}}", string(got)); d != "" {
		t.Error(d)
	}
}

func TestRemove(t *testing.T) {
	for _, c := range []struct{ name, before, after string }{
		{"a", "{\"mcpServers\": {\n  \"a\": 1, // first\n  \"b\": 2\n}}", "{\"mcpServers\": {\n  // first\n  \"b\": 2\n}}"},
		{"b", "{\"mcpServers\": {\n  \"a\": 1, // first\n  \"b\": 2\n}}", "{\"mcpServers\": {\n  \"a\": 1 // first\n}}"},
		{"b", "{\"mcpServers\": {\n  \"a\": 1,\n  \"b\": 2,\n}}", "{\"mcpServers\": {\n  \"a\": 1,\n}}"},
		{"a", `{"mcpServers":{"a":1,"b":2}}`, `{"mcpServers":{"b":2}}`},
		{"b", `{"mcpServers":{"a":1,"b":2},"x":0}`, `{"mcpServers":{"a":1},"x":0}`},
		{"a", `{"mcpServers":{"a":1}}`, `{"mcpServers":{}}`},
	} {
		got, err := Text{File: "f", Bytes: []byte(c.before)}.Remove(c.name)
		if err != nil {
			t.Errorf("%s of %s: %v", c.name, c.before, err)
		} else if d := cmp.Diff(c.after, string(got)); d != "" {
			t.Errorf("%s of %s: %s", c.name, c.before, d)
		}
	}
	if _, err := (Text{File: "f", Bytes: []byte(`{"mcpServers":{"a":1}}`)}).Remove("z"); !errors.Is(err, ErrAbsent) {
		t.Errorf("an absent one: %v", err)
	}
}

func TestMalformedIsRefusedWithItsPlace(t *testing.T) {
	for _, c := range []struct {
		text, place string
	}{
		{"{\"mcpServers\": {\n  \"a\": [}\n}", "f:2:9"},
		{"{\n\"mcpServers\": []}", "f:2:15"},
		{"[1]", "f:1:1"},
		{"{\"mcpServers\": {\"a\": {},\n\"a\": {}}}", "f:2:1"},
	} {
		text := Text{File: "f", Bytes: []byte(c.text)}
		_, add := text.Add("n", entry, true)
		_, remove := text.Remove("a")
		for _, err := range []error{add, remove} {
			var wrong *config.FileError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.place+":") {
				t.Errorf("%s: %v, want the place %s", c.text, err, c.place)
			}
		}
	}
}

// Whatever a file holds: an edit is refused, or the name is there and after its
// removal everything else is what it was.
func FuzzEdit(f *testing.F) {
	for _, e := range edits {
		f.Add([]byte(e.before), "new")
	}
	f.Add([]byte(`{"mcpServers":{"a":1,},}`), "a\n\"b")
	f.Fuzz(func(t *testing.T, before []byte, name string) {
		text := Text{File: "f", Bytes: before}
		added, err := text.Add(name, entry, false)
		if err != nil {
			return
		}
		after := Text{File: "f", Bytes: added}
		removed, err := after.Remove(name)
		if err != nil {
			t.Fatalf("added to %q but not removed from %q: %v", before, added, err)
		}
		names, err := text.Names()
		if err != nil {
			t.Fatal(err)
		}
		left, err := Text{File: "f", Bytes: removed}.Names()
		if err != nil || !cmp.Equal(names, left) {
			t.Errorf("%q: servers %q, then %q (%v)", before, names, left, err)
		}
		for _, comment := range bytes.Split(before, []byte("\n")) {
			if i := bytes.Index(comment, []byte("// ")); i >= 0 && !bytes.Contains(added, bytes.TrimSpace(comment[i:])) {
				t.Errorf("%q lost %q", before, comment[i:])
			}
		}
	})
}

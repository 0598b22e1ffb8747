package catalogue

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/NAME, and writes it under -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

func raws(definitions ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(definitions))
	for i, d := range definitions {
		out[i] = json.RawMessage(d)
	}
	return out
}

// odd is a server with the definitions that others stumble over.
func odd() Server {
	return Server{Name: "odd.one", State: Up, Tools: ReadTools("odd.one", raws(
		`{"name":"a.b/c:d","description":"Dots, slashes and colons in a name","inputSchema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["a"]}}`,
		`{"name":"_läuft @","inputSchema":null}`,
		`{"name":"...","title":"Only a title","inputSchema":{"properties":{"level":{"enum":["a","b",3]},"many":{"type":"string","enum":["1","2","3","4","5","6","7"]}}}}`,
		`{"name":"cycle","inputSchema":{"$defs":{"n":{"$ref":"#/$defs/n"}},"properties":{"n":{"$ref":"#/$defs/n"},"self":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}}`,
		`{"name":"sibling","inputSchema":{"properties":{"x":{"type":["integer","null"]},"y":{"$ref":"#/properties/x"},"gone":{"$ref":"#/properties/none"},"far":{"$ref":"https://example.com/s"}}}}`,
		`{"name":"shapes","inputSchema":{"properties":{"one":{"oneOf":[{"type":"string"},{"type":"array"}]},"all":{"allOf":[{"type":"object"}]},"k":{"const":"only"},"t":true,"i":{"items":{}},"bad":{"type":5,"enum":"no list"}}}}`,
		`{"name":5}`, `7`, `{"description":"nameless"}`,
		`{"name":"...","description":"a second one of that name"}`,
	))}
}

func files() Server {
	return Server{Name: "files", State: Up, Tools: ReadTools("files", raws(
		`{"name":"read_text_file","description":"Read the complete contents of a file from the file system as text, whatever its size","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"tail":{"type":"number"},"head":{"type":"number"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`,
		`{"name":"write_file","description":"Write a file","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}}`,
		`{"name":"listDirectories","description":"Directory names","inputSchema":{"type":"object","properties":{}}}`,
	))}
}

func troubled() []Server {
	return []Server{
		{Name: "dead", State: Unknown, Err: "could not start: initialize: ended (exit code 1)", Stderr: []string{"no such folder: /x", "  bye"}},
		{Name: "slow", State: Starting},
		{Name: "web", State: AuthRequired, Err: "401 Unauthorized"},
		{Name: "empty", State: Up, Tools: ReadTools("empty", nil)},
		{Name: "gone", State: Down, Err: "ended twice in a minute", Tools: ReadTools("gone", raws(`{"name":"once"}`))},
	}
}

func transcript(c *Catalogue) string {
	var b strings.Builder
	say := func(head, text, next string, err error) {
		b.WriteString("> " + head + "\n")
		if err != nil {
			text, next = "ERROR "+err.Error(), err.(*Missing).Next
		}
		b.WriteString(text + "\nNEXT STEP: " + next + "\n\n")
	}
	text, next := c.List()
	say("list", text, next, nil)
	for _, name := range []string{"files", "odd.one", "dead", "slow", "web", "empty", "gone", "file", ""} {
		text, next, err := c.ListServer(name)
		say("list "+name, text, next, err)
	}
	for _, q := range []string{"read file", "directory", "write_file", "Dots", "persist a memo"} {
		text, next, err := c.Search(q, "", 3)
		say("search "+q, text, next, err)
	}
	for _, at := range [][2]string{{"files", "read_text_file"}, {"files", "listDirectories"}, {"odd.one", "..."}, {"files", "readTextFile"},
		{"files", "files.write-file"}, {"files", "a.b/c:d"}, {"files", "zzz"}, {"files", ""}, {"fils", "x"}, {"dead", "x"}} {
		tool, err := c.FindTool(at[0], at[1])
		text, next := c.Describe(tool)
		say("describe "+at[0]+" "+at[1], text, next, err)
	}
	return b.String()
}

func TestTranscript(t *testing.T) {
	c := New(append([]Server{files(), odd()}, troubled()...), Options{})
	golden(t, "transcript.txt", transcript(c))
}

func TestTranscriptSmall(t *testing.T) {
	c := New([]Server{files(), odd()}, Options{DescWords: 6, MaxChars: 120})
	golden(t, "small.txt", transcript(c))
}

func TestNoServers(t *testing.T) {
	golden(t, "none.txt", transcript(New(nil, Options{})))
}

func TestSameBytesEachTime(t *testing.T) {
	first := transcript(New(append([]Server{files(), odd()}, troubled()...), Options{}))
	for range 20 {
		if transcript(New(append([]Server{files(), odd()}, troubled()...), Options{})) != first {
			t.Fatal("the same catalogue and queries gave other bytes")
		}
	}
}

// One filter holds for list, search and describe alike.
func TestHiddenToolsAreNowhere(t *testing.T) {
	c := New([]Server{files()}, Options{Visible: func(t Tool) bool { return t.Name != "write_file" }})
	all, _ := c.List()
	one, _, _ := c.ListServer("files")
	found, _, _ := c.Search("write", "", 0)
	_, err := c.FindTool("files", "write_file")
	near, nearErr := c.FindTool("files", "write_fil")
	for what, text := range map[string]string{"list": all, "list of a server": one, "search": strings.ReplaceAll(found, `"write"`, ""),
		"nearest": near.Name + nearErr.Error()[len(`server files has no tool "write_fil"`):]} {
		if strings.Contains(text, "write") {
			t.Errorf("%s shows a hidden tool:\n%s", what, text)
		}
	}
	if err == nil {
		t.Error("a hidden tool was found")
	}
}

// Whoever asks for a name of megabytes is not sent it back.
func TestLongNamesAreCut(t *testing.T) {
	c := New([]Server{files()}, Options{})
	long := strings.Repeat("é", 5<<20/2)
	for what, err := range map[string]error{"server": c.Find(long), "tool": second(c.FindTool("files", long)), "server of a tool": second(c.FindTool(long, "x"))} {
		if err == nil || len(err.Error()) > 512 || !strings.Contains(err.Error(), `"`+strings.Repeat("é", 64)+`…"`) {
			t.Errorf("%s: %.600v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestDefinitionIsKeptAsItCame(t *testing.T) {
	raw := `{ "name" : "x\u002fy", "inputSchema":{"definitions":{"a":{}},"$ref":"#/definitions/a"}, "n":1.0 }`
	tools := ReadTools("s", raws(raw))
	got, ok := tools.Tool("x/y")
	if !ok || string(got.Raw) != raw || string(got.NameJSON) != `"x\u002fy"` {
		t.Errorf("found %v, raw %s, name %s", ok, got.Raw, got.NameJSON)
	}
}

func TestSearchLimit(t *testing.T) {
	var defs []string
	for i := range 60 {
		defs = append(defs, `{"name":"read_`+string(rune('a'+i%26))+string(rune('a'+i/26))+`"}`)
	}
	c := New([]Server{{Name: "s", State: Up, Tools: ReadTools("s", raws(defs...))}}, Options{})
	for limit, want := range map[int]int{0: DefaultLimit, -3: 1, 1: 1, 50: 50, 9999: MaxLimit} {
		text, _, err := c.Search("read", "", limit)
		if got := strings.Count(text, "args:"); err != nil || got != want {
			t.Errorf("limit %d: %d hits (%v), want %d", limit, got, err, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"read_file", "write_file", "list", "git_status"}
	for word, want := range map[string]string{"readFile": "read_file", "read-files": "read_file", "status": "git_status",
		"lst": "list", "xyz": "", "": "", "read_file_" + strings.Repeat("x", 1000): ""} {
		if got := strings.Join(Nearest(word, names, 1), ","); got != want {
			t.Errorf("%q: nearest %q, want %q", word, got, want)
		}
	}
}

// Real catalogues are read whole: every tool, with the bytes it came in.
func TestRealCatalogues(t *testing.T) {
	root := os.Getenv("TOOL_GUARDIAN_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	found, err := filepath.Glob(filepath.Join(root, "catalogs", "*", "*.json"))
	if err != nil || len(found) == 0 {
		t.Skip("no recorded catalogues at " + root)
	}
	for _, file := range found {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Tools    []json.RawMessage `json:"tools"`
			RawPages []struct {
				Result struct {
					Tools []json.RawMessage `json:"tools"`
				} `json:"result"`
				Tools []json.RawMessage `json:"tools"`
			} `json:"rawPages"`
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		for _, p := range doc.RawPages {
			doc.Tools = append(append(doc.Tools, p.Tools...), p.Result.Tools...)
		}
		tools := ReadTools("s", doc.Tools)
		if len(tools.list) != len(doc.Tools) || len(tools.flags) > 0 || len(doc.Tools) == 0 {
			t.Errorf("%s: %d of %d tools, flags %q", file, len(tools.list), len(doc.Tools), tools.flags)
		}
		for i, tool := range tools.list {
			if string(tool.Raw) != string(doc.Tools[i]) {
				t.Errorf("%s: definition %d changed", file, i)
			}
		}
		c := New([]Server{{Name: "s", State: Up, Tools: tools}}, Options{})
		if text, _, err := c.ListServer("s"); err != nil || strings.Count(text, "    args: ") != len(doc.Tools) {
			t.Errorf("%s: %d args lines for %d tools (%v)", file, strings.Count(text, "    args: "), len(doc.Tools), err)
		}
	}
}

func FuzzReadTools(f *testing.F) {
	for _, t := range odd().Tools.list {
		f.Add([]byte(t.Raw))
	}
	f.Add([]byte(`{"name":"x","inputSchema":{"properties":{"a":{"anyOf":[{"$ref":"#/properties/a"},{"$ref":"#/properties/a"}]}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tools := ReadTools("s", []json.RawMessage{raw, raw})
		if len(tools.list) > 1 {
			t.Fatal("the same name twice")
		}
		c := New([]Server{{Name: "s", State: Up, Tools: tools}}, Options{})
		for _, tool := range tools.list {
			if got, err := c.FindTool("s", tool.Name); err != nil || string(got.Raw) != string(raw) {
				t.Fatalf("found %q (%v)", got.Raw, err)
			}
		}
		c.List()
		c.Search(string(raw[:min(20, len(raw))]), "", 0)
	})
}

func BenchmarkSearch(b *testing.B) {
	c := New([]Server{files(), odd()}, Options{})
	for b.Loop() {
		c.Search("read text file", "", 5)
	}
}

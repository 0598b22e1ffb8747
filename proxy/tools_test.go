package proxy

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"toolguardian/proxy/config"
	"toolguardian/proxy/wire"
)

// functionCost is F, the reference's formula: what a model is shown, as
// Python's json.dumps writes it, by characters / 3.5.
func functionCost(t *testing.T, tools []json.RawMessage) int {
	t.Helper()
	var defs []string
	for _, raw := range tools {
		var d struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		defs = append(defs, fmt.Sprintf(`{"type": "function", "function": {"name": %s, "description": %s, "parameters": %s}}`,
			asciiJSON(t, d.Name), asciiJSON(t, d.Description), spaced(t, d.InputSchema)))
	}
	return int(math.Ceil(float64(len("["+strings.Join(defs, ", ")+"]")) / 3.5))
}

// asciiJSON is a JSON string with everything beyond ASCII escaped.
func asciiJSON(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	for _, r := range string(textBlock(s))[len(`{"type":"text","text":`):] {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
	}
	return strings.TrimSuffix(b.String(), "}")
}

// spaced writes JSON with a space after each colon and comma.
func spaced(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	if len(raw) == 0 {
		return "{}"
	}
	var b strings.Builder
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	writeSpaced(t, d, &b)
	return b.String()
}

func writeSpaced(t *testing.T, d *json.Decoder, b *strings.Builder) {
	t.Helper()
	tok, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch v := tok.(type) {
	case json.Delim:
		b.WriteRune(rune(v))
		for first := true; d.More(); first = false {
			if !first {
				b.WriteString(", ")
			}
			if v == '{' {
				key, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString(asciiJSON(t, key.(string)) + ": ")
			}
			writeSpaced(t, d, b)
		}
		if end, err := d.Token(); err == nil {
			b.WriteRune(rune(end.(json.Delim)))
		}
	case string:
		b.WriteString(asciiJSON(t, v))
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprint(b, v)
	}
}

// wireCost is W: the compact tools array as sent, without _meta, by
// characters / 3.5.
func wireCost(t *testing.T, list json.RawMessage) int {
	t.Helper()
	bare := strings.ReplaceAll(string(list), `,"_meta":`+alwaysLoad, "")
	if !json.Valid([]byte(bare)) || strings.Contains(bare, "_meta") {
		t.Fatal("_meta cannot be left out: ", bare)
	}
	return int(math.Ceil(float64(utf8.RuneCountInString(bare)) / 3.5))
}

func split(t *testing.T, list json.RawMessage) (tools []json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(list, &tools); err != nil {
		t.Fatal(err)
	}
	return tools
}

// recordedServers reads the catalogues of the reference's figures.
func recordedServers(t *testing.T) map[string][]json.RawMessage {
	t.Helper()
	root := os.Getenv("TOOL_GUARDIAN_SHARED")
	if root == "" {
		root = "../../shared"
	}
	files, err := filepath.Glob(filepath.Join(root, "catalogs", "reference", "*.json"))
	if err != nil || len(files) != 7 {
		t.Skip("the seven recorded catalogues are not at " + root)
	}
	out := map[string][]json.RawMessage{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Name  string            `json:"name"`
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		out[doc.Name] = doc.Tools
	}
	return out
}

func newRouter(t testing.TB, o Options) *Router {
	t.Helper()
	if o.Config == nil {
		o.Config = &config.Config{}
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The formula here is the reference's: it gives the reference's figures.
func TestFunctionCostIsTheReferences(t *testing.T) {
	servers := recordedServers(t)
	for name, want := range map[string]int{"everything": 1610, "filesystem": 2500, "github": 5094, "memory": 1347, "n8n-mcp": 2826, "playwright": 5443} {
		if got := functionCost(t, servers[name]); got != want {
			t.Errorf("%s: F %d, want %d", name, got, want)
		}
	}
}

func TestCostOfTheToolList(t *testing.T) {
	none := newRouter(t, Options{}).tools
	if w, f := wireCost(t, none), functionCost(t, split(t, none)); w > 700 || f > 600 {
		t.Errorf("without a server: W %d (limit 1,100, aim with these tools 700), F %d (600)", w, f)
	} else {
		t.Logf("without a server: W %d, F %d", w, f)
	}
	servers := recordedServers(t)
	c := &config.Config{}
	for name := range servers {
		c.Servers = append(c.Servers, config.Server{Name: name, Description: strings.Repeat("what this server is for ", 4)})
	}
	seven := newRouter(t, Options{Config: c}).tools
	if grown := wireCost(t, seven) - wireCost(t, none); grown > 200 {
		t.Errorf("seven described servers add %d", grown)
	}
	for i := range c.Servers {
		c.Servers[i].Description = ""
	}
	plain := newRouter(t, Options{Config: c}).tools
	if grown := wireCost(t, plain) - wireCost(t, none); grown > 50 {
		t.Errorf("seven server names add %d, the limits leave 50", grown)
	}
}

func TestDefinitionsOfTheRouterTools(t *testing.T) {
	tools := split(t, newRouter(t, Options{}).tools)
	for i, want := range []string{listTool, searchTool, describeTool, callTool} {
		raw := tools[i]
		if name, _ := wire.GetString(raw, "name"); name != want {
			t.Errorf("tool %d is %s, want %s", i, name, want)
		}
		if got := string(wire.Get(raw, "_meta", "anthropic/alwaysLoad")); got != "true" {
			t.Errorf("%s: alwaysLoad is %q", want, got)
		}
		calls := want == callTool
		for hint, is := range map[string]bool{"readOnlyHint": !calls, "destructiveHint": calls, "idempotentHint": !calls, "openWorldHint": calls} {
			if got := string(wire.Get(raw, "annotations", hint)); got != fmt.Sprint(is) {
				t.Errorf("%s: %s is %s", want, hint, got)
			}
		}
		for p, err := range wire.Members(wire.Get(raw, "inputSchema", "properties")) {
			if err != nil {
				t.Fatal(err)
			}
			if wire.Get(p.Value, "type") == nil || wire.Get(p.Value, "description") == nil {
				t.Errorf("%s: parameter %s is not typed and explained", want, p.Key)
			}
		}
	}
}

func TestServersAreNamed(t *testing.T) {
	c := &config.Config{Servers: []config.Server{
		{Name: "files", Description: "Files\n of  the \"project\""}, {Name: "off", Disabled: true}, {Name: "router"},
		{Name: "hinted.by/last"}, {Name: "long", Description: strings.Repeat("å", 500)},
	}}
	r := newRouter(t, Options{Config: c, Hints: map[string]string{"hinted.by/last": "a hint", "files": "not this"}})
	text, _ := wire.GetString(split(t, r.tools)[0], "description")
	want := `Servers: files (Files of the "project"), router, hinted.by/last (a hint), long (` + strings.Repeat("å", hintChars-1) + `…).`
	if !strings.HasSuffix(text, want) {
		t.Errorf("description ends %q, want %q", text, want)
	}
}

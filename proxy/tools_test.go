package proxy

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"toolguardian/proxy/catalogue"
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

func toolsOf(t *testing.T, list json.RawMessage) (tools []json.RawMessage) {
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

// Two implementations of the reference's formula agree with each other and
// with the reference's figures.
func TestPriceIsTheReferences(t *testing.T) {
	servers := recordedServers(t)
	for name, want := range map[string]int{"everything": 1610, "filesystem": 2500, "github": 5094, "memory": 1347, "n8n-mcp": 2826, "playwright": 5443} {
		if got := functionCost(t, servers[name]); got != want {
			t.Errorf("%s: F %d, want %d", name, got, want)
		}
	}
	for name, tools := range servers {
		if got, want := catalogue.Price(tools), functionCost(t, tools); got != want {
			t.Errorf("%s: priced %d, costs %d", name, got, want)
		}
		for i, tool := range tools {
			if got, want := catalogue.Price(tools[i:i+1]), functionCost(t, tools[i:i+1]); got != want {
				t.Errorf("%s: priced %d, costs %d", tool, got, want)
			}
		}
	}
}

// theSeven are the reference's servers, with hints as their own tools give
// them after a first run.
func theSeven(t *testing.T) (plain, hinted []served) {
	t.Helper()
	servers := recordedServers(t)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		tools := catalogue.ReadTools(name, servers[name])
		plain = append(plain, served{name: name})
		hinted = append(hinted, served{name: name, hint: catalogue.Hint(name, tools.All(), hintChars)})
	}
	return plain, hinted
}

// The limits are A3's: six tools with the seven servers cost a model at most
// 750 tokens as functions and 1,000 as sent, 450 and 600 when terse.
func TestCostOfTheToolList(t *testing.T) {
	plain, hinted := theSeven(t)
	for _, tt := range []struct {
		name         string
		m            menu
		tools, w, f  int
		mustBeUnderW int // the hard limit
	}{
		{"no server", menu{spills: true}, 6, 1000, 750, 1100},
		{"the seven", menu{spills: true, servers: plain}, 6, 1000, 750, 1150},
		{"the seven, hinted", menu{spills: true, servers: hinted}, 6, 1000, 750, 1150},
		{"terse, no server", menu{spills: true, terse: true}, 5, 600, 450, 620},
		{"terse, the seven", menu{spills: true, terse: true, servers: hinted}, 5, 600, 450, 620},
	} {
		tt.m.servers = slices.Clone(tt.m.servers)
		list, err := tt.m.list()
		if err != nil {
			t.Fatal(err)
		}
		tools := toolsOf(t, list)
		w, f := wireCost(t, list), functionCost(t, tools)
		if len(tools) != tt.tools || w > tt.w || f > tt.f || w > tt.mustBeUnderW {
			t.Errorf("%s: %d tools, W %d (aim %d), F %d (aim %d)", tt.name, len(tools), w, tt.w, f, tt.f)
		}
		t.Logf("%s: %d tools, W %d, F %d", tt.name, len(tools), w, f)
	}
}

// menus are all ways the tools can be shown.
func menus() map[string]menu {
	s := []served{{name: "files", description: "read and write"}, {name: "git.hub", hint: "issue, list"}}
	skills := catalogue.FindSkills([]string{"testdata/skills"})
	return map[string]menu{
		"default": {servers: s, spills: true, skills: skills}, "terse": {servers: s, spills: true, skills: skills, terse: true},
		"bare": {}, "bare terse": {terse: true},
	}
}

func TestDefinitionsOfTheRouterTools(t *testing.T) {
	all := []string{listTool, searchTool, describeTool, callTool, groupsTool, retrieveTool, skillsTool, skillTool}
	offered := map[string][]string{"default": all, "terse": slices.Concat(all[:4], all[5:]), "bare": all[:5], "bare terse": all[:4]}
	for how, m := range menus() {
		list, err := m.list()
		if err != nil {
			t.Fatal(err)
		}
		if got := m.names(); !slices.Equal(got, offered[how]) {
			t.Errorf("%s: offers %v, want %v", how, got, offered[how])
		}
		for _, raw := range toolsOf(t, list) {
			name, _ := wire.GetString(raw, "name")
			t.Run(how+" "+name, func(t *testing.T) {
				checkAnnotations(t, raw, name == callTool)
				checkParameters(t, raw, m.terse)
			})
		}
	}
}

func checkAnnotations(t *testing.T, raw json.RawMessage, calls bool) {
	t.Helper()
	if got := string(wire.Get(raw, "_meta", "anthropic/alwaysLoad")); got != "true" {
		t.Errorf("alwaysLoad is %q", got)
	}
	if title, _ := wire.GetString(raw, "annotations", "title"); title == "" {
		t.Error("no title")
	}
	for hint, is := range map[string]bool{"readOnlyHint": !calls, "destructiveHint": calls, "idempotentHint": !calls, "openWorldHint": calls} {
		if got := string(wire.Get(raw, "annotations", hint)); got != fmt.Sprint(is) {
			t.Errorf("%s is %s", hint, got)
		}
	}
}

// checkParameters checks that each parameter is typed and explained exactly
// once: by itself, by its enum or by the tool's description. What the
// servers and skills are called does not count.
func checkParameters(t *testing.T, raw json.RawMessage, terse bool) {
	t.Helper()
	description, _ := wire.GetString(raw, "description")
	if terse && (utf8.RuneCountInString(description) > terseChars || strings.Count(description, ". ") > 0) {
		t.Errorf("not one sentence of %d characters: %s", terseChars, description)
	}
	own := description
	for _, list := range []string{"Servers:", "Skills:"} {
		own, _, _ = strings.Cut(own, list)
	}
	for p, err := range wire.Members(wire.Get(raw, "inputSchema", "properties")) {
		if err != nil {
			t.Fatal(err)
		}
		if wire.Get(p.Value, "type") == nil {
			t.Errorf("parameter %s has no type", p.Key)
		}
		times := 0
		for _, explained := range []bool{
			wire.Get(p.Value, "description") != nil, wire.Get(p.Value, "enum") != nil,
			regexp.MustCompile(`\b` + p.Key + `\b`).MatchString(own),
		} {
			if explained {
				times++
			}
		}
		if times != 1 {
			t.Errorf("parameter %s is explained %d times", p.Key, times)
		}
		if terse && wire.Get(p.Value, "description") != nil {
			t.Errorf("parameter %s has a description", p.Key)
		}
	}
}

// A reader who knows nothing learns from each tool which one comes next.
func TestTheNextToolIsNamed(t *testing.T) {
	for how, m := range menus() {
		for _, d := range m.definitions() {
			next := map[string]string{listTool: callTool, searchTool: callTool, describeTool: callTool, skillsTool: skillTool}[d.Name]
			if m.terse && d.Name == skillsTool || d.Name == listTool && m.terse {
				continue // a sentence has no room for it; the answers name it
			}
			if !strings.Contains(d.Description, next) {
				t.Errorf("%s: %s does not lead to %s: %s", how, d.Name, next, d.Description)
			}
		}
	}
}

func TestTerseListNamesServers(t *testing.T) {
	m := menu{terse: true}
	if got := m.terseList(); !strings.Contains(got, "none are configured") {
		t.Errorf("without a server: %s", got)
	}
	for range 40 {
		m.servers = append(m.servers, served{name: "server-å"})
		if got := m.terseList(); utf8.RuneCountInString(got) > terseChars {
			t.Fatalf("%d servers take %d characters: %s", len(m.servers), utf8.RuneCountInString(got), got)
		}
	}
	if got := m.terseList(); !strings.Contains(got, ": server-å, server-å") || !strings.HasSuffix(got, " more.") {
		t.Errorf("40 servers: %s", got)
	}
}

func TestServersAreNamed(t *testing.T) {
	c := &config.Config{Servers: []config.Server{
		{Name: "files", Description: "Files\n of  the \"project\""}, {Name: "off", Disabled: true}, {Name: "router"},
		{Name: "hinted.by/last"}, {Name: "long", Description: strings.Repeat("å", 500)},
	}}
	r := newRouter(t, Options{Config: c, Hints: map[string]string{"hinted.by/last": "a hint", "files": "not this"}})
	text, _ := wire.GetString(toolsOf(t, r.tools)[0], "description")
	want := `Servers: files (Files of the "project"), router, hinted.by/last (a hint), long (` + strings.Repeat("å", hintChars-1) + `…).`
	if !strings.HasSuffix(text, want) {
		t.Errorf("description ends %q, want %q", text, want)
	}
}

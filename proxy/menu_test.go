package proxy

import (
	"fmt"
	"strings"
	"testing"

	"toolguardian/proxy/wire"
)

// fullWorld is world with groups, skills and everything else that is off by
// itself.
func fullWorld(t *testing.T) Options {
	t.Helper()
	o := world(t).o
	o.SkillFolders = []string{"testdata/skills"}
	o.Config.ToolGuardian = []byte(`{"groups":{"reading":["files.read*"],"all of git":["git.hub"],"gone":["files.delete_file","dead.x"]}}`)
	o.Needs, o.Intent = true, true
	return o
}

// The tools that only report, and search with hints, over a real session.
func TestReportTranscript(t *testing.T) {
	c := connect(t, newRouter(t, fullWorld(t)), latest)
	var b strings.Builder
	for _, step := range [][2]string{{groupsTool, `{}`}, {skillsTool, `{}`}, {skillTool, `{"name":"release"}`}, {skillTool, `{"name":"releases"}`},
		{skillTool, `{"name":"../release"}`}, {skillTool, `{"query":"release"}`}, {skillTool, `{"nmae":"release"}`}, {skillTool, `{"name":5}`},
		{searchTool, `{"query":"search files"}`}} {
		result := c.tool(step[0], step[1])
		fmt.Fprintf(&b, "> %s %s\n", step[0], step[1])
		if string(wire.Get(result, "isError")) == "true" {
			b.WriteString("(isError)\n")
		}
		b.WriteString(strings.Join(texts(t, result), "\n--\n") + "\n\n")
	}
	golden(t, "reports.txt", b.String())
	golden(t, "tools_list_full.json", string(c.request("tools/list", `{}`).Result)+"\n")
}

func TestTerseTranscript(t *testing.T) {
	o := fullWorld(t)
	settings := map[string]string{"TOOL_GUARDIAN_PRESET": "small"}
	if err := o.ReadSettings(func(name string) (string, bool) { v, ok := settings[name]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	c := connect(t, newRouter(t, o), latest)
	golden(t, "tools_list_terse.json", string(c.request("tools/list", `{}`).Result)+"\n")
	if text := joined(t, c.tool(listTool, `{"server":"files"}`)); !strings.Contains(text, "Read the complete contents of a...") {
		t.Errorf("six words of a description: %s", text)
	}
}

// What is not offered is unknown: there is nothing that could answer.
func TestToolsThatAreNotOffered(t *testing.T) {
	c := connect(t, world(t), latest)
	for _, tool := range []string{skillsTool, skillTool, retrieveTool} {
		m := c.request("tools/call", `{"name":"`+tool+`","arguments":{}}`)
		if !strings.Contains(string(m.Err), "-32602") || strings.Contains(string(m.Result), "content") {
			t.Errorf("%s: %s", tool, m.Raw)
		}
	}
}

func TestCatalogueSettings(t *testing.T) {
	for _, tt := range []struct {
		settings        map[string]string
		words, chars    int
		terse, problems bool
	}{
		{map[string]string{}, 0, 0, false, false},
		{map[string]string{"TOOL_GUARDIAN_PRESET": "small"}, 6, 1500, true, false},
		{map[string]string{"TOOL_GUARDIAN_PRESET": "small", "TOOL_GUARDIAN_TERSE": "0"}, 6, 1500, false, false},
		{map[string]string{"TOOL_GUARDIAN_PRESET": "small", "TOOL_GUARDIAN_CATALOGUE_CHARS": "0", "TOOL_GUARDIAN_DESC_WORDS": "20"}, 20, 0, true, false},
		{map[string]string{"TOOL_GUARDIAN_TERSE": "1"}, 0, 0, true, false},
		{map[string]string{"TOOL_GUARDIAN_PRESET": "tiny"}, 0, 0, false, true},
		{map[string]string{"TOOL_GUARDIAN_CATALOGUE_CHARS": "-1"}, 0, 0, false, true},
	} {
		var o Options
		err := o.ReadSettings(func(name string) (string, bool) { v, ok := tt.settings[name]; return v, ok })
		if (err != nil) != tt.problems || !tt.problems && (o.DescWords != tt.words || o.MaxChars != tt.chars || o.Terse != tt.terse) {
			t.Errorf("%v: words %d, chars %d, terse %v (%v)", tt.settings, o.DescWords, o.MaxChars, o.Terse, err)
		}
	}
}

func TestBadGroupsAreRefused(t *testing.T) {
	o := fullWorld(t)
	o.Config.ToolGuardian = []byte(`{"groups":{"a":"files"}}`)
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "toolGuardian.groups must be") {
		t.Errorf("error %v", err)
	}
}

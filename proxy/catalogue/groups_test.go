package catalogue

import (
	"encoding/json"
	"strings"
	"testing"
)

func groupText(t *testing.T, c *Catalogue, config string) string {
	t.Helper()
	groups, err := ParseGroups(json.RawMessage(config))
	if err != nil {
		t.Fatal(err)
	}
	text, next := c.ListGroups(groups, raws(`{"name":"own"}`))
	return text + "\nNEXT STEP: " + next + "\n\n"
}

func TestGroups(t *testing.T) {
	servers := append([]Server{files(), odd()}, troubled()...)
	hidden := func(t Tool) bool { return t.Name != "write_file" }
	var b strings.Builder
	for _, config := range []string{``, `{}`,
		`{"reading":["files.read*","files.listDirectories"],"odd":["odd.one"],"twice":["files.read_text_file","odd.one....","odd.one.a.b/c:d"]}`,
		`{"other":["files"],"none":["nowhere","files.zzz","files.zzz*","*",""],"empty":[]}`,
		`{"other":[],"ungrouped":[],"ungrouped_tools":[],"other_2":[]}`,
	} {
		b.WriteString("> " + config + "\n" + groupText(t, New(servers, Options{}), config))
	}
	b.WriteString("> with a tool hidden\n" + groupText(t, New(servers, Options{Visible: hidden}), `{"files":["files","files.write_file"]}`))
	b.WriteString("> no servers\n" + groupText(t, New(nil, Options{}), ``))
	golden(t, "groups.txt", b.String())
	if strings.Contains(groupText(t, New([]Server{files()}, Options{Visible: hidden}), ``), "3 tools") {
		t.Error("a hidden tool is priced")
	}
}

func TestGroupsThatCannotBeRead(t *testing.T) {
	for _, config := range []string{`[]`, `{"a":5}`, `{"a":[1]}`, `{"a":"files"}`, `{"":["files"]}`, `{`, `5`} {
		if _, err := ParseGroups(json.RawMessage(config)); err == nil || !strings.Contains(err.Error(), "selectors") {
			t.Errorf("%s: error %v", config, err)
		}
	}
	groups, err := ParseGroups(json.RawMessage(`{"z":["a"],"a":[]}`))
	if err != nil || len(groups) != 2 || groups[0].Name != "z" {
		t.Errorf("the order of the file is not kept: %v, %v", groups, err)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 20005: "20,005", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

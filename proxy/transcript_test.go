package proxy

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolguardian/policy"
	"toolguardian/proxy/backend"
	"toolguardian/proxy/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// world is a router before backends of every sort.
func world(t *testing.T) *Router {
	t.Helper()
	files := newMemory(nil,
		`{"name":"read_text_file","description":"Read the complete contents of a file from the file system as text","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"tail":{"type":"number"}},"required":["path"]},"annotations":{"readOnlyHint":true}}`,
		`{"name":"search_files","description":"Find files by pattern","inputSchema":{"type":"object","properties":{"paths":{"type":"array"},"kind":{"enum":["file","folder"]}},"required":["paths"]}}`,
		`{"name":"delete_file","description":"Delete a file","inputSchema":{"type":"object"}}`,
		`{"description":"nameless"}`)
	flagged := newMemory(nil, echoTool)
	flagged.status.Flags = []string{"tools/list gave a cursor twice; what was read is kept"}
	dead := newMemory(nil)
	dead.status = backend.Status{State: backend.Unknown, StderrTail: []string{"no such folder: /nowhere"},
		Err: &backend.StartError{Server: "dead", Step: "initialize", Err: errors.New("ended"), Exit: &backend.Exit{Code: 1}}}
	o := memories(map[string]*memory{"files": files, "git.hub": flagged, "dead": dead})
	o.Config.Servers = append(o.Config.Servers, config.Server{Name: "remote", Problem: "url servers are not supported yet"})
	p, err := policy.Parse([]byte(`{"servers":{"*":{"deny":["^delete_"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	o.Policy = p
	return newRouter(t, o)
}

// transcripts are the arguments each tool is called with, in turn.
var transcripts = map[string][]string{
	listTool: {`{}`, `{"server":"files"}`, `{"query":"git.hub"}`, `{"server":"dead"}`, `{"server":"remote"}`, `{"server":"fils"}`, `{"server":7}`},
	searchTool: {`{"query":"read a file"}`, `{"query":"find","server":"files","limit":"1"}`, `{"query":"delete"}`, `{"query":"nothing like it"}`,
		`{"query":"x","server":"none"}`, `{"name":"files"}`, `{"query":"x","limit":"lots"}`},
	describeTool: {`{"server":"files","tool":"read_text_file"}`, `{"server":"files","tool":"search_files","detail":"full"}`, `{"name":"files","tool":"readTextFile"}`,
		`{"server":"files","tool":"delete_file"}`, `{"server":"dead","tool":"x"}`, `{"server":"files","tool":"search_files","detail":"all"}`},
	callTool: {`{"server":"git.hub","tool":"echo","args":{"text":"hi"}}`, `{"server":"git.hub","tool":"echo","args":"{\"text\": \"hi\"}"}`,
		`{"server":"git.hub","tool":"echo","text":"hi"}`, `{"server":"git.hub","tool":"echo"}`, `{"server":"files","tool":"search_files","args":{"paths":"[\"/a\"]"}}`,
		`{"server":"git.hub","tool":"echo","args":"{text}"}`, `{"server":"git.hub","tool":"echo","txt":"hi"}`, `{"server":"files","tool":"delete_file"}`,
		`{"server":"files","tool":"echo"}`, `{"server":"dead","tool":"x"}`, `{"tool":"echo"}`, `{}`},
}

func TestTranscripts(t *testing.T) {
	for tool, steps := range transcripts {
		c := connect(t, world(t), latest)
		var b strings.Builder
		for _, arguments := range steps {
			fmt.Fprintf(&b, "> %s\n", arguments)
			result := c.tool(tool, arguments)
			var failed struct{ IsError bool }
			if err := json.Unmarshal(result, &failed); err != nil {
				t.Fatal(err)
			}
			if failed.IsError {
				b.WriteString("(isError)\n")
			}
			b.WriteString(strings.Join(texts(t, result), "\n--\n") + "\n\n")
		}
		golden(t, tool+".txt", b.String())
	}
	golden(t, "tools_list.json", string(connect(t, world(t), latest).request("tools/list", `{}`).Result)+"\n")
}

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

func TestUnknownRouterTool(t *testing.T) {
	m := connect(t, world(t), latest).request("tools/call", `{"name":"read_text_file","arguments":{}}`)
	if !strings.Contains(string(m.Err), `-32602`) || !strings.Contains(string(m.Err), "call_tool") {
		t.Errorf("answered %s", m.Raw)
	}
}

package shape

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/proxy/wire"
)

var update = flag.Bool("update", false, "write testdata/results.golden anew")

// sharedResults are the recorded results of real servers, by file.
func sharedResults(t *testing.T) map[string][]byte {
	t.Helper()
	root := os.Getenv("TOOL_GUARDIAN_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	files, err := filepath.Glob(filepath.Join(root, "results", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("no recorded results at " + root)
	}
	list := map[string][]byte{}
	for _, f := range files {
		if list[strings.TrimSuffix(filepath.Base(f), ".json")], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// Each real result, under its own tool and under one that is not exempt: which
// rules, and how many characters of how many. -update writes the file anew.
func TestRealResults(t *testing.T) {
	var got strings.Builder
	l := ladder(t)
	results := sharedResults(t)
	for _, name := range keyNamesOf(results) {
		raw := wire.Get(results[name], "result")
		if raw == nil {
			continue
		}
		own, _ := wire.GetString(results[name], "request", "params", "name")
		if own == "" {
			own, _ = wire.GetString(results[name], "request", "name")
		}
		for _, tool := range []string{own, "any"} {
			var store archive
			a := l.Apply(Call{Tool: tool}, raw, store.keep)
			fmt.Fprintf(&got, "%s %s: %v %d of %d, kept %d, bytes %d of %d\n", name, tool, a.Rules, a.Shown, a.Of, len(store.kept), len(a.Raw), len(raw))
			checkApplied(t, name, raw, a, store)
		}
	}
	golden := filepath.Join("testdata", "results.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
}

func keyNamesOf(results map[string][]byte) []string {
	all := map[string]any{}
	for name := range results {
		all[name] = nil
	}
	return keyNames(all)
}

// checkApplied is what holds for every real result.
func checkApplied(t *testing.T, name string, raw json.RawMessage, a Applied, store archive) {
	t.Helper()
	if !a.Changed {
		if &a.Raw[0] != &raw[0] {
			t.Errorf("%s: not the same bytes", name)
		}
		return
	}
	if len(a.Raw) >= len(raw) || !json.Valid(a.Raw) {
		t.Errorf("%s: %d bytes became %d, valid %v", name, len(raw), len(a.Raw), json.Valid(a.Raw))
	}
	if wire.Get(a.Raw, "structuredContent") != nil {
		t.Errorf("%s: the structure is still there", name)
	}
	if string(wire.Get(a.Raw, "isError")) != string(wire.Get(raw, "isError")) {
		t.Errorf("%s: isError changed", name)
	}
	if len(store.kept) != 1 || string(store.kept[0].Raw) != string(raw) {
		t.Errorf("%s: the whole result is not kept", name)
	}
	before, err1 := wire.Elements(wire.Get(raw, "content"))
	after, err2 := wire.Elements(wire.Get(a.Raw, "content"))
	if err1 != nil || err2 != nil || len(before) != len(after) {
		t.Fatalf("%s: %d blocks became %d", name, len(before), len(after))
	}
	for i := range before {
		if kind, _ := wire.GetString(before[i], "type"); kind != "text" && string(before[i]) != string(after[i]) {
			t.Errorf("%s: block %d changed", name, i)
		}
	}
}

// Every change of the real diff is in what is shown of it.
func TestRealDiffKeepsItsChanges(t *testing.T) {
	file, ok := sharedResults(t)["desktop-commander__git-diff"]
	if !ok {
		t.Skip("the recorded diff is not there")
	}
	blocks, err := wire.Elements(wire.Get(file, "result", "content"))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := wire.GetString(blocks[0], "text")
	r := checkSound(t, ladder(t), "start_process", text, false)
	if r.Rule != RuleDiff {
		t.Fatalf("rule %s", r.Rule)
	}
	changes, rest := 0, r.Text
	for line := range strings.Lines(text) {
		if line[0] != '+' && line[0] != '-' && !strings.HasPrefix(line, "@@") && !strings.HasPrefix(line, "diff ") && !strings.HasPrefix(line, "Only in") {
			continue
		}
		changes++
		at := strings.Index(rest, line[:min(len(line), 2000)])
		if at < 0 {
			t.Fatalf("%.200q is missing, or in another order", line)
		}
		rest = rest[at:]
	}
	if changes < 100 {
		t.Errorf("only %d changes were looked for", changes)
	}
}

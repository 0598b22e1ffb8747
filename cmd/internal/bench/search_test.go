package bench_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"toolguardian/cmd/internal/bench"
)

// shared is the folder of the recorded catalogues; the test is skipped where
// it is absent.
func shared(t *testing.T) string {
	t.Helper()
	root := os.Getenv("TOOL_GUARDIAN_SHARED")
	if root == "" {
		root = "../../../../shared"
	}
	dir := filepath.Join(root, "catalogs")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no recorded catalogues: ", err)
	}
	return dir
}

func TestSearch(t *testing.T) {
	r, err := bench.Search(bench.SearchOptions{Catalogs: shared(t)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ servers, tools int }{{7, 95}, {22, 700}} {
		s := r.Sets[i]
		of := 0
		for _, k := range s.Kinds {
			of += k.Of
		}
		if s.Servers != want.servers || s.Tools < want.tools || of != 40 {
			t.Errorf("%s: %d servers, %d tools, %d queries", s.Name, s.Servers, s.Tools, of)
		}
		if s.Recall < 75 {
			t.Errorf("%s: recall@3 is %.1f %%", s.Name, s.Recall)
		}
	}
	again, err := bench.Search(bench.SearchOptions{Catalogs: shared(t)})
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Errorf("the same queries gave another report (%v)", err)
	}
	checkReport(t, t.TempDir(), r, r.Aims, 2)
}

// A catalogue of our own shows what counts as answered.
func TestSearchOfAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("notes.json", `{"name":"notes","tools":[{"name":"add_note"}],"rawPages":[{"tools":[{"name":"drop_note"}]}]}`)
	good := write("q.txt", "# ours\nsave a memo => notes.add_note\nfly\n[odd]\ndrop_note => notes.add_note\nadd_note\n")
	r, err := bench.Search(bench.SearchOptions{Catalogs: dir, Queries: good})
	if err != nil {
		t.Fatal(err)
	}
	s := r.Sets[0]
	if s.Recall != 50 || !reflect.DeepEqual(s.Kinds, []bench.QueryCount{{Kind: "queries", Hits: 2, Of: 2}, {Kind: "odd", Hits: 0, Of: 2}}) || len(s.Missed) != 2 {
		t.Errorf("report %+v", s)
	}
	for text, want := range map[string]string{"x => notes.none": "in no catalogue", "x =>": "write QUERY", "# nothing": "no queries"} {
		if _, err := bench.Search(bench.SearchOptions{Catalogs: dir, Queries: write("bad.txt", text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := bench.Search(bench.SearchOptions{Catalogs: filepath.Join(dir, "none")}); err == nil || !strings.Contains(err.Error(), "--catalogs") {
		t.Errorf("without catalogues: %v", err)
	}
}

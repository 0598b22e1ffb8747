package bench_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/cmd/internal/bench"
)

func TestTokens(t *testing.T) {
	catalogs, dir := t.TempDir(), t.TempDir()
	for name, tools := range map[string]string{
		"one": `[{"name": "alpha", "outputSchema": {"type":"object"}}]`,
		"two": `[{"name":"bravo","description":"é"},{"name":"charlie","inputSchema":{"type":"object"}}]`,
	} {
		if err := os.WriteFile(filepath.Join(catalogs, name+".json"), []byte(`{"name":"`+name+`","tools":`+tools+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := bench.Tokens(t.Context(), bench.TokensOptions{Exe: self(t), Catalogs: catalogs, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := []bench.ServerTokens{{Name: "one", Tools: 1, Functions: 26, Whole: 15}, {Name: "two", Tools: 2, Functions: 59, Whole: 25}}
	if len(r.Servers) != 2 || r.Servers[0] != want[0] || r.Servers[1] != want[1] {
		t.Errorf("servers %+v, want %+v", r.Servers, want)
	}
	if r.Total.Tools != 3 || r.Total.Functions != 85 || r.Total.Whole != 40 {
		t.Errorf("total %+v", r.Total)
	}
	// What the servers said of themselves in the first run is shown in the second.
	first, second, terse := r.Router[1], r.Router[2], r.Router[4]
	if first.Sent >= second.Sent || terse.Sent >= first.Sent || terse.Tools >= first.Tools {
		t.Errorf("the router's own: %+v", r.Router)
	}
	for _, c := range r.Router {
		if c.Functions <= 0 || c.Sent <= c.Functions {
			t.Errorf("%s: %+v; annotations cost nothing?", c.Name, c)
		}
	}
	checkReport(t, dir, r, r.Aims, 2*len(r.Router))
}

// The figures of the reference's catalogues, and our limits beside them.
func TestTokensOfTheReference(t *testing.T) {
	r, err := bench.Tokens(t.Context(), bench.TokensOptions{Exe: self(t), Catalogs: filepath.Join(shared(t), "reference"), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int{"everything": 1610, "filesystem": 2500, "github": 5094, "memory": 1347, "n8n-mcp": 2826, "playwright": 5443}
	for _, s := range r.Servers {
		if want, ok := known[s.Name]; ok && s.Functions != want {
			t.Errorf("%s: %d tokens, the reference has %d", s.Name, s.Functions, want)
		}
	}
	for _, a := range r.Aims {
		if !a.Met {
			t.Error(a)
		}
	}
}

func TestTokensThatCannotBeMeasured(t *testing.T) {
	dir := t.TempDir()
	if _, err := bench.Tokens(t.Context(), bench.TokensOptions{Exe: self(t), Catalogs: dir}); err == nil || !strings.Contains(err.Error(), "--catalogs") {
		t.Errorf("without catalogues: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(`{"name":"a","tools":[{"name":"x"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bench.Tokens(t.Context(), bench.TokensOptions{Exe: "/bin/false", Catalogs: dir, Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no server") {
		t.Errorf("a router that ends: %v", err)
	}
}

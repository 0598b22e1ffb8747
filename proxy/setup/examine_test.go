package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/proxy/config"
)

// examined loads a config with a .env beside it and examines its one server.
func examined(t *testing.T, text, dotenv string, environ ...string) []Finding {
	t.Helper()
	dir := t.TempDir()
	for name, b := range map[string]string{"mcp.json": text, ".env": dotenv} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]os.FileMode{"prog": 0o700, "plain": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(config.Options{Flag: filepath.Join(dir, "mcp.json"), Cwd: dir, Home: dir, Environ: append(environ, "PATH="+dir)})
	if err != nil {
		t.Fatal(err)
	}
	return Examine(c, c.Servers[0])
}

func TestExamine(t *testing.T) {
	for _, c := range []struct {
		name, text, dotenv string
		environ            []string
		weight             Weight // "": nothing is found
		says, fix          string
	}{
		{name: "well", text: `{"command":"prog"}`},
		{name: "not on PATH", text: `{"command":"npx"}`, weight: Problem, says: "npx is not on its PATH", fix: "install Node.js"},
		{name: "unknown program", text: `{"command":"nosuch"}`, weight: Problem, says: "nosuch is not on its PATH", fix: "full path"},
		{name: "PATH of its own", text: `{"command":"prog","env":{"PATH":"/nowhere"}}`, weight: Problem, says: "not on its PATH", fix: "full path"},
		{name: "no such path", text: `{"command":"/nowhere/prog"}`, weight: Problem, says: "/nowhere/prog cannot be run", fix: `correct the path in "command"`},
		{name: "not executable", text: `{"command":"plain"}`, weight: Problem, says: "plain is not on its PATH", fix: "full path"},
		{name: "no folder", text: `{"command":"prog","cwd":"nowhere"}`, weight: Problem, says: "nowhere is not there", fix: `"cwd"`},
		{name: "unset", text: `{"command":"prog","args":["${TOKEN_A}"]}`, weight: Problem, says: "nothing sets: TOKEN_A", fix: "TOKEN_A=…"},
		{name: "perhaps meant so", text: `{"command":"prog","args":["^x$TOKEN_A"]}`, weight: Note, says: "nothing sets: TOKEN_A", fix: "TOKEN_A=…"},
		{name: "unpassed", text: `{"command":"prog"}`, dotenv: "KEY_A=1\nKEY_B=2\n", weight: Note, says: "KEY_A, KEY_B", fix: `"envPass": ["KEY_A", "KEY_B"]`},
		{name: "passed", text: `{"command":"prog","envPass":["KEY_*"]}`, dotenv: "KEY_A=1\n"},
		{name: "used", text: `{"command":"prog","env":{"K":"${KEY_A}"}}`, dotenv: "KEY_A=1\n"},
		{name: "dropped", text: `{"command":"prog"}`, environ: []string{"npm_config__authToken=x"}, weight: Note, says: "hold a login: npm_config__authToken", fix: `"envPass": ["npm_config__authToken"]`},
		{name: "foreign", text: `{"command":"prog","args":["${input:key}"]}`, weight: Problem, says: "${input:key} is not supported", fix: "write ${NAME}"},
		{name: "neither", text: `{}`, weight: Problem, says: `neither "command" nor "url"`, fix: `correct the entry "s"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := examined(t, `{"mcpServers":{"s":`+c.text+`}}`, c.dotenv, c.environ...)
			if c.weight == "" {
				if len(found) > 0 {
					t.Errorf("found %+v", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("found %+v", found)
			}
			f := found[0]
			if f.Weight != c.weight || f.Server != "s" || !strings.Contains(f.Text, c.says) || !strings.Contains(f.Fix, c.fix) {
				t.Errorf("found %+v, want a %s with %q and the fix %q", f, c.weight, c.says, c.fix)
			}
		})
	}
}

func TestEveryDepartureHasAFix(t *testing.T) {
	for _, f := range Departures() {
		if f.Text == "" || f.Fix == "" || f.Weight != Note {
			t.Errorf("%+v", f)
		}
	}
}

package setup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// filesOf lists the files of one client.
func filesOf(p Place, key string) (files []string) {
	if p.Getenv == nil {
		p.Getenv = func(string) string { return "" }
	}
	for _, s := range Sources(p) {
		if s.Key == key && !slices.Contains(files, s.File) {
			files = append(files, s.File)
		}
	}
	return files
}

func TestSourcesOfThreeSystems(t *testing.T) {
	vars := func(pairs map[string]string) func(string) string { return func(n string) string { return pairs[n] } }
	linux := Place{GOOS: "linux", Home: "/h", Cwd: "/p"}
	mac := Place{GOOS: "darwin", Home: "/h", Cwd: "/p"}
	windows := Place{GOOS: "windows", Home: "/h", Cwd: "/p", Getenv: vars(map[string]string{"APPDATA": "/h/roaming", "XDG_CONFIG_HOME": "/x"})}
	xdg := Place{GOOS: "linux", Home: "/h", Cwd: "/p", Getenv: vars(map[string]string{"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c"})}
	for _, c := range []struct {
		p    Place
		key  string
		want []string
	}{
		{linux, "claude-desktop", []string{"/h/.config/Claude/claude_desktop_config.json"}},
		{mac, "claude-desktop", []string{"/h/Library/Application Support/Claude/claude_desktop_config.json"}},
		{windows, "claude-desktop", []string{"/h/roaming/Claude/claude_desktop_config.json"}},
		{Place{GOOS: "windows", Home: "/h"}, "claude-desktop", []string{"/h/AppData/Roaming/Claude/claude_desktop_config.json"}},
		{xdg, "claude-desktop", []string{"/x/Claude/claude_desktop_config.json"}},
		{mac, "claude-code", []string{"/h/.claude.json"}},
		{mac, "cursor", []string{"/h/.cursor/mcp.json"}},
		{mac, "windsurf", []string{"/h/.codeium/windsurf/mcp_config.json"}},
		{mac, "vscode", []string{"/h/Library/Application Support/Code/User/mcp.json", "/h/Library/Application Support/Code/User/settings.json"}},
		{windows, "vscode", []string{"/h/roaming/Code/User/mcp.json", "/h/roaming/Code/User/settings.json"}},
		{mac, "cline", []string{"/h/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"}},
		{mac, "gemini", []string{"/h/.gemini/settings.json"}},
		{windows, "opencode", []string{"/h/.config/opencode/opencode.json", "/h/.config/opencode/opencode.jsonc"}},
		{xdg, "opencode", []string{"/x/opencode/opencode.json", "/x/opencode/opencode.jsonc"}},
		{mac, "codex", []string{"/h/.codex/config.toml"}},
		{xdg, "codex", []string{"/c/config.toml"}},
		{mac, "continue", []string{"/h/.continue/config.yaml"}},
		{mac, "project", []string{"/p/.mcp.json", "/p/.vscode/mcp.json"}},
	} {
		got := filesOf(c.p, c.key)
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s on %s: %s", c.key, c.p.GOOS, d)
		}
	}
}

func TestConvert(t *testing.T) {
	for _, c := range []struct{ raw, entry, skip string }{
		{`{"command":"c"}`, `{"command":"c"}`, ""},
		{`{"command":["c","-a"],"args":["b"]}`, `{"command":"c","args":["-a","b"]}`, ""},
		{`{"command":"<c>","env":{"N":1.50,"B":false}}`, `{"command":"<c>","env":{"B":"false","N":"1.50"}}`, ""},
		{`{"url":"https://a/sse","type":"sse"}`, `{"type":"sse","url":"https://a/sse"}`, ""},
		{`{"url":"https://a","bearer_token_env_var":"T"}`, `{"url":"https://a","headers":{"Authorization":"Bearer ${T}"}}`, ""},
		{`{"url":"https://a","env_http_headers":{"X-Key":"K"},"requestOptions":{"headers":{"Y":"1"}}}`, `{"url":"https://a","headers":{"X-Key":"${K}","Y":"1"}}`, ""},
		{`{"command":"c","enabled":true}`, `{"command":"c"}`, ""},
		{`{"command":{}}`, "", "its command is neither a text nor a list"},
		{`{"command":[]}`, "", "its command is neither a text nor a list"},
	} {
		got := foreign{"s", []byte(c.raw)}.convert()
		if string(got.Entry) != c.entry || got.Skip != c.skip {
			t.Errorf("%s became %s (%s)", c.raw, got.Entry, got.Skip)
		}
	}
	if got := (foreign{"s", []byte(`{"command":"c","env":{"A":[1]}}`)}).convert(); got.Skip == "" {
		t.Errorf("a list as a variable's value was taken: %s", got.Entry)
	}
}

// Whatever a client's file holds: an error, or servers that an edit can take or
// refuse.
func FuzzDiscover(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"c","args":[1,"x"]}},"mcp":{"b":{"command":["x"]}}}`), uint8(0))
	f.Add([]byte("[mcp_servers.a]\ncommand = 'c'\n"), uint8(1))
	f.Add([]byte("mcpServers:\n  - name: a\n    command: c\n"), uint8(2))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		file := filepath.Join(dir, "f"+[]string{".json", ".toml", ".yaml"}[kind%3])
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, s := range FileSource(file) {
			found, err := Discover(s)
			if err != nil {
				continue
			}
			for _, g := range found {
				if g.Skip != "" {
					continue
				}
				if _, err := (Text{File: "f"}).Add(g.Name, g.Entry, false); err != nil && g.Name != "" {
					t.Errorf("%q from %q cannot be written: %v", g.Entry, b, err)
				}
			}
		}
	})
}

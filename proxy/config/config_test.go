package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolguardian/proxy/config"
)

// place is a folder tree with a project, a product home and an environment.
type place struct {
	t   *testing.T
	dir string
	opt config.Options
}

func newPlace(t *testing.T) *place {
	p := &place{t: t, dir: t.TempDir()}
	p.opt = config.Options{Cwd: p.path("work"), Home: p.path("home"), GOOS: "linux", Self: os.Args[0]}
	for _, d := range []string{"work", "home"} {
		if err := os.MkdirAll(p.path(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) load() *config.Config {
	p.t.Helper()
	c, err := config.Load(p.opt)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// only loads a file with one server and returns it.
func (p *place) only(entry string) config.Server {
	p.t.Helper()
	p.write("home/mcp.json", `{"mcpServers":{"s":`+entry+`}}`)
	c := p.load()
	if len(c.Servers) != 1 {
		p.t.Fatalf("%d servers", len(c.Servers))
	}
	return c.Servers[0]
}

func serverNames(c *config.Config) string {
	var out []string
	for _, s := range c.Servers {
		out = append(out, s.Name)
	}
	return strings.Join(out, " ")
}

const one = `{"mcpServers":{"NAME":{"command":"x"}}}`

func named(name string) string { return strings.Replace(one, "NAME", name, 1) }

// D1: the order of search, and what needs consent.
func TestSearchOrder(t *testing.T) {
	cases := []struct {
		name  string
		files []string
		flag  string
		env   []string
		want  string
		note  string
	}{
		{"nothing", nil, "", nil, "", ""},
		{"home", []string{"home/mcp.json"}, "", nil, "home/mcp.json", ""},
		{"flag before all", []string{"a.json", "b.json", "home/mcp.json"}, "../a.json", []string{"TOOL_GUARDIAN_CONFIG=../b.json"}, "a.json", ""},
		{"variable before home", []string{"b.json", "home/mcp.json"}, "", []string{"TOOL_GUARDIAN_CONFIG=../b.json"}, "b.json", ""},
		{"project without consent", []string{"work/mcp.json", "home/mcp.json"}, "", nil, "home/mcp.json", "./mcp.json found but NOT loaded"},
		{"hidden project file without consent", []string{"work/.mcp.json"}, "", nil, "", "./.mcp.json found but NOT loaded"},
		{"project with consent", []string{"work/mcp.json", "home/mcp.json"}, "", []string{"TOOL_GUARDIAN_PROJECT_CONFIG=1"}, "work/mcp.json", ""},
		{"consent that is none", []string{"work/mcp.json"}, "", []string{"TOOL_GUARDIAN_PROJECT_CONFIG=0"}, "", "NOT loaded"},
		{"project by name", []string{"work/mcp.json"}, "mcp.json", nil, "work/mcp.json", ""},
		{"the reference's json is no config", []string{"work/tool-guardian.json", "home/tool-guardian.json"}, "", nil, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			for _, f := range c.files {
				p.write(f, named(strings.ReplaceAll(f, "/", "-")))
			}
			p.opt.Flag, p.opt.Environ = c.flag, c.env
			got := p.load()
			want := ""
			if c.want != "" {
				want = p.path(c.want)
			}
			if got.File != want || serverNames(got) != strings.ReplaceAll(c.want, "/", "-") {
				t.Errorf("file %q with servers %q, want %q", got.File, serverNames(got), want)
			}
			notes := strings.Join(got.Notes, "\n")
			if c.note == "" && notes != "" || !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

func TestNamedFileMissing(t *testing.T) {
	for name, set := range map[string]func(*config.Options){
		"--config":              func(o *config.Options) { o.Flag = "gone.json" },
		"$TOOL_GUARDIAN_CONFIG": func(o *config.Options) { o.Environ = []string{"TOOL_GUARDIAN_CONFIG=gone.json"} },
		"--env-file":            func(o *config.Options) { o.EnvFile = "gone.env" },
		"$TOOL_GUARDIAN_ENV":    func(o *config.Options) { o.Environ = []string{"TOOL_GUARDIAN_ENV=gone.env"} },
	} {
		p := newPlace(t)
		p.write("home/mcp.json", named("home"))
		set(&p.opt)
		_, err := config.Load(p.opt)
		if !errors.Is(err, config.ErrMissing) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "gone.") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOwnEntries(t *testing.T) {
	self := filepath.Join(t.TempDir(), "renamed")
	if err := os.Symlink(os.Args[0], self); err != nil {
		t.Fatal(err)
	}
	own := []string{
		`{"command":"tool-guardian"}`, `{"command":"/opt/bin/tool-guardian","args":["--config","x"]}`,
		`{"command":"C:\\bin\\Tool-Guardian.exe"}`, `{"command":"` + self + `"}`,
		`{"command":"uvx","args":["tool-guardian"]}`, `{"command":"npx","args":["-y","tool-guardian@1.2.0"]}`,
		`{"command":"uv","args":["tool","run","--from","git+x","tool-guardian"]}`,
		`{"command":"python3","args":["-m","tool_guardian"]}`, `{"command":"pipx","args":["run","tool-guardian==0.9"]}`,
	}
	others := []string{
		`{"command":"npx","args":["-y","server-filesystem","tool-guardian"]}`, `{"command":"cat","args":["tool-guardian"]}`,
		`{"command":"tool-guardian","args":["files","x"]}`, `{"command":"tool-guardian-extra"}`, `{"command":"uvx","args":["--with","tool-guardian","other"]}`, `{"url":"http://x/tool-guardian"}`,
	}
	for _, e := range own {
		p := newPlace(t)
		p.write("home/mcp.json", `{"mcpServers":{"me":`+e+`,"other":{"command":"x"}}}`)
		c := p.load()
		if serverNames(c) != "other" || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], `"me"`) {
			t.Errorf("%s: servers %q, notes %q", e, serverNames(c), c.Notes)
		}
	}
	for _, e := range others {
		p := newPlace(t)
		p.write("home/mcp.json", `{"mcpServers":{"it":`+e+`}}`)
		if got := serverNames(p.load()); got != "it" {
			t.Errorf("%s was taken for ourselves", e)
		}
	}
}

// A client's own file that holds only us is no config of ours.
func TestFileWithOnlyOurselvesIsSkipped(t *testing.T) {
	p := newPlace(t)
	p.write("work/.mcp.json", `{"mcpServers":{"tg":{"command":"tool-guardian"}}}`)
	p.write("home/mcp.json", named("home"))
	for _, env := range [][]string{nil, {"TOOL_GUARDIAN_PROJECT_CONFIG=1"}} {
		p.opt.Environ = env
		c := p.load()
		if serverNames(c) != "home" || len(c.Notes) != 0 {
			t.Errorf("%v: servers %q, notes %q", env, serverNames(c), c.Notes)
		}
	}
}

// D1: both keys, comments, trailing commas, BOM, order; other keys are kept out
// of it.
func TestFileForms(t *testing.T) {
	p := newPlace(t)
	p.write("home/mcp.json", "\ufeff// mine\n"+`{
  "servers": {"c": {"command": "x", "type": "stdio"},},
  /* others */
  "inputs": [{"id": "x"}],
  "mcpServers": {
    "a.b": {"command": "cmd", "args": ["1", "2",], "disabled": true, "description": "d", "cwd": "sub",
            "protocol": "2026-07-28", "maxConcurrent": 3, "alwaysAllow": ["x"]}, // one
    "router": {"command": "x", "cwd": "/abs"},
  },
  "toolGuardian": {"spillKeep": 5, /* c */},
}`)
	c := p.load()
	if got := serverNames(c); got != "c a.b router" {
		t.Fatalf("servers %q", got)
	}
	s := c.Servers[1]
	if s.Command != "cmd" || !cmp.Equal(s.Args, []string{"1", "2"}) || !s.Disabled || s.Description != "d" ||
		s.Dir != p.path("home/sub") || s.Protocol != "2026-07-28" || s.MaxConcurrent != 3 || s.Problem != "" {
		t.Errorf("%+v", s)
	}
	if got := c.Servers[2].Dir; got != "/abs" {
		t.Errorf("cwd %q", got)
	}
	if string(c.ToolGuardian) != `{"spillKeep":5}` {
		t.Errorf("settings %s", c.ToolGuardian)
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	cases := []struct {
		name, text string
		line, col  int
		want       string
	}{
		{"malformed", "{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"x\"}\n  }\n}", 3, 21, ""},
		{"cut off", `{"mcpServers": {`, 1, 17, ""},
		{"empty", "", 1, 1, ""},
		{"an array", "\n[]", 2, 1, "must hold one JSON object"},
		{"servers no object", `{"mcpServers": ["a"]}`, 1, 16, "must be an object"},
		{"a name twice", "{\"mcpServers\":{\"a\":{\"command\":\"x\"}},\n\"servers\":{\"a\":{\"command\":\"y\"}}}", 2, 12, `"a" is configured twice, first in line 1`},
		{"a name twice in one", "{\"mcpServers\":{\"a\":{\"command\":\"x\"},\n \"a\":{\"command\":\"y\"}}}", 2, 2, "configured twice"},
		{"no name", `{"mcpServers":{"":{"command":"x"}}}`, 1, 16, "needs a name"},
		{"too deep", strings.Repeat("[", 100000), 0, 0, "deep"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			p.write("home/mcp.json", c.text)
			_, err := config.Load(p.opt)
			var e *config.FileError
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Line != c.line || e.Col != c.col || e.File != p.path("home/mcp.json") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %d:%d and %q", err, c.line, c.col, c.want)
			}
		})
	}
}

// One entry that cannot be used does not take the others away.
func TestEntriesThatCannotBeUsed(t *testing.T) {
	cases := map[string]string{
		`{"command":"x","envFile":".env"}`:                          `"envFile" is not supported`,
		`{"command":"x","args":["${input:token}"]}`:                 `${input:token} is not supported`,
		`{"command":"x","env":{"A":"pre ${env:HOME}"}}`:             `${env:HOME} is not supported`,
		`{"command":"x","cwd":"${workspaceFolder}/a"}`:              `${workspaceFolder} is not supported`,
		`{"command":"${workspaceFolder}/run"}`:                      `${workspaceFolder} is not supported`,
		`{"url":"https://x/mcp"}`:                                   `servers by "url" are not supported yet`,
		`{"url":"https://x/mcp","headers":{"A":"Bearer ${env:T}"}}`: `${env:T}`,
		`{"command":"x","url":"https://x"}`:                         "not both",
		`{}`:                                                        `neither "command" nor "url"`,
		`{"command":"x","args":"--flag"}`:                           `"args" cannot be a string`,
		`{"command":["x"]}`:                                         `"command" cannot be a array`,
		`{"command":"x","env":{"N":5}}`:                             "env",
		`"npx x"`:                                                   "must be an object",
		`{"command":"x","maxConcurrent":-1}`:                        "maxConcurrent",
		`{"command":"x","protocol":"2099-01-01"}`:                   `"2099-01-01" is unknown`,
	}
	for entry, want := range cases {
		p := newPlace(t)
		p.write("home/mcp.json", `{"mcpServers":{"bad":`+entry+`,"good":{"command":"x"}}}`)
		c := p.load()
		if serverNames(c) != "bad good" {
			t.Errorf("%s: servers %q", entry, serverNames(c))
			continue
		}
		if got := c.Servers[0].Problem; !strings.Contains(got, want) {
			t.Errorf("%s: problem %q, want %q", entry, got, want)
		}
		if got := c.Servers[1].Problem; got != "" {
			t.Errorf("%s: the good one has %q", entry, got)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","args":["${A}"],"env":{"B":"%C%"}}}}`), []byte("A=1\nB='2'\n"))
	f.Add([]byte("\ufeff{/* */\"servers\":{\"a\":null,},}"), []byte("export A=\"x\ny\""))
	f.Add([]byte(`{"mcpServers":{"a":{"command":5}},"toolGuardian":[1e400]}`), []byte(`A`))
	f.Fuzz(func(t *testing.T, file, env []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{"mcp.json": file, ".env": env} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := config.Load(config.Options{Home: dir, Cwd: dir, Environ: []string{"PATH=/bin"}, GOOS: "linux"})
		if err != nil {
			var e *config.FileError
			if !errors.As(err, &e) {
				t.Fatalf("error of another type: %v", err)
			}
			return
		}
		for _, s := range c.Servers {
			for _, v := range c.Environ(s).Vars {
				if !strings.Contains(v, "=") {
					t.Errorf("variable %q", v)
				}
			}
		}
	})
}

func configLoad(p *place) (*config.Config, error) { return config.Load(p.opt) }

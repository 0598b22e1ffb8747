package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// D2: where the .env is looked for.
func TestEnvFileSearch(t *testing.T) {
	cases := []struct {
		name, config, env string
		vars              []string
		flag              string
		found             bool
	}{
		{"beside the config", "a/mcp.json", "a/.env", nil, "", true},
		{"five parents up", "1/2/3/4/5/6/mcp.json", "1/.env", nil, "", true},
		{"six parents up", "1/2/3/4/5/6/7/mcp.json", "1/.env", nil, "", false},
		{"by variable", "a/mcp.json", "other.env", []string{"TOOL_GUARDIAN_ENV=../other.env"}, "", true},
		{"by flag", "a/mcp.json", "other.env", []string{"TOOL_GUARDIAN_ENV=gone"}, "../other.env", true},
		{"none", "a/mcp.json", "b/.env", nil, "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			p.write(c.config, `{"mcpServers":{"s":{"command":"x","args":["${FROM_ENV}"]}}}`)
			p.write(c.env, "FROM_ENV=yes\n")
			p.opt.Flag, p.opt.EnvFile, p.opt.Environ = p.path(c.config), c.flag, c.vars
			got := p.load()
			want, file := "${FROM_ENV}", ""
			if c.found {
				want, file = "yes", p.path(c.env)
			}
			if got.EnvFile != file || got.Servers[0].Args[0] != want {
				t.Errorf("file %q gives %q, want %q and %q", got.EnvFile, got.Servers[0].Args[0], file, want)
			}
		})
	}
}

// P16: expansion in args, env values and headers.
func TestExpansion(t *testing.T) {
	p := newPlace(t)
	p.write("home/.env", "FILE=from-file\nBOTH=file\nNESTED='${FILE}'\nEMPTY=\n")
	p.opt.Environ = []string{"REAL=from-env", "BOTH=env"}
	s := p.only(`{"command":"x","args":["${REAL}","$FILE","%BOTH%","a${FILE}b$REAL.c","${UNSET} $UNSET %UNSET%","$ 5$ 100% ${} $$","${NESTED}","[${EMPTY}]"],
		"env":{"A":"${REAL}/x","B":"%FILE%"},"headers":{"H":"Bearer ${FILE}"},"cwd":"/${REAL}"}`)
	want := []string{"from-env", "from-file", "env", "afrom-filebfrom-env.c", "${UNSET} $UNSET %UNSET%", "$ 5$ 100% ${} $$", "${FILE}", "[]"}
	if d := cmp.Diff(want, s.Args); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"A": "from-env/x", "B": "from-file"}, s.Env); d != "" {
		t.Error(d)
	}
	if s.Headers["H"] != "Bearer from-file" {
		t.Errorf("header %q", s.Headers["H"])
	}
	if got := p.load().Environ(s).Unresolved; !cmp.Equal(got, []string{"UNSET"}) {
		t.Errorf("unresolved %q", got)
	}
}

// D2: settings may live in the .env, but not those that say where to look.
func TestSettings(t *testing.T) {
	p := newPlace(t)
	p.write("home/mcp.json", named("s"))
	p.write("home/.env", "TOOL_GUARDIAN_CALL_TIMEOUT=7.5\nTOOL_GUARDIAN_WAIT=3\nTOOL_GUARDIAN_POLICY=/evil\nTOOL_GUARDIAN_EVIDENCE=off\nTOOL_GUARDIAN_CONFIG=/evil\nTOOL_GUARDIAN_START_TIMEOUT=soon\n")
	p.opt.Environ = []string{"TOOL_GUARDIAN_WAIT=5"}
	c := p.load()
	for name, want := range map[string]string{"TOOL_GUARDIAN_CALL_TIMEOUT": "7.5", "TOOL_GUARDIAN_WAIT": "5", "TOOL_GUARDIAN_POLICY": "", "TOOL_GUARDIAN_EVIDENCE": "", "TOOL_GUARDIAN_CONFIG": ""} {
		if got, _ := c.Setting(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if len(c.Notes) != 3 {
		t.Errorf("notes %q, want one for each ignored setting", c.Notes)
	}
	if d, err := c.Seconds("TOOL_GUARDIAN_CALL_TIMEOUT", time.Minute); d != 7500*time.Millisecond || err != nil {
		t.Errorf("%v %v", d, err)
	}
	if d, err := c.Seconds("TOOL_GUARDIAN_NOT_SET", time.Minute); d != time.Minute || err != nil {
		t.Errorf("%v %v", d, err)
	}
	if _, err := c.Seconds("TOOL_GUARDIAN_START_TIMEOUT", time.Minute); err == nil || !strings.Contains(err.Error(), "soon") {
		t.Errorf("error %v", err)
	}
}

// A bad .env names the line and keeps its secrets to itself.
func TestBadEnvFile(t *testing.T) {
	p := newPlace(t)
	p.write("home/mcp.json", named("s"))
	p.write("home/.env", "A=1\nB=2\nmy secret-key=hunter2\nC=3\n")
	_, err := configLoad(p)
	if err == nil || !strings.Contains(err.Error(), ".env:3:1") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
	}
}

// D3b: what passes, what is dropped, what is reported.
func TestEnvironment(t *testing.T) {
	p := newPlace(t)
	pass := []string{
		"PATH=/bin", "HOME=/h", "USER=u", "LOGNAME=u", "SHELL=/sh", "TERM=xterm", "LANG=C", "LC_ALL=de_DE.UTF-8@euro", "TZ=UTC", "TMPDIR=/t",
		"XDG_RUNTIME_DIR=/r", "DISPLAY=:0", "WAYLAND_DISPLAY=w", "DBUS_SESSION_BUS_ADDRESS=unix:path=/b", "SSH_AUTH_SOCK=/s",
		"DOCKER_HOST=ssh://me@host", "KUBECONFIG=/k", "VIRTUAL_ENV=/v", "NVM_DIR=/n", "npm_config_registry=https://r.example", "UV_CACHE_DIR=/c", "PIP_NO_INPUT=1",
		"HTTP_PROXY=http://proxy:3128", "https_proxy=proxy:3128", "NO_PROXY=localhost", "ALL_PROXY=socks5://p", "no_proxy=x",
		"SSL_CERT_FILE=/ca", "SSL_CERT_DIR=/cas", "REQUESTS_CA_BUNDLE=/ca", "NODE_EXTRA_CA_CERTS=/ca",
	}
	dropped := []string{
		"npm_config__authToken=abc", "npm_config_//r.example/:_authToken=abc", "npm_config_registry2=https://u:p@r.example", "UV_INDEX_URL=https://tok3n@r.example/simple",
		"UV_PUBLISH_TOKEN=abc", "UV_INDEX_X_PASSWORD=abc", "PIP_INDEX_URL=https://u:p@r.example", "PIP_EXTRA_INDEX_URL=https://a.example https://u:p@b.example",
		"HTTPS_PROXY=http://u:p@proxy:3128", "http_proxy=u:p@proxy:3128", "NVM_AUTH_HEADER=abc", "FTP=1",
	}
	other := []string{"GITHUB_TOKEN=abc", "AWS_SECRET_ACCESS_KEY=abc", "LD_PRELOAD=/evil.so", "NODE_OPTIONS=--require=x", "PYTHONPATH=/x", "Path=/no", "SystemRoot=x", "MY_A=1", "MY_B=2"}
	p.opt.Environ = append(append(append([]string{}, pass...), dropped...), other...)
	p.write("home/.env", "DOTENV_KEY=1\nUSED_KEY=2\nMY_C=3\nTOOL_GUARDIAN_WAIT=1\nLANG=ignored\n")
	s := p.only(`{"command":"x","args":["${USED_KEY}"],"env":{"SET":"1","LANG":"own"}}`)
	env := p.load().Environ(s)
	want := map[string]bool{"SET=1": true, "LANG=own": true}
	for _, v := range pass {
		if !strings.HasPrefix(v, "LANG=") {
			want[v] = true
		}
	}
	got := map[string]bool{}
	for _, v := range env.Vars {
		got[v] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(env.Dropped) != len(dropped)-1 {
		t.Errorf("dropped %q", env.Dropped)
	}
	if d := cmp.Diff([]string{"DOTENV_KEY", "MY_C"}, env.Unpassed); d != "" {
		t.Error(d)
	}
	if got := env.Hint(); got != `it does not get DOTENV_KEY, MY_C of the .env; to pass them add "envPass": ["DOTENV_KEY", "MY_C"] to its entry` {
		t.Errorf("hint %s", got)
	}
}

func TestEnvPass(t *testing.T) {
	p := newPlace(t)
	p.write("home/.env", "DOTENV_KEY=1\n")
	p.opt.Environ = []string{"PATH=/bin", "GITHUB_TOKEN=abc", "MY_A=1", "MY_B=2", "MYX=3", "UV_PUBLISH_TOKEN=named"}
	for entry, want := range map[string]string{
		`{"command":"x"}`: "PATH=/bin",
		`{"command":"x","envPass":["GITHUB_TOKEN","DOTENV_KEY"]}`:  "DOTENV_KEY=1 GITHUB_TOKEN=abc PATH=/bin",
		`{"command":"x","envPass":["MY_*","UV_PUBLISH_TOKEN"]}`:    "MY_A=1 MY_B=2 PATH=/bin UV_PUBLISH_TOKEN=named",
		`{"command":"x","envPass":["*"],"env":{"MY_A":"own"}}`:     "DOTENV_KEY=1 GITHUB_TOKEN=abc MYX=3 MY_A=own MY_B=2 PATH=/bin UV_PUBLISH_TOKEN=named",
		`{"command":"x","envPass":["NOT_SET"],"env":{"PATH":"/"}}`: "PATH=/",
	} {
		s := p.only(entry)
		if got := strings.Join(p.load().Environ(s).Vars, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", entry, got, want)
		}
	}
}

// Windows has its own list and does not tell cases apart.
func TestEnvironmentOnWindows(t *testing.T) {
	p := newPlace(t)
	p.opt.GOOS = "windows"
	p.opt.Environ = []string{"Path=C:\\bin", "SYSTEMROOT=C:\\Windows", "ProgramFiles(x86)=P", "Temp=T", "Secret=1", "=C:=C:\\dir"}
	s := p.only(`{"command":"x","env":{"PATH":"own"}}`)
	want := "PATH=own ProgramFiles(x86)=P SYSTEMROOT=C:\\Windows Temp=T"
	if got := strings.Join(p.load().Environ(s).Vars, " "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

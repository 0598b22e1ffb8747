//go:build unix

package backend_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toolguardian/proxy/backend"
)

// memory is a Verdicts that counts.
type memory struct {
	mu            sync.Mutex
	m             map[string]string
	stores, drops int
}

func (m *memory) Load(k string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.m[k]
	return v, ok
}

func (m *memory) Store(k, v string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[string]string{}
	}
	m.m[k] = v
	m.stores++
}

func (m *memory) Drop(k string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, k)
	m.drops++
}

func TestEras(t *testing.T) {
	initError := func(code string) string {
		return "on initialize\n" + `> {"jsonrpc":"2.0","id":$ID,"error":{"code":` + code + `,"message":"no"}}` + "\n"
	}
	cases := []struct {
		name     string
		spec     backend.Spec
		protocol string
		methods  string // the server's view, over all its processes
	}{
		{"stateful", script("", "-mode", "stateful"), "2025-11-25", "initialize notifications/initialized tools/list"},
		{"both", script(""), "2025-11-25", "initialize notifications/initialized tools/list"},
		{"refuses initialize", script("", "-mode", "stateless"), "2026-07-28", "initialize server/discover tools/list subscriptions/listen"},
		{"unsupported version", script(initError("-32022")), "2026-07-28", "initialize server/discover tools/list subscriptions/listen"},
		{"exits at initialize", script("on initialize\nexit 2\n"), "2026-07-28", "initialize server/discover tools/list subscriptions/listen"},
		{"silent at initialize", silence(script("on initialize\n")), "2026-07-28", "initialize server/discover tools/list subscriptions/listen"},
		{"slow but stateful", silence(script("on initialize\nsleep 1s\ndefault", "-mode", "stateful")), "2025-11-25", "initialize server/discover notifications/initialized tools/list"},
		{"told to be stateless", protocol(script("", "-mode", "stateless"), "2026-07-28"), "2026-07-28", "server/discover tools/list subscriptions/listen"},
		{"told an old revision", protocol(script(""), "2025-03-26"), "2025-03-26", "initialize notifications/initialized tools/list"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "record")
			c.spec.Args = append(c.spec.Args, "-record", file)
			b := up(t, c.spec)
			if got := b.Status().Protocol; got != c.protocol {
				t.Errorf("protocol %s, want %s", got, c.protocol)
			}
			if got := string(b.Status().ServerInfo); !strings.Contains(got, "hostile") {
				t.Errorf("server info %q", got)
			}
			if got := said(t, mustCall(t, b, "echo", `{"x":1}`)); got != `{"x":1}` {
				t.Errorf("call: %q", got)
			}
			eventually(t, "it was asked "+c.methods, func() bool { return asked(t, file) == c.methods })
		})
	}
}

// asked are the methods a server saw, calls left out.
func asked(t *testing.T, file string) string {
	var methods []string
	for _, l := range linesWith(recorded(t, file), `"method":"`) {
		method, _, _ := strings.Cut(strings.SplitN(l, `"method":"`, 2)[1], `"`)
		if method != "tools/call" {
			methods = append(methods, method)
		}
	}
	return strings.Join(methods, " ")
}

func silence(s backend.Spec) backend.Spec {
	s.Silence = 200 * time.Millisecond
	return s
}

func protocol(s backend.Spec, p string) backend.Spec {
	s.Protocol = p
	return s
}

func TestOldRevisions(t *testing.T) {
	for answer, want := range map[string]string{"2024-10-07": "2024-11-05", "2024-11-05": "2024-11-05", "2025-06-18": "2025-06-18", "2027-01-01": "2025-11-25"} {
		b := up(t, script("on initialize\n"+`> {"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"`+answer+`","capabilities":{"tools":{}}}}`))
		if got := b.Status().Protocol; got != want {
			t.Errorf("%s is spoken to as %s, want %s", answer, got, want)
		}
		if flagged := len(b.Status().Flags) == 1; flagged != (answer != want) {
			t.Errorf("%s: flags %v", answer, b.Status().Flags)
		}
	}
}

// A refusal that does not mean "I do not know initialize" is the answer.
func TestOtherRefusalIsNotProbed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	b := start(t, script("on initialize\n"+`> {"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"no licence"}}`, "-record", file))
	err := b.Ready(context.Background())
	if err == nil || !strings.Contains(err.Error(), "no licence") {
		t.Errorf("error %v", err)
	}
	if got := linesWith(recorded(t, file), "server/discover"); len(got) != 0 {
		t.Errorf("probed: %s", got)
	}
}

// D3c: the verdict saves the detour, and goes at the first failure.
func TestVerdictIsRemembered(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	spec := script("", "-mode", "stateless", "-record", file)
	var m memory
	ready(t, startWith(t, spec, backend.Options{Verdicts: &m}))
	ready(t, startWith(t, spec, backend.Options{Verdicts: &m}))
	if got := len(linesWith(recorded(t, file), `"initialize"`)); got != 1 || m.stores != 1 || m.drops != 0 {
		t.Errorf("%d initialize, %d stores, %d drops; want 1, 1, 0", got, m.stores, m.drops)
	}
	for k := range m.m {
		m.m[k] = "2025-11-25" // the server was updated meanwhile
	}
	ready(t, startWith(t, spec, backend.Options{Verdicts: &m}))
	if m.drops != 1 || m.stores != 2 {
		t.Errorf("%d drops, %d stores after a wrong verdict; want 1, 2", m.drops, m.stores)
	}
}

// Every request to a stateless server carries the envelope beside what the
// caller put there, and nothing of another hop.
func TestStatelessEnvelope(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	b := up(t, script("", "-mode", "stateless", "-record", file))
	params := `{"name":"echo","_meta":{"traceparent":"00-ab","progressToken":"theirs","io.modelcontextprotocol/protocolVersion":"1999"},"arguments":{"n":1e400}}`
	if r, err := b.Request(t.Context(), "tools/call", []byte(params), backend.Observer{}); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	lines := linesWith(recorded(t, file), "tools/call")
	want := `"params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tool-guardian","version":"test"},"io.modelcontextprotocol/clientCapabilities":{},"traceparent":"00-ab"},"arguments":{"n":1e400}}}`
	if len(lines) != 1 || !strings.HasSuffix(lines[0], want) {
		t.Errorf("sent %s\nwant …%s", lines, want)
	}
}

func TestInputRequiredIsNoFinalResult(t *testing.T) {
	b := up(t, script("on tools/call\n"+`> {"jsonrpc":"2.0","id":$ID,"result":{"resultType":"input_required","inputRequests":{}}}`, "-mode", "stateless"))
	r := mustCall(t, b, "echo", `{}`)
	if r.Err == nil || !strings.Contains(string(r.Result), "inputRequests") {
		t.Errorf("reply %s, error %v", r.Result, r.Err)
	}
}

// P17, R20: a failed start says what the server said.
func TestFailedStarts(t *testing.T) {
	missing := script("")
	missing.Hint = `not passed from the .env: add "envPass": ["TOKEN"]`
	missing.Command = "no-such-command-anywhere"
	folder := script("")
	folder.Dir = filepath.Join(t.TempDir(), "gone")
	quiet := script("start\nstderr waiting for a licence server\n", "-mode", "silent")
	quiet.StartTimeout = 500 * time.Millisecond
	deaf := script("", "-mode", "deaf")
	deaf.StartTimeout = 500 * time.Millisecond
	stuck := script("on tools/list\n")
	stuck.StartTimeout = 500 * time.Millisecond
	cases := []struct {
		name string
		spec backend.Spec
		want []string
	}{
		{"missing command", missing, []string{"no-such-command-anywhere", "was not found in PATH (", `add "envPass": ["TOKEN"]`}},
		{"missing folder", folder, []string{"gone", `correct "cwd"`}},
		{"exit", script("start\nstderr Error: GITHUB_TOKEN is not set\nexit 3"), []string{"exit code 3", "GITHUB_TOKEN is not set"}},
		{"silent", quiet, []string{"initialize", "not up within 500ms", "waiting for a licence server"}},
		{"deaf", deaf, []string{"initialize", "not up within 500ms"}},
		{"no catalogue", stuck, []string{"tools/list", "not up within 500ms"}},
		{"no MCP at all", script("start\n> hello\nclose\n"), []string{"initialize", "ended"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := start(t, c.spec)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			err := b.Ready(ctx)
			callError(t, err, backend.ErrDown, false)
			if path := os.Getenv("PATH"); strings.Contains(err.Error(), path) {
				t.Errorf("the whole PATH is told: %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			if st := b.Status(); st.State != backend.Unknown || st.Err == nil {
				t.Errorf("status %s, %v", st.State, st.Err)
			}
			var e *backend.StartError
			if !errors.As(err, &e) {
				t.Errorf("no StartError in %v", err)
			}
		})
	}
}

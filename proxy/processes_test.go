//go:build unix

package proxy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/config"
	"toolguardian/proxy/wire"
	"toolguardian/receipts"
)

// processes is a router before real processes of the hostile server, each with
// its script, configured as a user would.
func processes(t *testing.T, scripts map[string]string, set func(*Options)) (*Router, *recorder) {
	t.Helper()
	servers := map[string]any{}
	for name, script := range scripts {
		servers[name] = map[string]any{"command": hostile, "args": []string{"-e", script}}
	}
	file, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{Flag: path, Environ: os.Environ(), Cwd: dir, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	rec := newRecorder(t, &diary{})
	sup := backend.NewSupervisor("", nil)
	t.Cleanup(func() { sup.Close() })
	o := Options{Config: cfg, Supervisor: sup, Recorder: rec, Evidence: EvidenceRequired, Version: "test", CheckLimit: time.Minute}
	if set != nil {
		set(&o)
	}
	return newRouter(t, o), rec
}

const (
	onList = "on tools/list\n> {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"tools\":[%s]}}\n"
	onCall = "on tools/call %s\n%s\n"
	reply  = `> {"jsonrpc":"2.0","id":$ID,"result":%s}`
)

func TestProcessesEndToEnd(t *testing.T) {
	const odd = `{"content":[{"type":"text","text":"\ud800","n":1.0}],"odd":1e400,"odd":9007199254740993}`
	r, rec := processes(t, map[string]string{
		"one":       fmt.Sprintf(onCall, "slow", fmt.Sprintf(reply, odd)),
		"two.dots":  "",
		"broken":    "start\nstderr no such folder: /nowhere\nexit 7",
		"crashing":  fmt.Sprintf(onCall, "slow", "stderr out of memory\nexit 9"),
		"odd/names": fmt.Sprintf(onList, `{"name":"a.b/c:d ü","inputSchema":{"definitions":{"x":{"$ref":"#/definitions/x"}},"properties":{"p":{"$ref":"#/definitions/x"}}}}`),
	}, nil)
	c := connect(t, r, latest)

	all := joined(t, c.tool("list_capabilities", `{}`))
	for _, want := range []string{"[one] 7 tools: echo, slow,", "[two.dots] 7 tools: ", "[broken] UNKNOWN: could not start: ", "no such folder: /nowhere", "[odd/names] 1 tools: a.b/c:d ü"} {
		if !strings.Contains(all, want) {
			t.Errorf("the list lacks %q:\n%s", want, all)
		}
	}
	if got := texts(t, c.tool("call_tool", `{"server":"two.dots","tool":"echo","args":{"x":9007199254740993, "x2":1.0}}`)); got[0] != `{"x":9007199254740993, "x2":1.0}` {
		t.Errorf("the backend got %q", got)
	}
	got := string(c.tool("call_tool", `{"server":"one","tool":"slow"}`))
	if want := strings.Replace(odd, `"n":1.0}]`, `"n":1.0},`+string(nextStep(nextAnswer))+`]`, 1); got != want {
		t.Errorf("delivered %s\nwant %s", got, want)
	}
	full := texts(t, c.tool("describe_tool", `{"server":"odd/names","tool":"a.b/c:d ü","detail":"full"}`))
	if want := `{"name":"a.b/c:d ü","inputSchema":{"definitions":{"x":{"$ref":"#/definitions/x"}},"properties":{"p":{"$ref":"#/definitions/x"}}}}`; full[0] != want {
		t.Errorf("described as %q", full)
	}
	died := joined(t, c.tool("call_tool", `{"server":"crashing","tool":"slow"}`))
	if !strings.HasPrefix(died, "DIED: ") || !strings.Contains(died, "exit code 9") || !strings.Contains(died, "out of memory") {
		t.Errorf("a crash is told as %q", died)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, k := range rec.kinds(t) {
		counts[k]++
	}
	if counts["decision"] != 3 || counts["outcome"] != 3 {
		t.Errorf("receipts %v", counts)
	}
}

// Every call under way has an answer and an outcome when its backend dies.
func TestCrashUnderManyCalls(t *testing.T) {
	const calls = 5
	r, rec := processes(t, map[string]string{"s": fmt.Sprintf(onCall, "slow", "wait logging/setLevel\nexit 4")}, nil)
	c := connect(t, r, latest)
	var answers []chan wire.Message
	for range calls {
		_, answer := c.start("tools/call", `{"name":"call_tool","arguments":{"server":"s","tool":"slow"}}`)
		answers = append(answers, answer)
	}
	eventually(t, "all decisions", func() bool { return len(rec.kinds(t)) == 1+calls })
	c.request("logging/setLevel", `{"level":"error"}`)
	for _, answer := range answers {
		if m := <-answer; m.Result == nil || !strings.HasPrefix(joined(t, m.Result), "DIED: ") {
			t.Errorf("answered %s", m.Raw)
		}
	}
	outcomes := 0
	for _, r := range rec.all(t) {
		if r.Kind == receipts.KindOutcome && r.member("status") == `"unknown"` {
			outcomes++
		}
	}
	if outcomes != calls {
		t.Errorf("%d outcomes of unknown, want %d", outcomes, calls)
	}
}

func TestTimedOutProcess(t *testing.T) {
	r, rec := processes(t, map[string]string{"s": fmt.Sprintf(onCall, "slow", "wait never")}, func(o *Options) { o.CallTimeout = 300 * time.Millisecond })
	c := connect(t, r, latest)
	if text := joined(t, c.tool("call_tool", `{"server":"s","tool":"slow"}`)); !strings.HasPrefix(text, "TIMEOUT: ") {
		t.Errorf("told as %q", text)
	}
	if text := joined(t, c.tool("call_tool", `{"server":"s","tool":"echo","args":{"still":"alive"}}`)); !strings.Contains(text, "alive") {
		t.Errorf("after the timeout: %q", text)
	}
	var status []string
	for _, r := range rec.all(t) {
		if r.Kind == receipts.KindOutcome {
			status = append(status, r.member("status"))
		}
	}
	if strings.Join(status, " ") != `"timeout" "ok"` {
		t.Errorf("outcomes %q", status)
	}
}

// An answer to a call that was given up is recorded and shown to nobody.
func TestLateAnswer(t *testing.T) {
	const late = `{"content":[{"type":"text","text":"too late"}]}`
	r, rec := processes(t, map[string]string{"s": fmt.Sprintf(onCall, "slow", "wait notifications/cancelled\n"+fmt.Sprintf(reply, late))},
		func(o *Options) { o.CallTimeout = 300 * time.Millisecond })
	c := connect(t, r, latest)
	if text := joined(t, c.tool("call_tool", `{"server":"s","tool":"slow"}`)); !strings.HasPrefix(text, "TIMEOUT: ") {
		t.Errorf("told as %q", text)
	}
	eventually(t, "a late receipt", func() bool { return slices.Contains(rec.kinds(t), "late") })
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if got, want := rec.kinds(t), []string{"session-open", "decision", "outcome", "late", "session-close"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
	got := rec.only(t, receipts.KindLate)
	got.commits(t, receipts.FieldResultReceived, []byte(late))
	if got.member("status") != `"ok"` || got.member("call") != rec.only(t, receipts.KindDecision).member("call") {
		t.Errorf("receipt %s", got.predicate)
	}
}

// The stateless revision and a large result, through real pipes.
func TestStatelessClient(t *testing.T) {
	r, rec := processes(t, map[string]string{"s": fmt.Sprintf(onCall, "slow", "big 17000000")}, nil)
	c := connect(t, r, latest)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"2"},"io.modelcontextprotocol/clientCapabilities":{}}`
	m := c.request("tools/call", `{"name":"call_tool","arguments":{"server":"s","tool":"echo","args":{"a":1.0}},`+meta+`}`)
	if text := joined(t, m.Result); !strings.HasPrefix(text, `{"a":1.0}`) || !strings.Contains(string(m.Result), `"resultType":"complete"`) {
		t.Errorf("answered %s", m.Raw)
	}
	if outcome := rec.only(t, receipts.KindOutcome); outcome.member("changes") != `["next step added","members of the revision added"]` {
		t.Errorf("receipt %s", outcome.predicate)
	} else {
		outcome.commits(t, receipts.FieldResultDelivered, m.Result)
	}
	if big := texts(t, c.tool("call_tool", `{"server":"s","tool":"slow"}`)); len(big[0]) != 17_000_000 {
		t.Errorf("%d characters arrived", len(big[0]))
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	opened := 0
	for _, r := range rec.all(t) {
		if r.Kind == receipts.KindSessionOpen {
			opened++
		}
	}
	if opened != 2 {
		t.Errorf("%d sessions were opened, want the stateful and the stateless one", opened)
	}
}

package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"toolguardian/chain"
	"toolguardian/receipts"
)

// hostileTool is a name that would break each of the formats if it were not
// written as theirs.
const hostileTool = "=cmd|'x'!A1\\ \"]=a|b,\ntwo"

// exported is a chain with one call of a hostile name, and its folder.
func exported(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "evidence")
	c, err := chain.Open(t.Context(), chain.Options{Dir: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	common := receipts.Common{Session: "s1", Capture: receipts.CaptureProxy, Version: "test", Time: receipts.Time{Wall: at},
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	call := receipts.Call{ID: "call", Server: "srv", Tool: hostileTool, RPC: []byte("1")}
	for _, r := range []receipts.Receipt{
		receipts.NewDecision(common, receipts.Decision{Call: call, Effect: "allow", Mode: receipts.ModeEnforced}),
		receipts.NewOutcome(common, receipts.Outcome{Call: call, Status: receipts.StatusToolError}),
	} {
		if _, err := c.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ran runs a command that must exit with want, and returns its output.
func ran(t *testing.T, want Code, args ...string) string {
	t.Helper()
	var out, said bytes.Buffer
	code := run(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &said,
		Getenv: func(string) string { return "" }, Environ: func() []string { return nil }, Now: time.Now})
	if code != want {
		t.Fatalf("%v: exit %d, want %d: %s", args, code, want, said.String())
	}
	return out.String()
}

func TestExportCSV(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(ran(t, OK, "receipts", "export", "--format", "csv", "--chain", exported(t), "--session", "s1"))).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	// The apostrophe keeps the name from being a formula.
	if got := rows[1][5]; got != "'"+hostileTool {
		t.Errorf("tool %q", got)
	}
	if rows[2][7] != "tool_error" || rows[2][0] != "2" {
		t.Errorf("outcome %q", rows[2])
	}
}

func TestExportJSON(t *testing.T) {
	dir := exported(t)
	for format, member := range map[string]string{"jsonl": "statement", "cloudevents": "data"} {
		lines := strings.Split(strings.TrimSuffix(ran(t, OK, "receipts", "export", "--format", format, "--chain", dir), "\n"), "\n")
		if len(lines) != 3 {
			t.Fatalf("%s: %d lines", format, len(lines))
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(lines[1]), &got); err != nil {
			t.Fatal(err)
		}
		st, err := receipts.ParseStatement(got[member])
		if err != nil || st.Seq != 1 || st.Text("call", "tool") != hostileTool {
			t.Errorf("%s: %v %s", format, err, got[member])
		}
	}
}

// One line of the form of RFC 5424, with the values escaped as its section
// 6.3.3 says.
func TestExportSyslog(t *testing.T) {
	lines := strings.Split(ran(t, OK, "receipts", "export", "--format", "syslog", "--chain", exported(t), "--kind", "outcome"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	form := regexp.MustCompile(`^<132>1 2026-03-04T05:06:07\.000000Z - tool-guardian - outcome \[receipt@32473( [a-z]+="([^"\\\]]|\\["\\\]])*")+\] [^\n]+$`)
	if !form.MatchString(lines[0]) {
		t.Errorf("not RFC 5424: %s", lines[0])
	}
}

func TestExportCEF(t *testing.T) {
	lines := strings.Split(ran(t, OK, "receipts", "export", "--format", "cef", "--chain", exported(t), "--kind", "outcome"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	form := regexp.MustCompile(`^CEF:0\|Tool Guardian\|tool-guardian\|([^|\\]|\\[|\\])*\|outcome\|([^|\\]|\\[|\\])*\|5\|([a-zA-Z0-9]+=([^=\\]|\\[=\\n])*)+$`)
	if !form.MatchString(lines[0]) || !strings.Contains(lines[0], " outcome=tool_error ") {
		t.Errorf("not CEF: %s", lines[0])
	}
}

// OTLP goes to a collector on this machine, and to no other.
func TestExportOTLP(t *testing.T) {
	var path string
	var body []byte
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type")
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(answer)
	}))
	defer server.Close()
	dir := exported(t)
	ran(t, OK, "receipts", "export", "--format", "otlp", "--chain", dir, "--to", server.URL)
	if path != "POST /v1/logs application/json" {
		t.Errorf("request %s", path)
	}
	var got struct {
		Logs []struct {
			Scopes []struct{ LogRecords []otlpRecord } `json:"scopeLogs"`
		} `json:"resourceLogs"`
	}
	if err := json.Unmarshal(body, &got); err != nil || len(got.Logs) != 1 || len(got.Logs[0].Scopes[0].LogRecords) != 3 {
		t.Fatalf("%v: %s", err, body)
	}
	outcome := got.Logs[0].Scopes[0].LogRecords[2]
	if outcome.Severity != 13 || outcome.TraceID != "0af7651916cd43dd8448eb211c80319c" || outcome.Time != "1772600767000000089" {
		t.Errorf("%+v", outcome)
	}
	if file := ran(t, OK, "receipts", "export", "--format", "otlp", "--chain", dir); !json.Valid([]byte(file)) {
		t.Errorf("no JSON: %s", file)
	}
	answer = http.StatusInternalServerError
	ran(t, Failed, "receipts", "export", "--format", "otlp", "--chain", dir, "--to", server.URL)
	for _, to := range []string{"https://127.0.0.1", "http://192.0.2.1:4318", "http://example.com", "nonsense"} {
		ran(t, Usage, "receipts", "export", "--format", "otlp", "--chain", dir, "--to", to)
	}
}

func TestFilters(t *testing.T) {
	dir := exported(t)
	for _, tc := range []struct {
		words string
		want  int
	}{
		{"", 3}, {"--server srv", 2}, {"--server other", 0}, {"--status tool_error", 1}, {"--kind genesis", 1}, {"--session s1 --kind decision", 1},
		{"--until 2026-03-05", 2}, {"--since 2026-03-04T05:06:07Z --until 2026-03-04T05:06:08Z", 2}, {"--until 2026-03-04T05:06:07Z", 0},
	} {
		args := append([]string{"receipts", "list", "--json", "--chain", dir}, strings.Fields(tc.words)...)
		if got := strings.Count(ran(t, OK, args...), "\n"); got != tc.want {
			t.Errorf("%s: %d receipts, want %d", tc.words, got, tc.want)
		}
	}
	ran(t, Usage, "receipts", "list", "--chain", dir, "--since", "yesterday")
	ran(t, Usage, "receipts", "export", "--chain", dir, "--format", "xml")
	ran(t, Usage, "receipts", "grep", "--chain", dir, "(")
	ran(t, Failed, "receipts", "grep", "--chain", dir, "no such thing")
}

// tail -f shows what another process appends, and ends when it is told to.
func TestTailFollows(t *testing.T) {
	dir := exported(t)
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan Code, 1)
	go func() {
		code := run(ctx, []string{"receipts", "tail", "-n", "1", "-f", "--json", "--chain", dir}, Streams{In: strings.NewReader(""), Out: w, Err: io.Discard,
			Getenv: func(string) string { return "" }, Environ: func() []string { return nil }, Now: time.Now})
		w.Close()
		ended <- code
	}()
	rows := json.NewDecoder(r)
	next := func(want string) {
		t.Helper()
		var e entry
		if err := rows.Decode(&e); err != nil || e.Kind != want {
			t.Fatalf("%+v, want %s: %v", e, want, err)
		}
	}
	next("outcome")
	c, err := chain.Open(t.Context(), chain.Options{Dir: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.Append(t.Context(), receipts.NewHeartbeat(receipts.Common{Capture: receipts.CaptureCLI, Time: receipts.Time{Wall: time.Now()}})); err != nil {
			t.Fatal(err)
		}
		next("heartbeat")
	}
	cancel()
	if code := <-ended; code != OK {
		t.Errorf("exit %d", code)
	}
}

package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"toolguardian/policy"
	"toolguardian/proxy/backend"
	"toolguardian/receipts"
)

const latest = "2025-11-25"

// recorded is a router with one backend "s", whose receipts are recorded.
func recorded(t testing.TB, mode EvidenceMode, m *memory) (*Router, *recorder) {
	t.Helper()
	rec := newRecorder(t, m.j)
	o := memories(map[string]*memory{"s": m})
	o.Recorder, o.Evidence = rec, mode
	return newRouter(t, o), rec
}

// The decision is durable before the backend gets a byte, the outcome before
// the client does; discovery leaves no receipt.
func TestOrderOfOneCall(t *testing.T) {
	j := &diary{}
	m := newMemory(j, echoTool)
	r, rec := recorded(t, EvidenceRequired, m)
	c := connect(t, r, latest)
	c.tool("list_capabilities", `{}`)
	c.tool("describe_tool", `{"server":"s","tool":"echo"}`)
	c.tool("search_capabilities", `{"query":"echo"}`)
	got := c.tool("call_tool", `{"server":"s","tool":"echo","args":{"text":"hi"}}`)
	j.add("answered")
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"durable session-open", "durable decision", "sent tools/call", "durable outcome", "answered", "durable session-close"}
	if !slices.Equal(j.all(), want) {
		t.Errorf("order is %q, want %q", j.all(), want)
	}
	if got := texts(t, got); len(got) != 2 || got[0] != `{"text":"hi"}` || !strings.HasPrefix(got[1], "NEXT STEP: ") {
		t.Errorf("the client reads %q", got)
	}
	decision, outcome := rec.only(t, receipts.KindDecision), rec.only(t, receipts.KindOutcome)
	if d, o := decision.member("call"), outcome.member("call"); d != o || d == "" {
		t.Errorf("decision and outcome do not pair: %s, %s", d, o)
	}
	if outcome.member("status") != `"ok"` || decision.member("effect") != `"allow"` || decision.member("mode") != `"enforced"` {
		t.Errorf("decision %s, outcome %s", decision.predicate, outcome.predicate)
	}
}

func TestCommitmentsAreOfTheBytes(t *testing.T) {
	const raw = `{ "content" : [ {"type":"text","text":"x\u0041","n":1.0} ], "odd":9007199254740993, "odd2":1e400 }`
	for _, tt := range []struct{ name, arguments, sent, received string }{
		{"as it stands", `{"server":"s","tool":"echo","args":{ "text" : "é\ud800" }}`, `{ "text" : "é\ud800" }`, ""},
		{"as text", `{"server":"s","tool":"echo","args":"{\"n\":1}"}`, `{"n":1}`, `"{\"n\":1}"`},
		{"a number for a text", `{"server":"s","tool":"echo","args":{ "text" : 1.0 }}`, `{ "text" : "1.0" }`, `{ "text" : 1.0 }`},
		{"flat", `{"server":"s","tool":"echo","text": "1.0"}`, `{"text": "1.0"}`, `{"server":"s","tool":"echo","text": "1.0"}`},
		{"none", `{"server":"s","tool":"echo"}`, `{}`, `{"server":"s","tool":"echo"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory(&diary{}, echoTool)
			m.answer = answers(raw)
			r, rec := recorded(t, EvidenceOn, m)
			got := connect(t, r, latest).tool("call_tool", tt.arguments)
			if seen := m.requests(); len(seen) != 1 || seen[0] != `{"name":"echo","arguments":`+tt.sent+`}` {
				t.Fatalf("the backend got %q", seen)
			}
			decision, outcome := rec.only(t, receipts.KindDecision), rec.only(t, receipts.KindOutcome)
			decision.commits(t, receipts.FieldArgsSent, []byte(tt.sent))
			if tt.received == "" {
				decision.commits(t, receipts.FieldArgsReceived, nil)
			} else {
				decision.commits(t, receipts.FieldArgsReceived, []byte(tt.received))
			}
			decision.commits(t, receipts.FieldPrincipal, []byte("someone"))
			outcome.commits(t, receipts.FieldPrincipal, []byte("someone"))
			outcome.commits(t, receipts.FieldResultReceived, []byte(raw))
			outcome.commits(t, receipts.FieldResultDelivered, got)
		})
	}
}

// With TOOL_GUARDIAN_RAW_RESULTS=1 nothing is added, so nothing differs.
func TestRawResults(t *testing.T) {
	for _, raw := range []string{`{"content":[]}`, `{ "structuredContent":{"a":1.0} }`, `{"content":[{"type":"text","text":"a"}],"isError":true,"x":1e3}`} {
		m := newMemory(&diary{}, echoTool)
		m.answer = answers(raw)
		r, rec := recorded(t, EvidenceOn, m)
		r.o.RawResults = true
		if got := connect(t, r, latest).tool("call_tool", `{"server":"s","tool":"echo"}`); string(got) != raw {
			t.Errorf("delivered %s, want %s", got, raw)
		}
		outcome := rec.only(t, receipts.KindOutcome)
		outcome.commits(t, receipts.FieldResultReceived, []byte(raw))
		outcome.commits(t, receipts.FieldResultDelivered, nil)
	}
}

func callError(reason error, sent bool) error {
	return &backend.CallError{Server: "s", Reason: reason, Sent: sent, Exit: &backend.Exit{Code: 3}, Stderr: []string{"out of cheese"}}
}

func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		reply  backend.Reply
		err    error
		status string
		shown  []string // parts of what the client reads
	}{
		{name: "isError inside a success", reply: backend.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"no such file"}],"isError":true}`)},
			status: "tool_error", shown: []string{"no such file", "NEXT STEP: the call failed"}},
		{name: "error of the protocol", reply: noTool(), status: "protocol_error", shown: []string{"BACKEND_ERROR: s.echo answered with error -32602: no such tool", `data: {"a":1.0}`}},
		{name: "a result that is none", reply: backend.Reply{Result: json.RawMessage(`[1]`)}, status: "protocol_error", shown: []string{"BACKEND_ERROR", "[1]"}},
		{name: "timeout", err: callError(backend.ErrTimeout, true), status: "timeout", shown: []string{"TIMEOUT: ", "outcome is unknown", "do not repeat"}},
		{name: "died", err: callError(backend.ErrDied, true), status: "unknown", shown: []string{"DIED: ", "exit code 3", "out of cheese", "do not repeat"}},
		{name: "down", err: callError(backend.ErrDown, false), status: "protocol_error", shown: []string{"NOT_SENT: ", "not sent", "out of cheese"}},
		{name: "timeout before it was sent", err: callError(backend.ErrTimeout, false), status: "protocol_error", shown: []string{"NOT_SENT: "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory(&diary{}, echoTool)
			m.answer = func(context.Context, string, json.RawMessage, backend.Observer) (backend.Reply, error) {
				return tt.reply, tt.err
			}
			r, rec := recorded(t, EvidenceOn, m)
			got := connect(t, r, latest).tool("call_tool", `{"server":"s","tool":"echo"}`)
			text := joined(t, got)
			for _, part := range tt.shown {
				if !strings.Contains(text, part) {
					t.Errorf("the client reads %q, which lacks %q", text, part)
				}
			}
			var failed struct{ IsError bool }
			if err := json.Unmarshal(got, &failed); err != nil || !failed.IsError {
				t.Errorf("%s is no error", got)
			}
			outcome := rec.only(t, receipts.KindOutcome)
			if outcome.member("status") != `"`+tt.status+`"` {
				t.Errorf("status is %s, want %s", outcome.member("status"), tt.status)
			}
			outcome.commits(t, receipts.FieldResultDelivered, got)
		})
	}
}

func TestCancelledCallHasAnOutcome(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	running := make(chan struct{})
	m.answer = func(ctx context.Context, _ string, _ json.RawMessage, _ backend.Observer) (backend.Reply, error) {
		close(running)
		<-ctx.Done()
		return backend.Reply{}, callError(backend.ErrCancelled, true)
	}
	r, rec := recorded(t, EvidenceRequired, m)
	c := connect(t, r, latest)
	id, answer := c.start("tools/call", `{"name":"call_tool","arguments":{"server":"s","tool":"echo"}}`)
	<-running
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
	eventually(t, "an outcome", func() bool { return slices.Contains(rec.kinds(t), "outcome") })
	outcome := rec.only(t, receipts.KindOutcome)
	if outcome.member("status") != `"cancelled"` {
		t.Errorf("status is %s", outcome.member("status"))
	}
	outcome.commits(t, receipts.FieldResultDelivered, nil)
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-answer:
		t.Errorf("a cancelled call was answered: %s", m.Raw)
	default:
	}
}

func TestDeniedToolIsNowhere(t *testing.T) {
	m := newMemory(&diary{}, echoTool, `{"name":"delete_all","inputSchema":{"type":"object","properties":{"secret_parameter":{}}}}`)
	r, rec := recorded(t, EvidenceRequired, m)
	p, err := policy.Parse([]byte(`{"servers":{"*":{"deny":["^delete_"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.o.Policy, r.evidence.policy = p, p.Digest()
	c := connect(t, r, latest)
	for _, look := range [][2]string{{"list_capabilities", `{}`}, {"list_capabilities", `{"server":"s"}`}, {"search_capabilities", `{"query":"delet secret"}`}} {
		if text := joined(t, c.tool(look[0], look[1])); strings.Contains(text, "delete_all") {
			t.Errorf("%s %s shows it: %s", look[0], look[1], text)
		}
	}
	for _, call := range [][2]string{{"describe_tool", `{"server":"s","tool":"delete_all","detail":"full"}`}, {"call_tool", `{"server":"s","tool":"delete_all","args":{"bad"` + `:1}}`}} {
		text := joined(t, c.tool(call[0], call[1]))
		if !strings.HasPrefix(text, "POLICY_DENIED deny ^delete_\n") || strings.Contains(text, "secret") {
			t.Errorf("%s: %s", call[0], text)
		}
	}
	if seen := m.requests(); len(seen) > 0 {
		t.Errorf("the backend got %q", seen)
	}
	denied := rec.only(t, receipts.KindDenied)
	if denied.member("rule") != `"deny ^delete_"` || denied.member("effect") != `"deny"` {
		t.Errorf("receipt %s", denied.predicate)
	}
	denied.commits(t, receipts.FieldArgsReceived, []byte(`{"bad":1}`))
	denied.commits(t, receipts.FieldArgsSent, nil)
}

// The name is judged before the arguments are looked at, and what would need a
// person's yes does not run without one.
func TestPolicyComesBeforeArguments(t *testing.T) {
	m := newMemory(&diary{}, echoTool, `{"name":"write"}`)
	r, rec := recorded(t, EvidenceRequired, m)
	p, err := policy.Parse([]byte(`{"servers":{"s":{"deny":["^echo$"],"ask":["^write$"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.o.Policy, r.evidence.policy = p, p.Digest()
	c := connect(t, r, latest)
	if text := joined(t, c.tool("call_tool", `{"server":"s","tool":"echo","args":"{malformed"}`)); !strings.HasPrefix(text, "POLICY_DENIED deny ^echo$") {
		t.Errorf("the client reads %q", text)
	}
	if text := joined(t, c.tool("call_tool", `{"server":"s","tool":"write"}`)); !strings.HasPrefix(text, "POLICY_DENIED ask ^write$") {
		t.Errorf("the client reads %q", text)
	}
	if seen := m.requests(); len(seen) > 0 {
		t.Errorf("the backend got %q", seen)
	}
	var effects []string
	for _, r := range rec.all(t) {
		if r.Kind == receipts.KindDenied {
			effects = append(effects, r.member("effect"))
		}
	}
	if !slices.Equal(effects, []string{`"deny"`, `"ask"`}) {
		t.Errorf("denied receipts with effects %q", effects)
	}
}

// A backend's new tools are there as soon as it said that its list changed.
func TestChangedToolsAreSeen(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, _ := recorded(t, EvidenceOff, m)
	c := connect(t, r, latest)
	c.tool("list_capabilities", `{}`)
	m.tools = []json.RawMessage{json.RawMessage(`{"name":"fresh","description":"new"}`)}
	m.changed()
	for tool, arguments := range map[string]string{"list_capabilities": `{}`, "search_capabilities": `{"query":"fresh"}`,
		"describe_tool": `{"server":"s","tool":"fresh"}`, "call_tool": `{"server":"s","tool":"fresh","args":{"fresh":1}}`} {
		if text := joined(t, c.tool(tool, arguments)); !strings.Contains(text, "fresh") || strings.Contains(text, "no tool") {
			t.Errorf("%s: %s", tool, text)
		}
	}
	if text := joined(t, c.tool("call_tool", `{"server":"s","tool":"echo"}`)); !strings.HasPrefix(text, "NOT_FOUND") {
		t.Errorf("the removed tool: %s", text)
	}
}

func TestLogLevelReachesTheBackends(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, _ := recorded(t, EvidenceOff, m)
	connect(t, r, latest).request("logging/setLevel", `{"level":"warning"}`)
	eventually(t, "the level", func() bool { return slices.Equal(m.requests(), []string{`{"level":"warning"}`}) })
}

// Arguments that cannot be read are refused before the backend, with a receipt.
func TestMalformedArgumentsAreRefused(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, rec := recorded(t, EvidenceOn, m)
	text := joined(t, connect(t, r, latest).tool("call_tool", `{"server":"s","tool":"echo","args":"{text: 1}"}`))
	if !strings.HasPrefix(text, "BAD_ARGUMENTS: args is text that is not JSON") {
		t.Errorf("the client reads %q", text)
	}
	if seen := m.requests(); len(seen) > 0 {
		t.Errorf("the backend got %q", seen)
	}
	if refused := rec.only(t, receipts.KindRefused); refused.member("reason") != `"schema"` {
		t.Errorf("receipt %s", refused.predicate)
	}
}

var errFull = errors.New("no space left on device")

func TestRequiredRefusesWithoutEvidence(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, rec := recorded(t, EvidenceRequired, m)
	rec.setFail(errFull)
	c := connect(t, r, latest)
	text := joined(t, c.tool("call_tool", `{"server":"s","tool":"echo"}`))
	if !strings.HasPrefix(text, "EVIDENCE_FAILED: s.echo was not called") || !strings.Contains(text, errFull.Error()) {
		t.Errorf("the client reads %q", text)
	}
	if seen := m.requests(); len(seen) > 0 {
		t.Errorf("the backend got %q without a durable decision", seen)
	}
	rec.setFail(nil)
	c.tool("call_tool", `{"server":"s","tool":"echo"}`)
	if got, want := rec.kinds(t), []string{"session-open", "gap", "decision", "outcome"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
	if gap := rec.only(t, receipts.KindGap); gap.member("count") != "1" || gap.member("reason") != `"calls not run: `+errFull.Error()+`"` {
		t.Errorf("gap %s", gap.predicate)
	}
}

func TestRequiredWithholdsAnUnrecordedResult(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, rec := recorded(t, EvidenceRequired, m)
	m.answer = func(context.Context, string, json.RawMessage, backend.Observer) (backend.Reply, error) {
		rec.setFail(errFull)
		return backend.Reply{Result: json.RawMessage(`{"content":[{"type":"text","text":"the answer"}]}`)}, nil
	}
	text := joined(t, connect(t, r, latest).tool("call_tool", `{"server":"s","tool":"echo"}`))
	if !strings.HasPrefix(text, "EVIDENCE_FAILED: s.echo ran") || strings.Contains(text, "the answer") {
		t.Errorf("the client reads %q", text)
	}
}

func TestOnRunsAndTellsTheGap(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, rec := recorded(t, EvidenceOn, m)
	c := connect(t, r, latest)
	c.tool("call_tool", `{"server":"s","tool":"echo"}`)
	rec.setFail(errFull)
	for range 3 {
		if text := joined(t, c.tool("call_tool", `{"server":"s","tool":"echo","args":{"n":1}}`)); !strings.Contains(text, `{"n":1}`) {
			t.Errorf("the client reads %q", text)
		}
	}
	rec.setFail(nil)
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if got, want := rec.kinds(t), []string{"session-open", "decision", "outcome", "gap", "session-close"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
	if gap := rec.only(t, receipts.KindGap); gap.member("count") != "3" || gap.member("from") == "" || !strings.HasPrefix(gap.member("reason"), `"calls without a decision: `) {
		t.Errorf("gap %s", gap.predicate)
	}
}

func TestEvidenceOffKeepsNothing(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, rec := recorded(t, EvidenceOff, m)
	c := connect(t, r, latest)
	c.tool("call_tool", `{"server":"s","tool":"echo"}`)
	if err := c.close(); err != nil || len(rec.kinds(t)) > 0 {
		t.Errorf("receipts %q (%v)", rec.kinds(t), err)
	}
}

func TestChangedConfigIsTold(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	rec := newRecorder(t, m.j)
	o := memories(map[string]*memory{"s": m})
	o.Config.Raw = []byte(`{"mcpServers":{"s":{}}}`)
	was := [32]byte{1}
	now, err := ConfigDigest([]byte("{ \"mcpServers\" : {\"s\":{ } } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	same := policy.AllowAll().Digest()
	o.Recorder, o.Previous = rec, Previous{Config: &was, Policy: &same}
	c := connect(t, newRouter(t, o), latest)
	c.tool("call_tool", `{"server":"s","tool":"echo"}`)
	changed := rec.only(t, receipts.KindChanged)
	if changed.member("what") != `"config"` || changed.member("now") != `"`+hexOf(now)+`"` || changed.member("was") != `"`+hexOf(was)+`"` {
		t.Errorf("receipt %s", changed.predicate)
	}
}

func TestTraceAndMetaGoOn(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, rec := recorded(t, EvidenceOn, m)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	c := connect(t, r, latest)
	c.request("tools/call", `{"name":"call_tool","_meta":{"traceparent":"`+trace+`","example.com/x":[1.0],"io.modelcontextprotocol/y":1,"progressToken":7},`+
		`"arguments":{"server":"s","tool":"echo","text":"a"}}`)
	if got, want := m.requests(), `{"name":"echo","arguments":{"text":"a"},"_meta":{"traceparent":"`+trace+`","example.com/x":[1.0]}}`; len(got) != 1 || got[0] != want {
		t.Errorf("the backend got %q, want %s", got, want)
	}
	for _, k := range []receipts.Kind{receipts.KindDecision, receipts.KindOutcome} {
		if got := rec.only(t, k).member("traceparent"); got != `"`+trace+`"` {
			t.Errorf("%s: traceparent %s", k, got)
		}
	}
}

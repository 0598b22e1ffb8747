//go:build unix

package backend_test

import (
	"strings"
	"testing"

	"toolguardian/proxy/backend"
)

const okResult = `{"content":[{"type":"text","text":"ok"}]}`

// The rows of the catalogue of hostile backends that concern one answer: what
// the server writes, and the result or error the caller gets.
func TestAnswers(t *testing.T) {
	cases := []struct{ name, script, result, err string }{
		{"banner, BOM and noise mid-session",
			"start\n> Server listening on stdio\n> \ufeff{\"level\":\"info\"\non tools/call\n> [debug] got it\n> {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":" + okResult + "}", okResult, ""},
		{"error with a null id fails the sole call",
			`on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, "", "Parse error"},
		{"missing jsonrpc", `on tools/call` + "\n" + `> {"id":$ID,"result":` + okResult + `}`, okResult, ""},
		{"error code a string", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID,"error":{"code":"EFAIL","message":"no luck"}}`, "", "no luck"},
		{"error a string", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID,"error":"just no"}`, "", "just no"},
		{"id as a string", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":"$ID","result":` + okResult + `}`, okResult, ""},
		{"id as a float", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID.0,"result":` + okResult + `}`, okResult, ""},
		{"nested too deep", "on tools/call\ndeep 200000", "", "cannot be read"},
		{"content a string", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID,"result":{"content":"plain"}}`, `{"content":"plain"}`, ""},
		{"structured content only", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID,"result":{"structuredContent":{"a":1}}}`, `{"structuredContent":{"a":1}}`, ""},
		{"result null", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID,"result":null}`, "", "null result"},
		{"neither result nor error", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID}`, "", "neither"},
		{"error null beside a result", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID,"error":null,"result":` + okResult + `}`, okResult, ""},
		{"bytes that decoding loses",
			`on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID,"result":{"z":1e400,"a":9007199254740993,"v":1.10,"a":2,"s":"\ud800","b64":"QUJD\nREVG","url":"data:image/png;base64,QQ=="}}`,
			`{"z":1e400,"a":9007199254740993,"v":1.10,"a":2,"s":"\ud800","b64":"QUJD\nREVG","url":"data:image/png;base64,QQ=="}`, ""},
		{"white space and invalid UTF-8", "on tools/call\n> {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{ \"t\" : \"\xff\xfe\" }}", "{ \"t\" : \"\xff\xfe\" }", ""},
		{"a batch of one", `on tools/call` + "\n" + `> [{"jsonrpc":"2.0","id":$ID,"result":` + okResult + `}]`, okResult, ""},
		{"carriage return", `on tools/call` + "\n" + `> {"jsonrpc":"2.0","id":$ID,"result":` + okResult + "}\r", okResult, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := up(t, script(c.script))
			r := mustCall(t, b, "echo", `{}`)
			if c.err == "" && (r.Err != nil || string(r.Result) != c.result) {
				t.Errorf("result %q, error %v; want %q", r.Result, r.Err, c.result)
			}
			if c.err != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), c.err)) {
				t.Errorf("error %v, want one with %q; result %.100s", r.Err, c.err, r.Result)
			}
			// The connection lives: the next request is answered.
			if r, err := b.Request(t.Context(), "ping", nil, backend.Observer{}); err != nil || r.Err != nil {
				t.Errorf("ping afterwards: %v %v", err, r.Err)
			}
		})
	}
}

func TestRawErrorIsKept(t *testing.T) {
	const raw = `{"code":"EFAIL","message":"no luck","data":{"big":9007199254740993}}`
	b := up(t, script(`on tools/call`+"\n"+`> {"jsonrpc":"2.0","id":$ID,"error":`+raw+`}`))
	r := mustCall(t, b, "echo", `{}`)
	if r.Err == nil || string(r.Err.Raw) != raw || r.Err.Code != -32603 {
		t.Errorf("got %+v, want code -32603 and the raw object", r.Err)
	}
}

func TestNoiseIsCounted(t *testing.T) {
	b := up(t, script("start\n> one\n> two\non tools/call\n> {three\n> {\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":"+okResult+"}"))
	mustCall(t, b, "echo", `{}`)
	if n := b.Status().Noise; n != 3 {
		t.Errorf("noise = %d, want 3", n)
	}
}

func TestMissingVersionIsFlagged(t *testing.T) {
	b := up(t, script(`on tools/call`+"\n"+`> {"id":$ID,"result":`+okResult+`}`))
	if f := strings.Join(b.Status().Flags, "\n"); strings.Contains(f, "jsonrpc") {
		t.Errorf("flagged before it did anything: %s", f)
	}
	mustCall(t, b, "echo", `{}`)
	if f := strings.Join(b.Status().Flags, "\n"); !strings.Contains(f, "jsonrpc") {
		t.Errorf("not flagged: %q", f)
	}
}

// R23: a reply to a notification, with a null id, concerns no call.
func TestReplyToANotificationIsIgnored(t *testing.T) {
	b := up(t, script(`on notifications/initialized`+"\n"+`> {"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"what?"}}`+"\n"+`> {"jsonrpc":"2.0","id":null,"result":{}}`))
	if got := said(t, mustCall(t, b, "echo", `{"a":1}`)); got != `{"a":1}` {
		t.Errorf("got %q", got)
	}
}

// R24: with two calls in flight nobody can say whose error it is.
func TestNullIDErrorWithTwoCallsFailsNone(t *testing.T) {
	b := up(t, script("on tools/call bad\n"+`> {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`+"\nwait ping\n"+`> {"jsonrpc":"2.0","id":$ID,"result":`+okResult+`}`+"\non tools/call other\nwait ping\n"+`> {"jsonrpc":"2.0","id":$ID,"result":`+okResult+`}`))
	results := make(chan string, 2)
	other := make(chan struct{})
	go func() {
		r, err := b.Request(t.Context(), "tools/call", callParams("other", `{}`), backend.Observer{Sent: func() { close(other) }})
		results <- outcome(r, err)
	}()
	<-other
	go func() {
		r, err := call(b, "bad", `{}`)
		results <- outcome(r, err)
	}()
	eventually(t, "the stray error is counted", func() bool { return b.Status().Stray == 1 })
	if _, err := b.Request(t.Context(), "ping", nil, backend.Observer{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := <-results; got != okResult {
			t.Errorf("got %s", got)
		}
	}
}

func outcome(r backend.Reply, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case r.Err != nil:
		return r.Err.Error()
	}
	return string(r.Result)
}

// R16: long lines.
func TestLongResults(t *testing.T) {
	b := up(t, script("on tools/call 1\nbig 1000000\non tools/call 17\nbig 17000000\non tools/call 70\nbig 70000000"))
	for tool, size := range map[string]int{"1": 1000000, "17": 17000000} {
		if got := len(said(t, mustCall(t, b, tool, `{}`))); got != size {
			t.Errorf("%s: %d bytes, want %d", tool, got, size)
		}
	}
	r := mustCall(t, b, "70", `{}`)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "cannot be read") {
		t.Errorf("over the bound: %v", r.Err)
	}
	if got := said(t, mustCall(t, b, "echo", `{"still":"here"}`)); got != `{"still":"here"}` {
		t.Errorf("after the long one: %q", got)
	}
}

// Long requests cross a pipe that is smaller than they are.
func TestLongArguments(t *testing.T) {
	b := up(t, script(""))
	args := `{"t":"` + strings.Repeat("y", 3<<20) + `"}`
	if got := said(t, mustCall(t, b, "echo", args)); got != args {
		t.Errorf("%d bytes came back, want %d", len(got), len(args))
	}
}

package front_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"toolguardian/proxy/front"
)

// wired is a client in a synctest bubble: after a send everything that can
// happen has happened.
type wired struct {
	t      *testing.T
	h      *scripted
	srv    *front.Server
	stop   context.CancelCauseFunc // what a signal would do
	in     *io.PipeWriter
	out    *io.PipeReader
	served chan error

	mu    sync.Mutex
	lines []string
}

func wireUp(t *testing.T, h *scripted, o front.Options) *wired {
	t.Helper()
	o.Handler, o.Info = h, front.Info{Name: "guardian", Version: "0.1"}
	srv, err := front.New(o)
	if err != nil {
		t.Fatal(err)
	}
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	ctx, stop := context.WithCancelCause(t.Context())
	w := &wired{t: t, h: h, srv: srv, stop: stop, in: clientOut, out: clientIn, served: make(chan error, 1)}
	go func() {
		err := srv.ServeStdio(ctx, serverIn, serverOut)
		serverIn.Close()
		serverOut.Close()
		w.served <- err
	}()
	go w.listen()
	t.Cleanup(func() {
		stop(nil)
		clientOut.Close()
		clientIn.Close()
	})
	return w
}

func (w *wired) listen() {
	r := bufio.NewReader(w.out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		w.mu.Lock()
		w.lines = append(w.lines, strings.TrimSuffix(line, "\n"))
		w.mu.Unlock()
	}
}

// send sends lines and returns what the server has said when all is quiet.
func (w *wired) send(lines ...string) []string {
	w.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(w.in, line+"\n"); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.quiet()
}

func (w *wired) quiet() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.lines
	w.lines = nil
	return lines
}

// want compares lines in order, each by its ending.
func want(t *testing.T, got []string, endings ...string) {
	t.Helper()
	same := len(got) == len(endings)
	for i := 0; same && i < len(got); i++ {
		same = strings.HasSuffix(got[i], endings[i])
	}
	if !same {
		t.Errorf("got %q, want %q", got, endings)
	}
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

func pingOf(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }

func callOf(id, tool string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"}}`
}

func cancelOf(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"r"}}`
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{})
		w.send(hello)
		want(t, w.send(callOf("5", "hold"), callOf(`"5"`, "hold"), callOf("1.0", "hold"), pingOf("9")), `"id":9,"result":{}}`)
		w.h.taken()

		want(t, w.send(cancelOf(`"5"`), pingOf("10")), `"id":10,"result":{}}`)
		if got := w.h.taken(); !slices.Equal(got, []string{`held "5": cancelled by the client`}) {
			t.Errorf("the exact id comes first, but %q", got)
		}
		// A client that cancels 1 means its 1.0.
		want(t, w.send(cancelOf("1"), cancelOf("77"), cancelOf("0"), pingOf("11")), `"id":11,"result":{}}`)
		if got := w.h.taken(); !slices.Equal(got, []string{`held 1.0: cancelled by the client`}) {
			t.Errorf("the same number in another form: %q", got)
		}
		want(t, w.send(cancelOf("5")))
		if got := w.h.taken(); !slices.Equal(got, []string{`held 5: cancelled by the client`}) {
			t.Errorf("%q", got)
		}
		w.in.Close()
		if err := <-w.served; err != nil {
			t.Error(err)
		}
	})
}

func TestSameIDTwiceInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{})
		w.send(hello, callOf("1", "hold"))
		want(t, w.send(callOf("1", "echo")), `"id":1,"result":{"content":[{"type":"text","text":"ECHO"}],"n":9007199254740993}}`)
		w.in.Close()
		want(t, afterDrain(w), `"id":1,"error":{"code":-32603,"message":"the client closed the connection"}}`)
	})
}

// afterDrain returns the last lines once the server has ended.
func afterDrain(w *wired) []string {
	w.t.Helper()
	if err := <-w.served; err != nil {
		w.t.Error(err)
	}
	return w.quiet()
}

func TestEndOfInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{Drain: 3 * time.Second})
		w.send(hello, callOf("1", "hold"))
		w.h.taken()
		begin := time.Now()
		w.in.Close()
		want(t, afterDrain(w), `"id":1,"error":{"code":-32603,"message":"the client closed the connection"}}`)
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("drained for %v", took)
		}
		got := w.h.taken()
		if !slices.Equal(got, []string{"held 1: the client closed the connection", "close 2025-11-25 closed"}) {
			t.Errorf("in order: %q", got)
		}
	})
}

func TestRequestsPipedInAreAnswered(t *testing.T) {
	h := newScripted()
	srv, err := front.New(front.Options{Handler: h, Info: front.Info{Name: "guardian"}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	in := strings.NewReader(hello + "\n" + callOf("1", "echo") + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if err := srv.ServeStdio(t.Context(), in, &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), `"result"`); n != 3 {
		t.Errorf("%d answers of 3: %s", n, out.String())
	}
}

func TestInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{})
		w.send(hello, callOf("1", "hold"))
		w.h.taken()
		signal := errors.New("terminated")
		w.stop(signal)
		if err := <-w.served; !errors.Is(err, signal) {
			t.Errorf("ServeStdio: %v", err)
		}
		want(t, w.quiet(), `"id":1,"error":{"code":-32603,"message":"terminated"}}`)
		if got := w.h.taken(); !slices.Equal(got, []string{"held 1: terminated", "close 2025-11-25 interrupted"}) {
			t.Errorf("in order: %q", got)
		}
	})
}

func TestClientThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{})
		w.send(hello, callOf("1", "hold"))
		w.h.taken()
		w.out.Close()
		w.send(pingOf("2"))
		if err := <-w.served; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("ServeStdio: %v", err)
		}
		if got := w.h.taken(); !slices.Equal(got, []string{"held 1: the client closed the connection", "close 2025-11-25 closed"}) {
			t.Errorf("in order: %q", got)
		}
	})
}

// A client that reads nothing more cannot keep us from stopping, be it told by
// a signal or by the end of its input.
func TestStopsThoughNobodyReads(t *testing.T) {
	stopsThoughNobodyReads := func(t *testing.T, end front.End, want error) {
		h := newScripted()
		srv, err := front.New(front.Options{Handler: h, Info: front.Info{Name: "guardian"}})
		if err != nil {
			t.Fatal(err)
		}
		serverIn, clientOut := io.Pipe()
		clientIn, serverOut := io.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		served := make(chan error, 1)
		go func() { served <- srv.ServeStdio(ctx, serverIn, serverOut) }()
		if _, err := io.WriteString(clientOut, hello+"\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if end == front.Interrupted {
			stop()
		} else {
			clientOut.Close()
		}
		if err := <-served; !errors.Is(err, want) {
			t.Errorf("ServeStdio: %v", err)
		}
		if got := h.taken(); got[len(got)-1] != "close 2025-11-25 "+string(end) {
			t.Errorf("in the end: %q", got)
		}
		clientOut.Close()
		clientIn.Close()
	}
	t.Run("signal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { stopsThoughNobodyReads(t, front.Interrupted, context.Canceled) })
	})
	t.Run("end of input", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { stopsThoughNobodyReads(t, front.Closed, nil) })
	})
}

// A session that is slow to open holds up what needs it, in order, and never
// a ping.
func TestSlowOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, gate := newScripted(), make(chan struct{})
		h.open = func() error { <-gate; return nil }
		w := wireUp(t, h, front.Options{})
		want(t, w.send(hello, callOf("1", "echo"), pingOf("2")), `"id":2,"result":{}}`)
		close(gate)
		got := w.quiet()
		if len(got) != 2 {
			t.Errorf("after the session opened: %q", got)
		}
		if n := len(h.taken()); n != 2 {
			t.Errorf("%d events for one session and one call", n)
		}
	})
}

func TestSessionThatDoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newScripted()
		h.open = func() error { return errors.New("evidence is locked") }
		w := wireUp(t, h, front.Options{})
		want(t, w.send(hello), `"id":0,"error":{"code":-32603,"message":"evidence is locked"}}`)
		want(t, w.send(callOf("1", "echo")), `"id":1,"error":{"code":-32603,"message":"evidence is locked"}}`)
		h.taken()
		h.open = nil
		if got := w.send(hello); len(got) != 1 || !strings.Contains(got[0], `"result"`) {
			t.Errorf("the second try: %q", got)
		}
		w.in.Close()
		want(t, afterDrain(w))
		if got := h.taken(); len(got) != 2 || got[1] != "close 2025-11-25 closed" {
			t.Errorf("only the session that opened is closed: %q", got)
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{MaxCalls: 1})
		w.send(hello, callOf("1", "hold"))
		want(t, w.send(callOf("2", "echo"), callOf("3", "hold"), pingOf("4")), `"id":4,"result":{}}`)
		w.h.taken()
		want(t, w.send(cancelOf("3")))
		if got := w.h.taken(); len(got) != 0 {
			t.Errorf("a call that waited was run: %q", got)
		}
		want(t, w.send(cancelOf("1")), `"n":9007199254740993}}`)

		for i := range 16 {
			w.send(callOf(fmt.Sprint(100+i), "hold"))
		}
		want(t, w.send(callOf("200", "echo")), `"id":200,"error":{"code":-32000,"message":"too many requests are unanswered on this connection; wait for some and send it again"}}`)
		want(t, w.send(pingOf("201")), `"id":201,"result":{}}`)
		w.stop(nil)
		<-w.served
	})
}

func TestLongMessageFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{MaxMessage: 4096})
		w.send(hello)
		long := `{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"name":"` + strings.Repeat("x", 100_000) + `"}}`
		got := w.send(long, pingOf("1"))
		if len(got) != 2 || !strings.Contains(got[0], `"id":"big","error":{"code":-32600`) {
			t.Errorf("got %q", got)
		}
		deep := `{"jsonrpc":"2.0","id":2,"method":"ping","params":{"a":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) + `}}`
		got = w.send(deep, pingOf("3"))
		if len(got) != 2 || !strings.Contains(got[0], `"id":2,"error":{"code":-32600`) {
			t.Errorf("got %q", got)
		}
	})
}

// Invalid UTF-8 and characters cut between two reads reach the handler as
// they were sent.
func TestArgumentBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{})
		w.send(hello)
		arguments := "{\"a\":\"h\xc3\xa9 \xff \\ud800\", \"n\":1.0}"
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":` + arguments + "}}\n"
		for _, b := range []byte(line) {
			if _, err := w.in.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		want(t, w.quiet(), `"id":1,"result":`+arguments+`}`)
	})
}

func TestListen(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}`
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{})
		want(t, w.send(listen), `"notifications/subscriptions/acknowledged","params":{`+meta+`,"notifications":{"toolsListChanged":true}}}`)
		w.srv.ToolsChanged()
		want(t, w.quiet(), `"notifications/tools/list_changed","params":{`+meta+`}}`)
		want(t, w.send(cancelOf(`"sub"`)))
		w.srv.ToolsChanged()
		want(t, w.quiet())

		w.send(listen)
		begin := time.Now()
		w.in.Close()
		got := afterDrain(w)
		if len(got) != 1 || !strings.Contains(got[0], `"id":"sub","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"`) {
			t.Errorf("at the end: %q", got)
		}
		if time.Since(begin) != 0 {
			t.Error("a subscription held up the end")
		}
	})
}

// A change that comes while the session is still opening follows the
// acknowledgement.
func TestChangeBeforeAcknowledgement(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	synctest.Test(t, func(t *testing.T) {
		h, gate := newScripted(), make(chan struct{})
		h.open = func() error { <-gate; return nil }
		w := wireUp(t, h, front.Options{})
		want(t, w.send(listen))
		w.srv.ToolsChanged()
		want(t, w.quiet())
		close(gate)
		const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":1}`
		want(t, w.quiet(),
			`acknowledged","params":{`+meta+`,"notifications":{"toolsListChanged":true}}}`,
			`"notifications/tools/list_changed","params":{`+meta+`}}`)
	})
}

func TestBatchOmitsWhatWasCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wireUp(t, newScripted(), front.Options{})
		w.send(strings.Replace(hello, "2025-11-25", "2025-03-26", 1))
		want(t, w.send(`[`+callOf("1", "hold")+`,`+callOf("2", "echo")+`,`+callOf("3", "hold")+`]`))
		want(t, w.send(cancelOf("3")))
		want(t, w.send(cancelOf("1")),
			`[{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"ECHO"}],"n":9007199254740993}}]`)
		want(t, w.send(`[`+callOf("4", "hold")+`]`))
		want(t, w.send(cancelOf("4")))
	})
}

// Many calls at once, with progress: every id is answered once, progress
// grows and never follows the reply.
func TestManyAtOnce(t *testing.T) {
	const calls = 300
	p := serve(t, newScripted(), front.Options{MaxCalls: 32})
	p.send(hello)
	p.line()
	go func() {
		for i := range calls {
			fmt.Fprintf(p.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":%d}}}`+"\n", i, i)
		}
	}()
	progress, answered := make([]int, calls), make([]bool, calls)
	for left := calls; left > 0; {
		var m struct {
			ID     *int
			Params struct{ ProgressToken int }
		}
		line := strings.Replace(p.line(), "1e400", "1e300", 1)
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch {
		case m.ID == nil && answered[m.Params.ProgressToken]:
			t.Fatalf("progress after the reply: %s", line)
		case m.ID == nil:
			progress[m.Params.ProgressToken]++
		case answered[*m.ID]:
			t.Fatalf("answered twice: %s", line)
		default:
			answered[*m.ID] = true
			left--
		}
	}
	for i, n := range progress {
		if n != 3 {
			t.Errorf("call %d had %d steps of progress", i, n)
		}
	}
	if extra := p.rest(); len(extra) != 0 {
		t.Errorf("more lines: %q", extra)
	}
}

// seeing hands every session it is called with to the test.
type seeing struct {
	*scripted
	sessions chan *front.Session
}

func (h seeing) OpenSession(_ context.Context, s *front.Session) error {
	h.sessions <- s
	return nil
}

func (h seeing) CallTool(_ context.Context, s *front.Session, _ front.Call) (json.RawMessage, error) {
	h.sessions <- s
	return json.RawMessage(`{}`), nil
}

func (h seeing) CloseSession(_ context.Context, s *front.Session, _ front.End) error {
	h.sessions <- s
	return nil
}

// Each connection is a session of its own, with the principal, the same on
// every call.
func TestSessionIsCarried(t *testing.T) {
	h := seeing{newScripted(), make(chan *front.Session, 16)}
	srv, err := front.New(front.Options{Handler: h, Info: front.Info{Name: "guardian"}, Principal: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 2 {
		in := strings.NewReader(hello + "\n" + callOf("1", "t") + "\n" + callOf("2", "t") + "\n")
		if err := srv.ServeStdio(t.Context(), in, io.Discard); err != nil {
			t.Fatal(err)
		}
		first := <-h.sessions
		id, err := uuid.Parse(first.ID)
		if err != nil || id.Version() != 7 || first.Principal != "someone" || seen[first.ID] {
			t.Errorf("session %+v, %v", first, err)
		}
		seen[first.ID] = true
		for range 3 {
			if next := <-h.sessions; next != first {
				t.Errorf("another session: %+v", next)
			}
		}
	}
}

func TestLargeCall(t *testing.T) {
	p := serve(t, newScripted(), front.Options{})
	p.send(hello)
	p.line()
	arguments := `{"text":"` + strings.Repeat("0123456789é", 1_500_000) + `"}`
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(p.in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":`+arguments+"}}\n")
		sent <- err
	}()
	if got := p.line(); got != `{"jsonrpc":"2.0","id":1,"result":`+arguments+`}` {
		t.Errorf("%d bytes came back for %d", len(got), len(arguments))
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestTerminal(t *testing.T) {
	var line bytes.Buffer
	srv, err := front.New(front.Options{Handler: newScripted(), Info: front.Info{Name: "guardian"}, Terminal: &line})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := srv.ServeStdio(t.Context(), strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
	if strings.Count(line.String(), "\n") != 1 || !strings.Contains(line.String(), "MCP") || out.Len() != 0 {
		t.Errorf("terminal %q, client %q", line.String(), out.String())
	}
}

func TestOptions(t *testing.T) {
	info := front.Info{Name: "n"}
	for _, o := range []front.Options{
		{},
		{Handler: newScripted()},
		{Info: info},
		{Handler: newScripted(), Info: info, MaxCalls: -1},
		{Handler: newScripted(), Info: info, MaxMessage: -1},
		{Handler: newScripted(), Info: info, Drain: -1},
	} {
		if _, err := front.New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

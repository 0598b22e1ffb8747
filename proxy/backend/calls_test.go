//go:build unix

package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"toolguardian/proxy/backend"
)

// P1: both timeouts hold against a silent server, and the process lives.
func TestCallTimeout(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record")
	spec := script("on tools/call stuck\n", "-record", file)
	spec.CallTimeout = 200 * time.Millisecond
	b := up(t, spec)
	pid := b.Status().PID
	began := time.Now()
	_, err := call(b, "stuck", `{}`)
	callError(t, err, backend.ErrTimeout, true)
	if d := time.Since(began); d < 200*time.Millisecond || d > 3*time.Second {
		t.Errorf("it took %v", d)
	}
	eventually(t, "the server is told", func() bool {
		return len(linesWith(recorded(t, file), "notifications/cancelled")) == 1
	})
	mustCall(t, b, "echo", `{}`)
	if got := b.Status().PID; got != pid {
		t.Errorf("pid %d became %d: a timeout must not end the process", pid, got)
	}
}

// A server that reads nothing fills the pipe: the caller still comes back, and
// half a message stays one message.
func TestTimeoutWhileWriting(t *testing.T) {
	t.Parallel()
	spec := script("on ping\nexit 0\n")
	spec.Command = "/bin/sh"
	// The first two requests are answered by a shell that then stops reading.
	spec.Args = []string{"-c", `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}'
read l; read l; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}'; sleep 60`}
	spec.Env = []string{"PATH=/usr/bin:/bin"}
	spec.CallTimeout = 200 * time.Millisecond
	b := up(t, spec)
	big := `{"t":"` + strings.Repeat("y", 1<<20) + `"}`
	_, err := call(b, "any", big)
	callError(t, err, backend.ErrTimeout, true)
	_, err = call(b, "any", `{}`) // the turn is taken by the rest of the first
	callError(t, err, backend.ErrTimeout, false)
}

// R41: the owner of the call is told, with its own id, soon; a late reply is
// dropped; others hear nothing.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	mine, other := filepath.Join(dir, "mine"), filepath.Join(dir, "other")
	late := "on tools/call slow\nwait notifications/cancelled\n" + `> {"jsonrpc":"2.0","id":$ID,"result":{"late":true}}`
	b := up(t, script(late, "-record", mine))
	o := up(t, script(late, "-record", other))
	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("the client asked")
	var at time.Time
	arrived := make(chan backend.Reply, 2)
	_, err := b.Request(ctx, "tools/call", callParams("slow", `{}`), backend.Observer{Sent: func() {
		at = time.Now()
		cancel(because)
	}, Late: func(r backend.Reply) { arrived <- r }})
	if e := callError(t, err, backend.ErrCancelled, true); !errors.Is(e, because) {
		t.Errorf("cause lost: %v", err)
	}
	eventually(t, "the server is told", func() bool {
		return len(linesWith(recorded(t, mine), "notifications/cancelled")) == 1
	})
	if d := time.Since(at); d > 100*time.Millisecond {
		t.Errorf("told after %v", d)
	}
	requests := linesWith(recorded(t, mine), "tools/call")
	var sent struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(requests[0]), &sent); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`"requestId":%s`, sent.ID)
	if got := linesWith(recorded(t, mine), "notifications/cancelled"); !strings.Contains(got[0], want) {
		t.Errorf("cancelled %s, want %s", got, want)
	}
	eventually(t, "the late reply is counted", func() bool { return b.Status().Stray == 1 })
	if r := <-arrived; string(r.Result) != `{"late":true}` {
		t.Errorf("late reply %s", r.Result)
	}
	mustCall(t, b, "echo", `{}`)
	mustCall(t, o, "echo", `{}`)
	if got := linesWith(recorded(t, other), "cancelled"); len(got) != 0 {
		t.Errorf("a stranger was told: %s", got)
	}
}

func TestCancelledBeforehandIsNotSent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	b := up(t, script("", "-record", file))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Request(ctx, "tools/call", callParams("echo", `{}`), backend.Observer{Sent: func() { t.Error("Sent was called") }})
	callError(t, err, backend.ErrCancelled, false)
	mustCall(t, b, "slow", `{"ms":1}`)
	if got := linesWith(recorded(t, file), `"echo"`); len(got) != 0 {
		t.Errorf("it was sent: %s", got)
	}
}

// R40, backend's half: progress comes in order, before the result, and
// restarts the clock.
func TestProgress(t *testing.T) {
	t.Parallel()
	spec := script("")
	spec.CallTimeout = 250 * time.Millisecond
	b := up(t, spec)
	var got []string
	seen := func(p json.RawMessage) { got = append(got, string(p)) }
	r, err := b.Request(t.Context(), "tools/call", callParams("progress", `{"n":5,"ms":100}`), backend.Observer{Progress: seen})
	if err != nil {
		t.Fatal(err)
	}
	if said(t, r) != "done" || len(got) != 5 {
		t.Fatalf("%q after %d notices", said(t, r), len(got))
	}
	for i, p := range got {
		if !strings.Contains(p, fmt.Sprintf(`"progress":%d,`, i+1)) {
			t.Errorf("notice %d is %s", i, p)
		}
	}
}

// D4: a server cannot live on progress for ever.
func TestProgressHasAnEnd(t *testing.T) {
	t.Parallel()
	spec := script("")
	spec.CallTimeout = 100 * time.Millisecond
	b := up(t, spec)
	var n atomic.Int64
	began := time.Now()
	_, err := b.Request(t.Context(), "tools/call", callParams("progress", `{"n":1000,"ms":20}`), backend.Observer{Progress: func(json.RawMessage) { n.Add(1) }})
	callError(t, err, backend.ErrTimeout, true)
	if d := time.Since(began); d < 900*time.Millisecond || d > 5*time.Second || n.Load() < 10 {
		t.Errorf("it lasted %v with %d notices, want about a second", d, n.Load())
	}
}

func TestLogReachesOneCall(t *testing.T) {
	b := up(t, script("on tools/call\n"+`> {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":9007199254740993}}`+"\ndefault"))
	var got []string
	o := backend.Observer{Log: func(p json.RawMessage) { got = append(got, string(p)) }}
	if _, err := b.Request(t.Context(), "tools/call", callParams("echo", `{}`), o); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != `{"level":"info","data":9007199254740993}` {
		t.Errorf("got %s", got)
	}
}

// A respawned server is told the level again.
func TestLogLevelOutlivesARespawn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record")
	b := up(t, script("on logging/setLevel\n"+`> {"jsonrpc":"2.0","id":$ID,"result":{}}`, "-record", file))
	if _, err := b.Request(t.Context(), "logging/setLevel", []byte(`{"level":"debug"}`), backend.Observer{}); err != nil {
		t.Fatal(err)
	}
	_, err := call(b, "exit", `{"Code":1}`)
	callError(t, err, backend.ErrDied, true)
	mustCall(t, b, "echo", `{}`)
	if got := linesWith(recorded(t, file), `"logging/setLevel","params":{"level":"debug"}`); len(got) != 2 {
		t.Errorf("told %d times: %s", len(got), got)
	}
}

// D3: what the server asks in mid-call is answered at once.
func TestServerRequests(t *testing.T) {
	b := up(t, script(""))
	for method, want := range map[string]string{
		"ping": `"q-1" {}`, "roots/list": `"q-1" {"roots":[]}`,
		"sampling/createMessage": "-32601", "elicitation/create": "-32601", "no/such": "-32601",
	} {
		got := said(t, mustCall(t, b, "ask", `{"Method":"`+method+`"}`))
		if !strings.HasPrefix(got, `"q-1" `) || !strings.Contains(got, want) {
			t.Errorf("%s: answered %s, want %s", method, got, want)
		}
	}
}

// P2: a slow call holds nothing up.
func TestConcurrentCalls(t *testing.T) {
	b := up(t, script("on tools/call slow\nwait notifications/never\n"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	sent := make(chan struct{})
	go func() {
		_, err := b.Request(ctx, "tools/call", callParams("slow", `{}`), backend.Observer{Sent: func() { close(sent) }})
		done <- err
	}()
	<-sent
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			args := fmt.Sprintf(`{"i":%d}`, i)
			r, err := call(b, "echo", args)
			if err != nil || said(t, r) != args {
				t.Errorf("call %d: %v %s", i, err, r.Result)
			}
		})
	}
	wg.Wait()
	cancel()
	callError(t, <-done, backend.ErrCancelled, true)
}

func TestMaxConcurrent(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record")
	spec := script("on tools/call a\nwait ping\ndefault\n", "-record", file)
	spec.MaxConcurrent = 1
	spec.CallTimeout = 400 * time.Millisecond
	b := up(t, spec)
	done := make(chan error, 1)
	sent := make(chan struct{})
	go func() {
		_, err := b.Request(t.Context(), "tools/call", callParams("a", `{}`), backend.Observer{Sent: func() { close(sent) }})
		done <- err
	}()
	<-sent
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := b.Request(ctx, "tools/call", callParams("b", `{}`), backend.Observer{})
	callError(t, err, backend.ErrTimeout, false)
	callError(t, <-done, backend.ErrTimeout, true) // nobody pinged
	mustCall(t, b, "c", `{}`)
	if got := linesWith(recorded(t, file), `"b"`); len(got) != 0 {
		t.Errorf("the second call was sent: %s", got)
	}
}

// R26, P8: a crash in mid-call fails it at once and says all; later calls get
// a new process, and the dead call is not sent again (C10).
func TestDiesInMidCall(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "record")
	b := up(t, script("on tools/call crash\nstderr panic: index out of range\nexit 7", "-record", file))
	began := time.Now()
	_, err := call(b, "crash", `{}`)
	e := callError(t, err, backend.ErrDied, true)
	if time.Since(began) > 2*time.Second {
		t.Errorf("it took %v", time.Since(began))
	}
	if e.Exit == nil || e.Exit.Code != 7 || len(e.Stderr) != 1 || e.Stderr[0] != "panic: index out of range" {
		t.Errorf("exit %v, stderr %q", e.Exit, e.Stderr)
	}
	if !strings.Contains(err.Error(), "exit code 7") || !strings.Contains(err.Error(), "outcome is unknown") {
		t.Errorf("text: %v", err)
	}
	mustCall(t, b, "echo", `{}`)
	if st := b.Status(); st.State != backend.Up || st.Respawns != 1 {
		t.Errorf("%s after %d respawns", st.State, st.Respawns)
	}
	if got := linesWith(recorded(t, file), `"crash"`); len(got) != 1 {
		t.Errorf("sent %d times: %s", len(got), got)
	}
}

// R26: two crashes within a minute are enough.
func TestTwoCrashesAreDown(t *testing.T) {
	t.Parallel()
	b := up(t, script(""))
	for range 2 {
		_, err := call(b, "exit", `{"Code":1}`)
		callError(t, err, backend.ErrDied, true)
	}
	eventually(t, "DOWN", func() bool { return b.Status().State == backend.Down })
	began := time.Now()
	_, err := call(b, "echo", `{}`)
	callError(t, err, backend.ErrDown, false)
	if time.Since(began) > time.Second || !strings.Contains(err.Error(), "told to exit with 1") {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if len(b.Tools()) == 0 {
		t.Error("the catalogue was lost with the process")
	}
}

// A server that closes its stdout can never answer: it is ended.
func TestClosedStdout(t *testing.T) {
	t.Parallel()
	b := up(t, script("on tools/call\nclose\n"))
	_, err := call(b, "echo", `{}`)
	callError(t, err, backend.ErrDied, true)
}

// A reply written just before the exit still counts.
func TestReplyBeforeExit(t *testing.T) {
	b := up(t, script("on tools/call\nbig 500000\nexit 0"))
	if got := len(said(t, mustCall(t, b, "echo", `{}`))); got != 500000 {
		t.Errorf("%d bytes", got)
	}
}

// D4: a server that stopped answering anything is replaced.
func TestFrozenServerIsReplaced(t *testing.T) {
	t.Parallel()
	once := filepath.Join(t.TempDir(), "once")
	spec := script("on tools/call stuck\non ping\nonce " + once + "\n")
	spec.CallTimeout = 200 * time.Millisecond
	b := up(t, spec)
	pid := b.Status().PID
	_, err := call(b, "stuck", `{}`)
	callError(t, err, backend.ErrTimeout, true)
	eventually(t, "a new process", func() bool { st := b.Status(); return st.State == backend.Up && st.PID != pid })
	mustCall(t, b, "echo", `{}`)
}

// Nothing the server pours out holds a caller up, and what it asks too fast is
// counted.
func TestFloodOfRequests(t *testing.T) {
	ask := `> {"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}` + "\n"
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, []byte("on tools/call flood\n"+strings.Repeat(ask, 2000)+"default"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := up(t, script("", "-script", file))
	if got := said(t, mustCall(t, b, "flood", `{"a":1}`)); got != `{"a":1}` {
		t.Errorf("got %q", got)
	}
}

// Many backends start side by side, and a dead one delays nobody (R21).
func TestParallelStart(t *testing.T) {
	sup := backend.NewSupervisor("", nil)
	defer sup.Close()
	deaf := script("", "-mode", "deaf")
	deaf.StartTimeout = 20 * time.Second
	o := backend.Options{Supervisor: sup}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dead := backend.Start(ctx, deaf, o)
	began := time.Now()
	var all []*backend.Backend
	for range 8 {
		all = append(all, backend.Start(ctx, script("on initialize\nsleep 300ms\ndefault"), o))
	}
	if d := time.Since(began); d > 100*time.Millisecond {
		t.Errorf("Start took %v", d)
	}
	for _, b := range all {
		ready(t, b)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("eight starts of 300 ms took %v", d)
	}
	if st := dead.Status().State; st != backend.Starting {
		t.Errorf("the deaf one is %s", st)
	}
	cancel()
	for _, b := range append(all, dead) {
		b.Close(t.Context())
	}
}

// However a cancel and a reply meet, each reply is seen exactly once: by the
// caller, or as a late one.
func TestCancelRacesWithReply(t *testing.T) {
	s := script("")
	s.Args = []string{"-mode", "echo"}
	b := up(t, s)
	const calls = 2000
	var mu sync.Mutex
	var answered, late, unsent, waiting int
	add := func(n *int) {
		mu.Lock()
		defer mu.Unlock()
		*n++
	}
	for i := range calls {
		ctx, cancel := context.WithCancel(t.Context())
		o := backend.Observer{Sent: func() { time.AfterFunc(time.Duration(i%40)*time.Microsecond, cancel) }, Late: func(backend.Reply) { add(&late) }}
		_, err := b.Request(ctx, "tools/call", callParams("x", `{}`), o)
		switch {
		case err == nil:
			add(&answered)
		case errors.Is(err, backend.ErrNotSent):
			add(&unsent)
		default:
			waiting++
		}
		cancel()
	}
	// The server answers in order, so what it owes has come before this.
	mustCall(t, b, "x", `{}`)
	mu.Lock()
	defer mu.Unlock()
	if late != waiting || answered+late+unsent != calls {
		t.Errorf("of %d calls %d were answered, %d late of %d given up, %d not sent", calls, answered, late, waiting, unsent)
	}
	if late == 0 || answered == 0 {
		t.Skipf("no race came up here: %d late, %d answered", late, answered)
	}
}

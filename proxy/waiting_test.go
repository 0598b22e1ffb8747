package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/front"
	"toolguardian/receipts"
)

// starting is a backend that is not up before ready is closed.
func starting(j *diary, tools ...string) *memory {
	m := newMemory(j, tools...)
	m.ready = make(chan struct{})
	return m
}

// The tool list does not wait for anything, and never changes.
func TestToolListDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := starting(&diary{}, echoTool)
		r, rec := recorded(t, EvidenceRequired, slow)
		rec.delay = 3 * time.Second // not even for the chain
		begin := time.Now()
		c := connect(t, r, latest)
		before := c.request("tools/list", `{}`).Result
		if took := time.Since(begin); took > 0 {
			t.Errorf("tools/list waited %v", took)
		}
		slow.rise()
		c.tool("list_capabilities", `{}`)
		if took := time.Since(begin); took > 0 {
			t.Errorf("list_capabilities waited %v", took)
		}
		if after := c.request("tools/list", `{}`).Result; string(before) != string(after) {
			t.Errorf("the list changed from %s to %s", before, after)
		}
	})
}

func TestDiscoveryWaitsForAStartingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := starting(&diary{}, echoTool), newMemory(nil, `{"name":"quick"}`)
		o := memories(map[string]*memory{"slow": slow, "quick": quick})
		c := connect(t, newRouter(t, o), latest)
		begin := time.Now()
		if text := joined(t, c.tool("list_capabilities", `{"server":"quick"}`)); !strings.Contains(text, "quick.quick") || time.Since(begin) > 0 {
			t.Errorf("after %v: %s", time.Since(begin), text)
		}
		text := joined(t, c.tool("list_capabilities", `{}`))
		if took := time.Since(begin); took != 10*time.Second || !strings.Contains(text, "[slow] STARTING") || !strings.Contains(text, "[quick] 1 tools") {
			t.Errorf("after %v: %s", took, text)
		}
		time.AfterFunc(3*time.Second, func() { slow.rise() })
		text = joined(t, c.tool("search_capabilities", `{"query":"echo"}`))
		if took := time.Since(begin); took != 13*time.Second || !strings.Contains(text, "slow.echo") {
			t.Errorf("after %v: %s", took, text)
		}
	})
}

func TestCallWaitsForItsServerWithProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := starting(&diary{}, echoTool)
		r, _ := recorded(t, EvidenceOn, slow)
		c := connect(t, r, latest)
		time.AfterFunc(42*time.Second, func() { slow.rise() })
		begin := time.Now()
		m := c.request("tools/call", `{"name":"call_tool","_meta":{"progressToken":1.0},"arguments":{"server":"s","tool":"echo","text":"hi"}}`)
		if took := time.Since(begin); took != 42*time.Second || !strings.Contains(string(m.Result), "hi") {
			t.Errorf("after %v: %s", took, m.Raw)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.notes) != 9 {
			t.Fatalf("%d progress notes in 42 s, want 9", len(c.notes))
		}
		for _, n := range c.notes {
			if n.Method != "notifications/progress" || !strings.Contains(string(n.Params), `"progressToken":1.0`) || !strings.Contains(string(n.Params), "waiting for server s") {
				t.Errorf("note %s", n.Raw)
			}
		}
	})
}

func TestCallToAServerThatNeverCameUp(t *testing.T) {
	m := starting(&diary{})
	m.status = backend.Status{State: backend.Unknown, StderrTail: []string{"no module named x"},
		Err: &backend.StartError{Server: "s", Step: "initialize", Err: errors.New("ended"), Exit: &backend.Exit{Code: 1}, Stderr: []string{"no module named x"}, Hint: "pass TOKEN"}}
	close(m.ready)
	r, _ := recorded(t, EvidenceOn, m)
	c := connect(t, r, latest)
	for _, call := range [][2]string{{"call_tool", `{"server":"s","tool":"echo"}`}, {"describe_tool", `{"server":"s","tool":"echo"}`}, {"list_capabilities", `{}`}} {
		text := joined(t, c.tool(call[0], call[1]))
		if !strings.Contains(text, "[s] UNKNOWN: could not start: initialize: ended (exit code 1); pass TOKEN -- its stderr: no module named x") || strings.Count(text, "no module named x") != 1 {
			t.Errorf("%s: %s", call[0], text)
		}
	}
}

// Calls run side by side, and a ping passes them.
func TestNothingWaitsForAnotherCall(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	release := make(chan struct{})
	m.answer = func(ctx context.Context, _ string, params json.RawMessage, o backend.Observer) (backend.Reply, error) {
		if strings.Contains(string(params), "wait") {
			<-release
		}
		return echo(ctx, "", params, o)
	}
	r, rec := recorded(t, EvidenceRequired, m)
	c := connect(t, r, latest)
	_, slow := c.start("tools/call", `{"name":"call_tool","arguments":{"server":"s","tool":"echo","text":"wait"}}`)
	eventually(t, "the slow call", func() bool { return len(m.requests()) == 1 })
	c.request("ping", `{}`)
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			if text := joined(t, c.tool("call_tool", fmt.Sprintf(`{"server":"s","tool":"echo","text":"%d"}`, i))); !strings.Contains(text, fmt.Sprintf(`"text":"%d"`, i)) {
				t.Errorf("call %d got %s", i, text)
			}
		})
	}
	all.Wait()
	close(release)
	<-slow
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	kinds := rec.kinds(t)
	if kinds[0] != "session-open" || kinds[len(kinds)-1] != "session-close" || len(kinds) != 2+2*33 {
		t.Errorf("receipts %q", kinds)
	}
}

func TestHeartbeatsWhileASessionIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(&diary{}, echoTool)
		rec := newRecorder(t, m.j)
		o := memories(map[string]*memory{"s": m})
		o.Recorder, o.Heartbeat = rec, 2*time.Minute
		c := connect(t, newRouter(t, o), latest)
		time.Sleep(5 * time.Minute)
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if got, want := rec.kinds(t), []string{"session-open", "heartbeat", "heartbeat", "session-close"}; !slices.Equal(got, want) {
			t.Errorf("receipts %q, want %q", got, want)
		}
		if got := rec.only(t, receipts.KindSessionOpen).member("heartbeat"); got != "120" {
			t.Errorf("the session promises a heartbeat every %s s", got)
		}
		if got := rec.only(t, receipts.KindSessionClose).member("time", "mono"); got != `"300000000000"` {
			t.Errorf("the session lasted %s ns", got)
		}
	})
}

// Nothing of a session follows its last receipt.
func TestClosingWaitsForReceiptsUnderWay(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, rec := recorded(t, EvidenceRequired, m)
	s := &front.Session{ID: "one", Principal: "p"}
	if err := r.OpenSession(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	m.answer = func(ctx context.Context, _ string, params json.RawMessage, o backend.Observer) (backend.Reply, error) {
		<-release
		return echo(ctx, "", params, o)
	}
	r.startAll(t.Context())
	call := front.Call{Name: callTool, Arguments: json.RawMessage(`{"server":"s","tool":"echo"}`)}
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := r.CallTool(t.Context(), s, call); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the call", func() bool { return len(m.requests()) == 1 })
	all.Go(func() {
		if err := r.CloseSession(t.Context(), s, front.Interrupted); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the session's end", func() bool { _, err := r.CallTool(t.Context(), s, front.Call{Name: listTool}); return err != nil })
	close(release)
	all.Wait()
	if got, want := rec.kinds(t), []string{"session-open", "decision", "outcome", "session-close"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
	if end := rec.only(t, receipts.KindSessionClose).member("end"); end != `"interrupted"` {
		t.Errorf("the session ended %s", end)
	}
}

// A clock that goes back is written as it was read, and flagged.
func TestClockThatGoesBack(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	c := clock{now: func() time.Time { return at }, opened: at}
	first := c.read()
	at = at.Add(-time.Hour)
	second := c.read()
	at = at.Add(time.Minute)
	third := c.read()
	if first.Back || !second.Back || third.Back {
		t.Errorf("flags %v %v %v", first.Back, second.Back, third.Back)
	}
	if !second.Wall.Equal(first.Wall.Add(-time.Hour)) {
		t.Errorf("the clock read %v", second.Wall)
	}
}

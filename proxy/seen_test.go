package proxy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toolguardian/policy"
)

// seenBefore are options of a second run, whose server "slow" takes its time.
func seenBefore(t *testing.T, slow *memory, tools ...string) Options {
	t.Helper()
	first := newRouter(t, memories(map[string]*memory{"slow": newMemory(nil, tools...), "quick": newMemory(nil, `{"name":"quick"}`)}))
	connect(t, first, latest).tool("list_capabilities", `{}`)
	b, err := json.Marshal(first.Seen())
	if err != nil {
		t.Fatal(err)
	}
	o := memories(map[string]*memory{"slow": slow, "quick": newMemory(nil, `{"name":"quick"}`)})
	if err := json.Unmarshal(b, &o.Seen); err != nil {
		t.Fatal(err)
	}
	return o
}

const oddTool = `{ "name":"odd<&>", "inputSchema":{"type":"object"}, "n":1.0, "big":9007199254740993}`

// Beyond the wait, what a server showed in the last run is shown again, and
// marked; what it shows once it is up takes its place.
func TestLastSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := starting(nil, sayTool)
		c := connect(t, newRouter(t, seenBefore(t, slow, echoTool, oddTool)), latest)
		begin := time.Now()
		all := joined(t, c.tool("list_capabilities", `{}`))
		if took := time.Since(begin); took != 10*time.Second || !strings.Contains(all, "[slow] STARTING") || !strings.Contains(all, "last seen: 2 tools: echo, odd<&>") {
			t.Errorf("after %v: %s", took, all)
		}
		if one := joined(t, c.tool("list_capabilities", `{"server":"slow"}`)); !strings.Contains(one, "STARTING") || !strings.Contains(one, "slow.echo") {
			t.Errorf("listed as %s", one)
		}
		const mark = "notice: server slow is still starting; what is shown of it was last seen in an earlier run."
		if hits := texts(t, c.tool("search_capabilities", `{"query":"echo"}`)); hits[0] != mark || !strings.Contains(hits[1], "slow.echo") {
			t.Errorf("found %q", hits)
		}
		if full := texts(t, c.tool("describe_tool", `{"server":"slow","tool":"odd<&>","detail":"full"}`)); full[0] != oddTool || full[1] != mark {
			t.Errorf("described as %q", full)
		}
		slow.rise()
		if now := joined(t, c.tool("list_capabilities", `{"server":"slow"}`)); !strings.Contains(now, "slow.say") || strings.Contains(now, "echo") || strings.Contains(now, "last seen") {
			t.Errorf("listed as %s", now)
		}
	})
}

// A remembered tool is not called: its server may have changed.
func TestRememberedToolsAreNotCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := seenBefore(t, starting(nil, echoTool), echoTool)
		o.StartTimeout = 30 * time.Second
		c := connect(t, newRouter(t, o), latest)
		begin := time.Now()
		said := joined(t, c.tool("call_tool", `{"server":"slow","tool":"echo"}`))
		if took := time.Since(begin); took != 30*time.Second || !strings.HasPrefix(said, "NOT_SENT: server slow has not started") {
			t.Errorf("after %v: %s", took, said)
		}
	})
}

func TestLastSeenIsForTheSameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := seenBefore(t, starting(nil, echoTool), echoTool)
		for i := range other.Config.Servers {
			other.Config.Servers[i].Command = "another"
		}
		denied := seenBefore(t, starting(nil, echoTool), echoTool)
		var err error
		if denied.Policy, err = policy.Parse([]byte(`{"servers":{"slow":{"deny":["echo"]}}}`)); err != nil {
			t.Fatal(err)
		}
		for name, o := range map[string]Options{"another command": other, "a denied tool": denied} {
			c := connect(t, newRouter(t, o), latest)
			if all := joined(t, c.tool("list_capabilities", `{}`)); strings.Contains(all, "echo") {
				t.Errorf("%s: %s", name, all)
			}
		}
	})
}

// What is kept is bounded, and what was not reached in this run is not lost.
func TestSeenIsBounded(t *testing.T) {
	large := `{"name":"large","description":"` + strings.Repeat("x", maxSeen-100) + `"}`
	o := memories(map[string]*memory{"a": newMemory(nil, large), "b": newMemory(nil, echoTool), "c": starting(nil), "d": newMemory(nil, large), "e": newMemory(nil, "{\"name\":\"\xff\"}")})
	o.Seen = map[string]Seen{"c": {Command: "c", Tools: []string{"{}"}}, "b": {Command: "old", Tools: []string{"{}"}}, "elsewhere": {Command: "z", Tools: []string{"{}"}}}
	o.Wait = time.Millisecond
	r := newRouter(t, o)
	connect(t, r, latest).tool("list_capabilities", `{}`)
	kept, size := r.Seen(), 0
	for _, s := range kept {
		size += s.size()
	}
	names := strings.Join(slices.Sorted(maps.Keys(kept)), " ")
	if size > maxSeen || names != "a c elsewhere" || kept["c"].Command != "c" || kept["elsewhere"].Command != "z" {
		t.Errorf("%d bytes of %s are kept", size, names)
	}
}

// What a server shows can be kept soon, not only at the end, and a change only
// once it was told.
func TestLearnt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(&diary{}, echoTool)
		o := memories(map[string]*memory{"s": m})
		o.Evidence, o.Recorder = EvidenceOn, newRecorder(t, &diary{})
		var learnt []string
		o.Learnt = func(r *Router) {
			d := r.Catalogues()["s"]
			learnt = append(learnt, strings.Join(r.Seen()["s"].Tools, " "))
			if want := definitionsDigest("s", []json.RawMessage{[]byte(echoTool)}); d != want {
				t.Errorf("an untold change is kept: %x", d)
			}
		}
		r := newRouter(t, o)
		c := connect(t, r, latest)
		time.Sleep(settling)
		synctest.Wait()
		if len(learnt) != 1 || learnt[0] != echoTool {
			t.Fatalf("learnt %q", learnt)
		}
		m.tools = []json.RawMessage{[]byte(sayTool)}
		m.changed()
		time.Sleep(settling)
		synctest.Wait()
		if len(learnt) != 2 || learnt[1] != sayTool {
			t.Errorf("learnt %q", learnt)
		}
		if err := c.close(); err != nil {
			t.Fatal(err)
		}
		if got := r.Catalogues()["s"]; got != definitionsDigest("s", m.tools) {
			t.Errorf("kept %x after the change was told", got)
		}
	})
}

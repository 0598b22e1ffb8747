package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"toolguardian/proxy/config"
	"toolguardian/receipts"
)

const sayTool = `{"name":"say","inputSchema":{"type":"object"}}`

// codes are the beginnings of the first blocks of results: what the client is
// told, up to the first colon or space.
func beginning(t *testing.T, text string) string {
	t.Helper()
	first, _, _ := strings.Cut(text, " ")
	return strings.TrimSuffix(first, ":")
}

// A call whose result does not change is told of at the third time and stopped
// at the fifth, and the reason stands in its receipt.
func TestTheSameCallAgainAndAgain(t *testing.T) {
	m := newMemory(&diary{}, sayTool)
	m.answer = answers(`{"content":[{"type":"text","text":"RUNNING"}]}`)
	r, rec := recorded(t, EvidenceOn, m)
	c := connect(t, r, latest)
	var got []string
	for i := range 6 {
		args := []string{`{"a":1,"b":"x"}`, `{ "b" : "\u0078", "a" : 1.0 }`}[i%2]
		said := texts(t, c.tool("call_tool", `{"server":"s","tool":"say","args":`+args+`}`))
		got = append(got, beginning(t, said[0]))
	}
	if want := []string{"RUNNING", "RUNNING", "notice", "notice", "REPEATED", "REPEATED"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if n := len(m.requests()); n != 4 {
		t.Errorf("%d calls reached the backend, want 4", n)
	}
	if got := texts(t, c.tool("call_tool", `{"server":"s","tool":"say","args":{"a":2}}`)); got[0] != "RUNNING" {
		t.Errorf("another call is told %q", got)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	var refused, changes []string
	for _, r := range rec.all(t) {
		switch r.Kind {
		case receipts.KindRefused:
			refused = append(refused, r.member("reason"))
		case receipts.KindOutcome:
			changes = append(changes, r.member("changes"))
		}
	}
	if !slices.Equal(refused, []string{`"loop"`, `"loop"`}) {
		t.Errorf("refused for %q", refused)
	}
	plain, told := `["next step added"]`, `["notice added","next step added"]`
	if want := []string{plain, plain, told, told, plain}; !slices.Equal(changes, want) {
		t.Errorf("changes %q, want %q", changes, want)
	}
}

// A poll sees the end: a result that changes is never counted.
func TestAPollSeesTheEnd(t *testing.T) {
	m := newMemory(&diary{}, sayTool)
	var n atomic.Int64
	m.answer = echo
	r, _ := recorded(t, EvidenceOn, m)
	c := connect(t, r, latest)
	for n.Add(1) < 12 {
		m.answer = answers(fmt.Sprintf(`{"content":[{"type":"text","text":"%d of 12"}]}`, n.Load()))
		if said := texts(t, c.tool("call_tool", `{"server":"s","tool":"say"}`)); said[0] != fmt.Sprintf("%d of 12", n.Load()) {
			t.Fatalf("told %q", said)
		}
	}
}

func TestLoopExemptions(t *testing.T) {
	for name, set := range map[string]func(*testing.T, *Options){
		"toolGuardian.loopExempt": func(_ *testing.T, o *Options) { o.Config.ToolGuardian = []byte(`{"loopExempt":["s.sa*"]}`) },
		"TG_LOOP_GUARD=0": func(t *testing.T, o *Options) {
			if err := o.ReadSettings(settings("TG_LOOP_GUARD=0")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(&diary{}, sayTool)
			m.answer = answers(`{"content":[{"type":"text","text":"moved"}]}`)
			o := memories(map[string]*memory{"s": m})
			set(t, &o)
			c := connect(t, newRouter(t, o), latest)
			for range 6 {
				if said := texts(t, c.tool("call_tool", `{"server":"s","tool":"say"}`)); said[0] != "moved" {
					t.Fatalf("told %q", said)
				}
			}
		})
	}
	if _, err := New(Options{Config: &config.Config{ToolGuardian: []byte(`{"loopExempt":"s"}`)}}); err == nil || !strings.Contains(err.Error(), "loopExempt") {
		t.Errorf("a list that is none: %v", err)
	}
}

// Calls that were not made do not count.
func TestOnlyCallsThatRanCount(t *testing.T) {
	m := newMemory(&diary{}, schemaTool)
	m.answer = answers(`{"content":[{"type":"text","text":"ok"}]}`)
	r, _ := recorded(t, EvidenceOn, m)
	c := connect(t, r, latest)
	for range 6 {
		if said := joined(t, c.tool("call_tool", `{"server":"s","tool":"n"}`)); !strings.HasPrefix(said, "BAD_ARGUMENTS") {
			t.Fatalf("told %q", said)
		}
	}
	if said := texts(t, c.tool("call_tool", `{"server":"s","tool":"n","args":{"n":1}}`)); said[0] != "ok" {
		t.Errorf("told %q", said)
	}
}

const schemaTool = `{"name":"n","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`

func TestLookingWithoutCalling(t *testing.T) {
	r, rec := recorded(t, EvidenceOn, newMemory(&diary{}, sayTool))
	c := connect(t, r, latest)
	look := func(n int) (got []string) {
		for i := range n {
			tool, arguments := "list_capabilities", `{}`
			if i%2 == 1 {
				tool, arguments = "describe_tool", `{"server":"s","tool":"say","detail":"full"}`
			}
			said := texts(t, c.tool(tool, arguments))
			switch {
			case strings.HasPrefix(said[0], "LOOKED_ENOUGH: "):
				got = append(got, "refused")
			case len(said) == 3:
				got = append(got, "noticed")
			default:
				got = append(got, "answered")
			}
			if i%2 == 1 && got[i] != "refused" && said[0] != sayTool {
				t.Errorf("a full description begins with %q", said[0])
			}
		}
		return got
	}
	counts := func(got []string) (n [3]int) {
		for _, g := range got {
			n[slices.Index([]string{"answered", "noticed", "refused"}, g)]++
		}
		return n
	}
	if got := look(13); counts(got) != [3]int{7, 4, 2} || got[11] != "refused" {
		t.Errorf("looks were %q", got)
	}
	c.tool("call_tool", `{"server":"s","tool":"say"}`)
	if got := look(8); counts(got) != [3]int{7, 1, 0} {
		t.Errorf("looks after a call were %q", got)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	var refused []string
	for _, r := range rec.all(t) {
		if r.Kind == receipts.KindRefused {
			refused = append(refused, r.member("reason")+r.member("call", "tool"))
		}
	}
	if want := []string{`"discovery""describe_tool"`, `"discovery""list_capabilities"`}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
}

func TestLookLimitIsASetting(t *testing.T) {
	for setting, want := range map[string]string{"3": "LOOKED_ENOUGH", "0": "[s]"} {
		o := memories(map[string]*memory{"s": newMemory(nil, sayTool)})
		if err := o.ReadSettings(settings("TG_DISCOVERY_LIMIT=" + setting)); err != nil {
			t.Fatal(err)
		}
		c := connect(t, newRouter(t, o), latest)
		var last string
		for range 14 {
			last = beginning(t, texts(t, c.tool("list_capabilities", `{}`))[0])
		}
		if last != want {
			t.Errorf("limit %s: the last look is told %q", setting, last)
		}
	}
}

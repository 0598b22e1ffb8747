package proxy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"toolguardian/receipts"
)

func changedReceipts(t *testing.T, rec *recorder) (out []string) {
	t.Helper()
	for _, r := range rec.all(t) {
		if r.Kind == receipts.KindChanged {
			out = append(out, r.member("what")+r.member("was")+r.member("now"))
		}
	}
	return out
}

// Definitions that differ from the last run's are told before a call is
// decided under them; equal ones and those of a new server are not.
func TestChangedCatalogues(t *testing.T) {
	backends := map[string]*memory{"same": newMemory(nil, echoTool), "other": newMemory(nil, echoTool, sayTool), "new": newMemory(nil, sayTool)}
	rec := newRecorder(t, &diary{})
	o := memories(backends)
	was := definitionsDigest("other", []json.RawMessage{[]byte(echoTool)})
	o.Recorder, o.Previous.Catalogues = rec, map[string][32]byte{
		"same": definitionsDigest("same", []json.RawMessage{[]byte(echoTool)}), "other": was, "gone": was,
	}
	r := newRouter(t, o)
	c := connect(t, r, latest)
	c.tool("call_tool", `{"server":"same","tool":"echo"}`)
	c.tool("call_tool", `{"server":"other","tool":"echo"}`)
	c.tool("list_capabilities", `{}`)
	now := definitionsDigest("other", backends["other"].tools)
	if got := changedReceipts(t, rec); !slices.Equal(got, []string{`"catalogue""` + hexOf(was) + `""` + hexOf(now) + `"`}) {
		t.Errorf("told %q", got)
	}
	if got, want := rec.kinds(t), []string{"session-open", "decision", "outcome", "changed", "decision", "outcome"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
	backends["new"].tools = []json.RawMessage{[]byte(echoTool)}
	backends["new"].changed()
	c.tool("call_tool", `{"server":"new","tool":"echo"}`)
	if got := changedReceipts(t, rec); len(got) != 2 || !strings.HasSuffix(got[1], hexOf(definitionsDigest("new", backends["new"].tools))+`"`) {
		t.Errorf("told %q after a change in the run", got)
	}
	kept := r.Catalogues()
	if len(kept) != 3 || kept["other"] != now || kept["new"] != definitionsDigest("new", backends["new"].tools) {
		t.Errorf("kept %v", kept)
	}
}

func TestDefinitionsDigest(t *testing.T) {
	digest := func(server string, tools ...string) [32]byte {
		var raw []json.RawMessage
		for _, one := range tools {
			raw = append(raw, json.RawMessage(one))
		}
		return definitionsDigest(server, raw)
	}
	if digest("s", `{"name":"a","x":1}`) != digest("s", ` { "x" : 1.0, "name" : "\u0061" }`) {
		t.Error("form counts")
	}
	seen := map[[32]byte]string{}
	for name, d := range map[string][32]byte{
		"none": digest("s"), "another server": digest("t"), "a": digest("s", `{"name":"a"}`), "ab": digest("s", `{"name":"a"}`, `{"name":"b"}`),
		"ba": digest("s", `{"name":"b"}`, `{"name":"a"}`), "a surrogate": digest("s", `{"name":"\ud800"}`), "another surrogate": digest("s", `{"name":"\ud801"}`),
	} {
		if twin, twice := seen[d]; twice {
			t.Errorf("%s and %s are the same", name, twin)
		}
		seen[d] = name
	}
}

// Where evidence is required and a decision cannot be recorded, the refusal is
// evidence too, if the store works again by then.
func TestRefusedForWantOfEvidence(t *testing.T) {
	m := newMemory(&diary{}, echoTool)
	r, rec := recorded(t, EvidenceRequired, m)
	c := connect(t, r, latest)
	c.tool("call_tool", `{"server":"s","tool":"echo"}`)
	rec.mu.Lock()
	rec.spoil = receipts.KindDecision
	rec.mu.Unlock()
	if said := joined(t, c.tool("call_tool", `{"server":"s","tool":"echo","args":{"text":"x"}}`)); !strings.HasPrefix(said, "EVIDENCE_FAILED: ") || !strings.Contains(said, "the disk hiccupped") {
		t.Errorf("told %q", said)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if n := len(m.requests()); n != 1 {
		t.Errorf("%d calls reached the backend, want the first alone", n)
	}
	refused := rec.only(t, receipts.KindRefused)
	refused.commits(t, receipts.FieldArgsReceived, []byte(`{"text":"x"}`))
	if refused.member("reason") != `"evidence"` {
		t.Errorf("receipt %s", refused.predicate)
	}
	if got, want := rec.kinds(t), []string{"session-open", "decision", "outcome", "refused", "session-close"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
}

package proxy

import (
	"strings"
	"testing"
	"time"

	"toolguardian/proxy/config"
)

func TestOptionsThatCannotWork(t *testing.T) {
	rec := newRecorder(t, &diary{})
	for name, o := range map[string]Options{
		"no config":                     {},
		"evidence without a recorder":   {Config: &config.Config{}, Evidence: EvidenceRequired},
		"a mode that is not known":      {Config: &config.Config{}, Evidence: "maybe", Recorder: rec},
		"a config that is not readable": {Config: &config.Config{Raw: []byte("{")}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if r := newRouter(t, Options{Recorder: rec}); r.evidence == nil || r.evidence.required {
		t.Error("a recorder alone does not mean: on")
	}
	if r := newRouter(t, Options{Recorder: rec, Evidence: EvidenceOff}); r.evidence != nil {
		t.Error("off keeps evidence")
	}
}

func TestReadSettings(t *testing.T) {
	env := map[string]string{"TOOL_GUARDIAN_WAIT": "0.5", "TOOL_GUARDIAN_CALL_TIMEOUT": "7", "TOOL_GUARDIAN_START_TIMEOUT": "8",
		"TOOL_GUARDIAN_RAW_RESULTS": "1", "TOOL_GUARDIAN_DESCRIBE_DETAIL": "full", "TOOL_GUARDIAN_EVIDENCE": "required", "TOOL_GUARDIAN_DESC_WORDS": "6"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	var o Options
	if err := o.ReadSettings(lookup); err != nil {
		t.Fatal(err)
	}
	if o.Wait != 500*time.Millisecond || o.CallTimeout != 7*time.Second || o.StartTimeout != 8*time.Second ||
		!o.RawResults || !o.DescribeFull || o.Evidence != EvidenceRequired || o.DescWords != 6 {
		t.Errorf("read %+v", o)
	}
	for name, bad := range map[string]string{"TOOL_GUARDIAN_WAIT": "-1", "TOOL_GUARDIAN_CALL_TIMEOUT": "soon", "TOOL_GUARDIAN_EVIDENCE": "yes", "TOOL_GUARDIAN_DESC_WORDS": "x"} {
		env = map[string]string{name: bad}
		if err := new(Options).ReadSettings(lookup); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, bad, err)
		}
	}
}

func TestHintsForTheNextRun(t *testing.T) {
	o := memories(map[string]*memory{"plain": newMemory(nil, echoTool, `{"name":"list_notes"}`), "told": newMemory(nil, echoTool), "empty": newMemory(nil)})
	for i := range o.Config.Servers {
		if o.Config.Servers[i].Name == "told" {
			o.Config.Servers[i].Description = "by its owner"
		}
	}
	r := newRouter(t, o)
	r.startAll(t.Context())
	if got := r.Hints(); len(got) != 1 || got["plain"] != "echo, list, notes" {
		t.Errorf("hints %q", got)
	}
}

package proxy

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"toolguardian/proxy/config"
	"toolguardian/proxy/journal"
	"toolguardian/proxy/spill"
	"toolguardian/proxy/wire"
	"toolguardian/receipts"
)

// shaping is a router that shortens what the tool answers with.
func shaping(t *testing.T, result string, set func(*Options)) (*client, *recorder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spill")
	store, err := spill.New(spill.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory(&diary{}, sayTool, `{"name":"read_text_file"}`)
	m.answer = answers(result)
	rec := newRecorder(t, &diary{})
	o := memories(map[string]*memory{"s": m})
	o.Recorder, o.Spills = rec, store
	if set != nil {
		set(&o)
	}
	return connect(t, newRouter(t, o), latest), rec, dir
}

// numbered is a log of n lines.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d of a log that nobody reads to its end\n", i+1)
	}
	return b.String()
}

const image = `{ "type":"image", "data":"AAAA", "mimeType":"image/png", "odd":1.0}`

func longResult(text string) string {
	return `{"content":[` + string(textBlock(text)) + `,` + image + `],"structuredContent":{"big":9007199254740993},"n":1.0}`
}

// A long text is shortened: the line that says so comes first, everything else
// passes, the whole is in the archive, and the receipts tell both.
func TestLongResults(t *testing.T) {
	log := numbered(2_000)
	raw := longResult(log)
	c, rec, dir := shaping(t, raw, nil)
	got := c.tool("call_tool", `{"server":"s","tool":"say"}`)
	said := texts(t, got)
	id := regexp.MustCompile(`sp_[0-9a-f]{12}`).FindString(said[0])
	if id == "" || !strings.Contains(said[0], fmt.Sprintf("of %d characters", len(log))) || len(said[1]) > 10_000 ||
		!strings.HasPrefix(said[1], "line 1 of") || !strings.Contains(said[1], "line 2000 of") || !strings.HasPrefix(said[3], "NEXT STEP: ") {
		t.Errorf("told %.300q", said)
	}
	if !strings.Contains(string(got), image) || strings.Contains(string(got), "structuredContent") || !strings.Contains(string(got), `"n":1.0`) {
		t.Errorf("delivered %s", got)
	}
	kept, err := os.ReadFile(filepath.Join(dir, id+".raw"))
	if err != nil || string(kept) != raw {
		t.Errorf("kept %.100q (%v)", kept, err)
	}
	outcome := rec.only(t, receipts.KindOutcome)
	outcome.commits(t, receipts.FieldResultReceived, []byte(raw))
	outcome.commits(t, receipts.FieldResultDelivered, got)
	if want := `["text shaped by shell","structuredContent left out","notice added","next step added"]`; outcome.member("changes") != want {
		t.Errorf("changes %s, want %s", outcome.member("changes"), want)
	}
	read := func(arguments string) []string { return texts(t, c.tool("retrieve_spill", arguments)) }
	if window := read(`{"id":"` + id + `","start_line":"1000","max_lines":2}`); window[0] != "line 1000 of a log that nobody reads to its end\nline 1001 of a log that nobody reads to its end" ||
		!strings.Contains(window[1], "start_line 1002") {
		t.Errorf("read %q", window)
	}
	if found := read(`{"id":"` + id + `","grep":"LINE 77 OF"}`); found[0] != "77: line 77 of a log that nobody reads to its end" {
		t.Errorf("found %q", found)
	}
	for arguments, want := range map[string]string{
		`{"id":"sp_1"}`:                             "BAD_ARGUMENTS: ",
		`{"id":"` + id + `","grep":"("}`:            "BAD_ARGUMENTS: ",
		`{"id":"sp_000000000000"}`:                  "NOT_FOUND: ",
		`{"ids":"` + id + `"}`:                      `BAD_ARGUMENTS: "ids" is no argument here; the nearest: id`,
		`{"id":"` + id + `","grep":"not in there"}`: "[no line from 1 on matches",
		`{"id":"` + id + `","start_line":5000}`:     "[there is no line 5000: it has 2000]",
	} {
		if said := read(arguments); !strings.HasPrefix(said[0], want) || !strings.HasPrefix(said[1], "NEXT STEP: ") {
			t.Errorf("%s: told %q", arguments, said)
		}
	}
}

// What the ladder leaves alone reaches the client byte for byte, and so does
// everything where it is off or nothing can be kept.
func TestResultsThatAreNotShortened(t *testing.T) {
	long, short := longResult(numbered(2_000)), longResult("short")
	obstacle := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(obstacle, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	setting := func(s string) func(*Options) {
		return func(o *Options) {
			if err := o.ReadSettings(settings(s)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		result, tool string
		set          func(*Options)
		retrieves    bool
	}{
		"short":                   {short, "say", nil, true},
		"the text of a file":      {long, "read_text_file", nil, true},
		"exempt by configuration": {long, "say", func(o *Options) { o.Config.ToolGuardian = []byte(`{"ladder":{"exempt_tools":["say"]}}`) }, true},
		"TOOL_GUARDIAN_LADDER=0":  {long, "say", setting("TOOL_GUARDIAN_LADDER=0"), false},
		"no archive":              {long, "say", func(o *Options) { o.Spills = nil }, false},
		"raw results":             {long, "say", setting("TOOL_GUARDIAN_RAW_RESULTS=1"), false},
		"an archive that is broken": {long, "say", func(o *Options) {
			var err error
			if o.Spills, err = spill.New(spill.Options{Dir: filepath.Join(obstacle, "spill")}); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, rec, _ := shaping(t, tt.result, tt.set)
			got := string(c.tool("call_tool", `{"server":"s","tool":"`+tt.tool+`"}`))
			want := strings.Replace(tt.result, image+`]`, image+`,`+string(nextStep(nextAnswer))+`]`, 1)
			if got != want && got != tt.result {
				t.Errorf("delivered %.300s", got)
			}
			if changes := rec.only(t, receipts.KindOutcome).member("changes"); strings.Contains(changes, "shaped") {
				t.Errorf("changes %s", changes)
			}
			if listed := strings.Contains(string(c.request("tools/list", `{}`).Result), `"retrieve_spill"`); listed != tt.retrieves {
				t.Errorf("retrieve_spill is listed: %v", listed)
			}
		})
	}
	if _, err := New(Options{Config: &config.Config{ToolGuardian: []byte(`{"ladder":{"shell_min_chars":"many"}}`)}}); err == nil || !strings.Contains(err.Error(), "shell_min_chars") {
		t.Errorf("a key that cannot be used: %v", err)
	}
}

// An error keeps its beginning and its end, and stays one.
func TestLongErrors(t *testing.T) {
	raw, err := wire.Set([]byte(longResult(numbered(100))), []byte("true"), "isError")
	if err != nil {
		t.Fatal(err)
	}
	c, rec, _ := shaping(t, string(raw), nil)
	got := c.tool("call_tool", `{"server":"s","tool":"say"}`)
	if said := texts(t, got); len(said[1]) > 450 || !strings.HasPrefix(said[1], "line 1 of") || !strings.Contains(string(got), `"isError":true`) {
		t.Errorf("delivered %s", got)
	}
	if o := rec.only(t, receipts.KindOutcome); o.member("status") != `"tool_error"` || !strings.Contains(o.member("changes"), "text shaped by error") {
		t.Errorf("receipt %s", o.predicate)
	}
}

// With an intent, the parts that match it are shown instead; without the
// setting it is not even read.
func TestIntent(t *testing.T) {
	log := numbered(300) + "the needle: a broken pump\n" + numbered(300)
	for set, want := range map[string]bool{"TOOL_GUARDIAN_INTENT=1": true, "TOOL_GUARDIAN_INTENT=0": false} {
		c, _, _ := shaping(t, longResult(log), func(o *Options) {
			if err := o.ReadSettings(settings(set)); err != nil {
				t.Fatal(err)
			}
		})
		said := texts(t, c.tool("call_tool", `{"server":"s","tool":"say","args":{},"intent":"why did the pump break"}`))
		if got := strings.Contains(said[1], "[chunk ") && strings.Contains(said[1], "a broken pump") && strings.Contains(said[1], "searchable terms:"); got != want {
			t.Errorf("%s: told %.300q", set, said)
		}
	}
}

func TestShapedRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	calls := journal.OpenCalls(path, slog.New(slog.DiscardHandler))
	log := numbered(2_000)
	c, _, _ := shaping(t, longResult(log), func(o *Options) { o.Calls = calls })
	said := texts(t, c.tool("call_tool", `{"server":"s","tool":"say"}`))
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	calls.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var row journal.Row
	if err := json.Unmarshal([]byte(strings.Split(string(b), "\n")[1]), &row); err != nil {
		t.Fatal(err)
	}
	if row.Rule != "shell" || !strings.Contains(said[0], row.SpillID) || row.SpillID == "" || *row.OriginalChars != len(log) || *row.FinalChars > 10_000 {
		t.Errorf("row %+v", row)
	}
}

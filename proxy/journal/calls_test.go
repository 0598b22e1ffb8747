package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

func TestCallRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "calls.jsonl")
	c := OpenCalls(path, slog.New(slog.DiscardHandler))
	ok, ms, n := true, int64(12), 0
	c.Add(func() Row {
		return Row{Time: time.Date(2026, 1, 2, 3, 4, 5, 678_999_999, time.FixedZone("", 3600)), Session: "one", Kind: KindCall, Tool: "call_tool",
			Server: "s", Target: "t", ArgKeys: []string{"path"}, OK: &ok, Millis: &ms, OriginalChars: &n, FinalChars: &n}
	})
	c.Add(func() Row { return Row{Session: "one", Kind: KindSession, Event: "end"} })
	c.Close()
	c.Close()
	c.Add(func() Row { return Row{} })
	want := `{"ts":"2026-01-02T02:04:05.678Z","session":"one","kind":"call","tool":"call_tool","server":"s","target":"t","arg_keys":["path"],"ok":true,"ms":12,"original_chars":0,"final_chars":0}`
	if got := lines(t, path); len(got) != 2 || got[0] != want {
		t.Errorf("wrote %q\nwant %q", got, want)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if info, _ := os.Stat(filepath.Dir(path)); info.Mode().Perm() != 0o700 {
		t.Errorf("folder mode %v", info.Mode())
	}
}

func TestAWorldReadableLogIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	if err := os.WriteFile(path, []byte("{\"old\":1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := OpenCalls(path, slog.New(slog.DiscardHandler))
	c.Add(func() Row { return Row{} })
	c.Close()
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 || len(lines(t, path)) != 2 {
		t.Errorf("mode %v, lines %q", info.Mode(), lines(t, path))
	}
}

// Routers that share a log lose no line, tear none, and set a full one aside
// once.
func TestCallsOfManyRouters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	const routers, rows = 4, 200
	var all sync.WaitGroup
	for i := range routers {
		c := OpenCalls(path, slog.New(slog.DiscardHandler))
		c.limit = 48 << 10 // of about 90 KB: it is full once
		all.Go(func() {
			for n := range rows {
				c.Add(func() Row { return Row{Session: fmt.Sprint(i), Target: fmt.Sprint(n), Error: strings.Repeat("x", 20)} })
			}
			c.Close()
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, file := range []string{path, path + ".1"} {
		for _, line := range lines(t, file) {
			var r Row
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			seen[r.Session+" "+r.Target] = true
		}
	}
	if len(seen) != routers*rows {
		t.Errorf("%d rows, want %d", len(seen), routers*rows)
	}
}

func TestACallLogThatCannotBeWritten(t *testing.T) {
	obstacle := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(obstacle, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := OpenCalls(filepath.Join(obstacle, "calls.jsonl"), slog.New(slog.NewTextHandler(&said, nil)))
	for range 3 {
		c.Add(func() Row { return Row{} })
	}
	c.Close()
	if n := strings.Count(said.String(), "cannot be written"); n != 1 {
		t.Errorf("said %d times: %s", n, &said)
	}
	var none *Calls = OpenCalls("", nil)
	none.Add(func() Row { t.Error("formed"); return Row{} })
	none.Close()
}

// The file stays open, and a log that was taken away is begun anew.
func TestACallLogThatIsTakenAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	c := &Calls{path: path, limit: maxCalls, rows: make(chan func() Row)}
	defer c.shut()
	put := func(session string) {
		t.Helper()
		if err := c.burst(func() Row { return Row{Session: session} }); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	first := c.file
	put("b")
	if c.file != first || len(lines(t, path)) != 2 {
		t.Errorf("opened again, or lines are missing: %q", lines(t, path))
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	c.looked = c.looked.Add(-recheck)
	put("c")
	if got := lines(t, path); len(got) != 1 || !strings.Contains(got[0], `"c"`) {
		t.Errorf("the new file holds %q", got)
	}
}

package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/proxy/front"
)

func call(t *testing.T, h *handler, tool, args string) (string, bool) {
	t.Helper()
	raw, err := h.CallTool(context.Background(), nil, front.Call{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	var r result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r.Content[0].Text, r.IsError
}

func open(t *testing.T) *handler {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "served")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "..", "secret"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &handler{root}
}

func TestWriteReadListSearch(t *testing.T) {
	h := open(t)
	if got, bad := call(t, h, "write_file", `{"path":"a/b.txt","text":"one\ntwo\n"}`); bad || got != "wrote 8 bytes to a/b.txt" {
		t.Errorf("write: %q %v", got, bad)
	}
	for tool, want := range map[string]struct{ args, text string }{
		"read_file":    {`{"path":"a/b.txt"}`, "one\ntwo\n"},
		"list_files":   {`{}`, "a/b.txt\t8 bytes\n"},
		"search_files": {`{"text":"tw"}`, "a/b.txt:2: two\n"},
	} {
		if got, bad := call(t, h, tool, want.args); bad || got != want.text {
			t.Errorf("%s: %q %v, want %q", tool, got, bad, want.text)
		}
	}
}

func TestNothingOutsideTheFolder(t *testing.T) {
	h := open(t)
	if err := os.Symlink("../secret", filepath.Join(h.root.Name(), "link")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"../secret", "/etc/passwd", "link", "a/../../secret"} {
		args, _ := json.Marshal(arguments{Path: p})
		if got, bad := call(t, h, "read_file", strings.ToLower(string(args))); !bad {
			t.Errorf("%s was read: %q", p, got)
		}
	}
}

func TestSearchIsBounded(t *testing.T) {
	h := open(t)
	if err := h.root.WriteFile("many", []byte(strings.Repeat("x\n", maxHits+50)), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _ := call(t, h, "search_files", `{"text":"x"}`)
	if n := strings.Count(got, "\n"); n != maxHits+1 {
		t.Errorf("%d lines, want %d hits and one notice", n, maxHits)
	}
}

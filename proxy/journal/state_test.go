package journal

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, path string) *State {
	t.Helper()
	s, err := OpenState(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUnknownMembersSurvive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(`{"active_groups":["a","b"],"n":9007199254740993}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if err := Update(s, "x", func(old int) int { return old + 7 }); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(path)
	for _, want := range []string{`9007199254740993`, `"active_groups"`, `"x": 7`, StateFormat} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestNewerFormatIsReadNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	content := `{"format":"tool-guardian/state/2","x":3}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenState(path)
	if !errors.Is(err, ErrNewer) {
		t.Errorf("open: %v", err)
	}
	if x, ok := Get[int](s, "x"); !ok || x != 3 {
		t.Errorf("x = %d %v", x, ok)
	}
	if err := Update(s, "x", func(int) int { return 4 }); !errors.Is(err, ErrNewer) {
		t.Errorf("update: %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != content {
		t.Errorf("the file became %s", got)
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	var all sync.WaitGroup
	for range 8 {
		s := open(t, path)
		all.Go(func() {
			for range 20 {
				if err := Update(s, "n", func(n int) int { return n + 1 }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n, _ := Get[int](open(t, path), "n"); n != 160 {
		t.Errorf("n = %d, want 160", n)
	}
}

func TestVerdicts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	v := Verdicts{open(t, path), slog.New(slog.DiscardHandler)}
	v.Store("a", "2025-11-25")
	v.Store("b", "2026-07-28")
	v.Drop("a")
	again := Verdicts{open(t, path), slog.New(slog.DiscardHandler)}
	if _, ok := again.Load("a"); ok {
		t.Error("a dropped verdict was remembered")
	}
	if p, ok := again.Load("b"); !ok || p != "2026-07-28" {
		t.Errorf("b is %q", p)
	}
}

func TestStateThatForgets(t *testing.T) {
	s := open(t, "")
	if err := Update(s, "x", func(int) int { return 1 }); err != nil {
		t.Fatal(err)
	}
	if _, ok := Get[int](s, "x"); ok {
		t.Error("a state without a file remembered")
	}
}

func FuzzOpenState(f *testing.F) {
	f.Add([]byte(`{"format":"tool-guardian/state/1","x":1}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "state.json")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenState(path)
		if err != nil && !errors.Is(err, ErrNewer) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if err := Update(s, "x", func(int) int { return 5 }); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		if !json.Valid(got) {
			t.Fatalf("wrote %q", got)
		}
	})
}

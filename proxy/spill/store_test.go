package spill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

func store(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = filepath.Join(t.TempDir(), "deep", "spill")
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s *Store, text string) string {
	t.Helper()
	id, err := s.Put(t.Context(), Original{Server: "s", Tool: "t", Rules: []string{"shell"}, Shown: 1, Of: len(text), Text: text, Raw: []byte("{" + text + "}")})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// names are the files in the folder but the lock.
func names(t *testing.T, s *Store) []string {
	t.Helper()
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if e.Name() != lockName {
			list = append(list, e.Name())
		}
	}
	return list
}

func TestPutKeepsThreeFiles(t *testing.T) {
	s := store(t, Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	text, raw := "a\nb\x00\xff", []byte("{\"content\":[\"\xff\"]}")
	id, err := s.Put(t.Context(), Original{Server: "s", Tool: "t", Rules: []string{"json"}, Shown: 3, Of: 5, Text: text, Raw: raw})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	if want := "sp_" + hex.EncodeToString(sum[:])[:12]; id != want {
		t.Errorf("id %s, want %s", id, want)
	}
	want := map[string]string{".txt": text, ".raw": string(raw), ".json": `{"format":"tool-guardian/spill/1","id":"` + id + `","sha256":"` + hex.EncodeToString(sum[:]) +
		`","time":"2027-01-15T08:00:00Z","server":"s","tool":"t","rules":["json"],"shown_chars":3,"original_chars":5,"text_bytes":5,"raw_bytes":17}` + "\n"}
	for ext, want := range want {
		path := filepath.Join(s.o.Dir, id+ext)
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, want %q (%v)", ext, got, want, err)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", ext, info.Mode(), err)
		}
	}
	if info, err := os.Stat(s.o.Dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v %v", info.Mode(), err)
	}
	if again, err := s.Put(t.Context(), Original{Text: text, Raw: raw}); err != nil || again != id || len(names(t, s)) != 3 {
		t.Errorf("the same once more: %s %v %v", again, err, names(t, s))
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for _, o := range []Options{{}, {Dir: "x", Keep: -1}, {Dir: "x", MaxBytes: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

// age makes an original older than those to come.
func age(t *testing.T, s *Store, id string, by time.Duration) {
	t.Helper()
	at := time.Now().Add(-by)
	for _, ext := range []string{".raw", ".txt", ".json"} {
		if err := os.Chtimes(filepath.Join(s.o.Dir, id+ext), at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewestAreKept(t *testing.T) {
	s := store(t, Options{Keep: 3})
	var ids []string
	for i := range 6 {
		id := put(t, s, fmt.Sprint("text ", i))
		age(t, s, id, time.Duration(10-i)*time.Minute)
		ids = append(ids, id)
	}
	other := filepath.Join(s.o.Dir, "notes.txt")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, s, "text 3") // its time is new again
	for i, id := range ids {
		_, err := s.Read(t.Context(), Query{ID: id})
		if gone := i < 3; gone != errors.Is(err, ErrGone) || !gone && err != nil {
			t.Errorf("text %d: %v", i, err)
		}
	}
	if got := len(names(t, s)); got != 3*3+1 {
		t.Errorf("%d files are left: %v", got, names(t, s))
	}
	last := put(t, s, "text 6")
	if _, err := s.Read(t.Context(), Query{ID: ids[3]}); err != nil {
		t.Errorf("what was put again went before older ones: %v", err)
	}
	if _, err := s.Read(t.Context(), Query{ID: last}); err != nil {
		t.Error(err)
	}
}

func TestSizeIsBounded(t *testing.T) {
	s := store(t, Options{MaxBytes: 10_000})
	first := put(t, s, strings.Repeat("a", 2_000))
	age(t, s, first, time.Minute)
	second := put(t, s, strings.Repeat("b", 2_000))
	if _, err := s.Read(t.Context(), Query{ID: first}); err != nil {
		t.Error("dropped with room left:", err)
	}
	age(t, s, second, time.Second)
	large := put(t, s, strings.Repeat("c", 50_000))
	if got := names(t, s); len(got) != 3 || !strings.HasPrefix(got[0], large) {
		t.Errorf("left are %v, want the one just written", got)
	}
}

func TestTemporaryFilesAreRemoved(t *testing.T) {
	s := store(t, Options{})
	put(t, s, "x")
	old, young := filepath.Join(s.o.Dir, ".spill-1"), filepath.Join(s.o.Dir, ".spill-2")
	for _, f := range []string{old, young} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Now().Add(-2 * staleTemp)
	if err := os.Chtimes(old, at, at); err != nil {
		t.Fatal(err)
	}
	put(t, s, "y")
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one is there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("one that may be written to is gone: %v", err)
	}
}

func TestClashingIDsAreRefused(t *testing.T) {
	s := store(t, Options{})
	id := put(t, s, "mine")
	path := filepath.Join(s.o.Dir, id+".json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("{mine}"))
	own := hex.EncodeToString(sum[:])
	if err := os.WriteFile(path, bytes.Replace(b, []byte(own), []byte(own[:12]+strings.Repeat("0", 52)), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), Original{Text: "other", Raw: []byte("{mine}")}); !errors.Is(err, ErrClash) {
		t.Errorf("put: %v", err)
	}
	if a, err := s.Read(t.Context(), Query{ID: id}); err != nil || a.Text != "mine" {
		t.Errorf("the first is %q %v", a.Text, err)
	}
	if got := names(t, s); len(got) != 3 {
		t.Errorf("left behind: %v", got)
	}
}

func TestPutThatCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := store(t, Options{Dir: filepath.Join(file, "spill")})
	if id, err := s.Put(t.Context(), Original{Text: "x"}); err == nil || id != "" || !strings.Contains(err.Error(), s.o.Dir) {
		t.Errorf("%q %v", id, err)
	}
}

func TestPutWaitsForTheLock(t *testing.T) {
	s := store(t, Options{})
	put(t, s, "x")
	lock := flock.New(filepath.Join(s.o.Dir, lockName))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if id, err := s.Put(ctx, Original{Text: "y", Raw: []byte("y")}); err == nil || id != "" {
		t.Errorf("%q was put beside another process", id)
	}
	if got := names(t, s); len(got) != 3 {
		t.Errorf("left behind: %v", got)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, s, "y")
}

// Several processes put into a small folder, each reading back what it just put.
func TestManyProcesses(t *testing.T) {
	if dir := os.Getenv("SPILL_TEST_DIR"); dir != "" {
		s := store(t, Options{Dir: dir, Keep: 8})
		for i := range 30 {
			text := fmt.Sprintf("process %s, text %d, %s", os.Getenv("SPILL_TEST_NAME"), i, strings.Repeat("x", 5_000))
			id := put(t, s, text)
			if i%3 == 0 {
				id = put(t, s, "the same of all")
				text = "the same of all"
			}
			if a, err := s.Read(t.Context(), Query{ID: id}); err == nil && strings.ReplaceAll(a.Text, "\n", "") != text {
				t.Errorf("%s is another text", id)
			} else if err != nil && !errors.Is(err, ErrGone) {
				t.Error(err)
			}
		}
		return
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestManyProcesses$")
		cmd.Env = append(os.Environ(), "SPILL_TEST_DIR="+dir, fmt.Sprintf("SPILL_TEST_NAME=%d", i))
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	s := store(t, Options{Dir: dir, Keep: 8})
	if got := names(t, s); len(got) != 8*3 {
		t.Errorf("%d files are left: %v", len(got), got)
	}
	for _, name := range names(t, s) {
		id, meta := strings.CutSuffix(name, ".json")
		if !meta {
			continue
		}
		if _, err := s.Read(t.Context(), Query{ID: id}); err != nil {
			t.Error(err)
		}
		var a about
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || json.Unmarshal(b, &a) != nil {
			t.Errorf("%s: %v", name, err)
		}
		raw, err := os.ReadFile(filepath.Join(dir, id+".raw"))
		if sum := sha256.Sum256(raw); err != nil || hex.EncodeToString(sum[:]) != a.SHA256 {
			t.Errorf("%s.raw is not what was written: %v", id, err)
		}
	}
}

package setup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func write(t *testing.T, file, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWriteKeepsABackupForEachEdit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	write(t, file, "one", 0o640)
	for i, next := range []string{"two", "three"} {
		text, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		backup, err := text.Write(noon, []byte(next))
		if err != nil {
			t.Fatal(err)
		}
		if was := content(t, backup); was != string(text.Bytes) || content(t, file) != next {
			t.Errorf("edit %d: backup %s holds %q, the file %q", i, backup, was, content(t, file))
		}
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("the file's mode is %v (%v)", info.Mode(), err)
	}
	if b := content(t, file+".bak-20260102T120000Z-2"); b != "two" {
		t.Errorf("the second backup holds %q", b)
	}
}

func TestWriteMakesAPrivateFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "mcp.json")
	text, err := Read(file)
	if err != nil || text.Bytes != nil {
		t.Fatalf("%q, %v", text.Bytes, err)
	}
	if backup, err := text.Write(noon, []byte("x")); err != nil || backup != "" {
		t.Fatalf("backup %q, %v", backup, err)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestWriteFollowsALink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "mcp.json")
	write(t, real, "old", 0o600)
	if err := os.Symlink(real, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	text, err := Read(link)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text.Write(noon, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 || content(t, real) != "new" {
		t.Errorf("%v, %v, the real file holds %q", info.Mode(), err, content(t, real))
	}
}

func TestWriteLeavesAnothersEditAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	text, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "theirs", 0o600)
	if _, err := text.Write(noon, []byte("ours")); !errors.Is(err, ErrChanged) || content(t, file) != "theirs" {
		t.Errorf("%v; the file holds %q", err, content(t, file))
	}
}

// Many that add at once all find their server in the end.
func TestWritersDoNotLoseEachOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	const writers = 8
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for {
				err := add(file, fmt.Sprintf("s%d", i))
				if errors.Is(err, ErrChanged) {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				return
			}
		})
	}
	all.Wait()
	text, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := text.Names(); err != nil || len(names) != writers {
		t.Errorf("%q, %v", names, err)
	}
}

func add(file, name string) error {
	text, err := Read(file)
	if err != nil {
		return err
	}
	b, err := text.Add(name, json.RawMessage(`{"command":"c"}`), false)
	if err != nil {
		return err
	}
	_, err = text.Write(noon, b)
	return err
}

package chain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The wait for another writer is bounded and names it (H2).
func TestLockedByAnother(t *testing.T) {
	o, _ := grown(t, 1)
	o.LockTimeout = 30 * time.Millisecond
	c := openAt(t, o)
	l, err := openLock(OS(), at(o).path(lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.pid = 4242
	if _, err := l.acquire(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = c.Append(t.Context(), decision(1))
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "process 4242") {
		t.Errorf("append: %v", err)
	}
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrLocked) {
		t.Errorf("open: %v", err)
	}
	if waited := time.Since(began); waited < 2*o.LockTimeout {
		t.Errorf("gave up after %v, want twice %v", waited, o.LockTimeout)
	}
	if err := l.release(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, c, decision(1))
}

// A lock file that somebody removes does not let two write at once.
func TestLockFileRemoved(t *testing.T) {
	o, _ := grown(t, 1)
	a, b := openAt(t, o), openAt(t, o)
	for i := range 3 {
		if err := os.Remove(at(o).path(lockName)); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, a, decision(i))
		mustAppend(t, b, decision(i))
	}
	if n := checkChain(t, OS(), o.Dir, nil); n != 8 {
		t.Errorf("%d lines, want 8", n)
	}
}

// The lock's text is not synced: anything may be found there.
func TestLockGarbage(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("\x00", lockText), strings.Repeat("9", 100),
		fmt.Sprintf("%-*s\n", lockText-1, "12 99999999999999999999999")} {
		o, _ := grown(t, 1)
		write(t, at(o).path(lockName), []byte(text))
		a, b := openAt(t, o), openAt(t, o)
		mustAppend(t, a, decision(1))
		mustAppend(t, b, decision(2))
		if n := checkChain(t, OS(), o.Dir, nil); n != 4 {
			t.Errorf("%q: %d lines, want 4", text, n)
		}
	}
}

// A folder of a newer version is not touched.
func TestNewerFormat(t *testing.T) {
	o, _ := grown(t, 1)
	write(t, at(o).path(formatName), []byte("tool-guardian/evidence/2\n"))
	if _, err := Open(t.Context(), o); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "evidence/1") {
		t.Errorf("open: %v", err)
	}
	if _, err := OpenReader(o.Dir); !errors.Is(err, ErrFormat) {
		t.Errorf("reader: %v", err)
	}
}

func TestFolderIsPrivate(t *testing.T) {
	o, _ := grown(t, 1)
	err := filepath.Walk(o.Dir, func(name string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOptionsRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"no folder":     {},
		"label":         {Dir: t.TempDir(), Label: "Agents"},
		"slash":         {Dir: t.TempDir(), Label: "a/b"},
		"long label":    {Dir: t.TempDir(), Label: strings.Repeat("a", 101)},
		"negative wait": {Dir: t.TempDir(), LockTimeout: -1},
	} {
		if c, err := Open(t.Context(), o); err == nil {
			c.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}

package bolt_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toolguardian/witness/store"
	"toolguardian/witness/store/bolt"
)

func TestCopyIsASnapshot(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "log.db"))
	defer s.Close()
	for epoch := range uint64(5) {
		if err := s.Commit(crashBatch(epoch)); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	name, err := s.CopyTo(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(crashBatch(5)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CopyTo(dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("over a copy: %v, want ErrExist", err)
	}
	c := mustOpen(t, filepath.Join(dir, name))
	defer c.Close()
	if got := checkWhole(t, c, crashState{name: "copy"}); got != 5 {
		t.Errorf("the copy is at epoch %d, want 5", got)
	}
}

// suspectStore is a store whose last commit failed in its sync.
func suspectStore(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log.db")
	s := mustOpen(t, path)
	for epoch := range uint64(3) {
		if err := s.Commit(crashBatch(epoch)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".suspect", []byte("sync failed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func inode(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// A suspect store is written anew before it is opened, and stays suspect until
// it is trusted.
func TestSuspectStoreIsWrittenAnew(t *testing.T) {
	path := suspectStore(t)
	before, bytesBefore := inode(t, path), readAll(t, path)
	if err := os.WriteFile(path+".copy", []byte("half a copy of a start before"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	if !s.Suspect() || os.SameFile(before, inode(t, path)) {
		t.Errorf("suspect %v, the same file %v", s.Suspect(), os.SameFile(before, inode(t, path)))
	}
	if got := readAll(t, path); !bytes.Equal(got, bytesBefore) {
		t.Error("the new file has other bytes")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path)
	if !s.Suspect() {
		t.Error("a store that nobody trusted is not suspect any more")
	}
	if err := s.Trust(); err != nil || s.Suspect() {
		t.Errorf("trust: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := inode(t, path)
	s = mustOpen(t, path)
	defer s.Close()
	if s.Suspect() || !os.SameFile(whole, inode(t, path)) {
		t.Error("a trusted store was written anew")
	}
	if got := checkWhole(t, s, crashState{name: "trusted"}); got != 3 {
		t.Errorf("epoch %d, want 3", got)
	}
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What the failed sync lost shows as damage, not as a log.
func TestSuspectDamage(t *testing.T) {
	path := suspectStore(t)
	b := readAll(t, path)
	clear(b[4*os.Getpagesize():])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := bolt.Open(bolt.Options{Path: path}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("open: %v, want ErrDamaged", err)
		if err == nil {
			s.Close()
		}
	}
	if _, err := os.Stat(path + ".suspect"); err != nil {
		t.Errorf("the mark: %v", err)
	}
}

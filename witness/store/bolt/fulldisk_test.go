//go:build linux

package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"toolguardian/witness/store"
)

// A disk that is really full, then has room again: nothing is lost, nothing
// half written, and the store goes on without being opened again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "log.db")
	s := mustOpen(t, path)
	defer s.Close()
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var epoch uint64
	var err error
	for epoch < 1000 && err == nil {
		if err = s.Commit(crashBatch(epoch)); err == nil {
			epoch++
		}
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("full disk after %d commits: %v, want ErrNoSpace", epoch, err)
	}
	if got := checkWhole(t, s, crashState{name: "full disk"}); got != epoch {
		t.Errorf("epoch %d after the failed commit, want %d", got, epoch)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(crashBatch(epoch)); err != nil {
		t.Errorf("space is back: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, path)
	defer again.Close()
	if got := checkWhole(t, again, crashState{name: "reopened"}); got != epoch+1 {
		t.Errorf("reopened at epoch %d, want %d", got, epoch+1)
	}
}

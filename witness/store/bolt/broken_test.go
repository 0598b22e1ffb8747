package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toolguardian/witness/store"
)

// A commit of unknown outcome ends the store's use and is remembered beyond
// the process.
func TestBrokenStoreIsMarked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := s.beginWrite()
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("sync failed")
	s.gate.Lock()
	s.breakDown(tx, lost)
	s.gate.Unlock()
	if err := s.Commit(store.Batch{}); !errors.Is(err, store.ErrBroken) || !errors.Is(err, lost) {
		t.Errorf("commit: %v, want ErrBroken and its cause", err)
	}
	if b, err := os.ReadFile(path + ".suspect"); err != nil || string(b) != "sync failed\n" {
		t.Errorf("the mark says %q, %v", b, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if !again.Suspect() {
		t.Error("the next opening suspects nothing")
	}
}

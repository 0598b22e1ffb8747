//go:build unix

package chain

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pipe in the place of a file would hold a reader for ever.
func TestPipeInPlaceOfAFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
		opened := make(chan error, 1)
		go func() {
			f, err := OS().OpenFile(pipe, flag, 0)
			if err == nil {
				f.Close()
			}
			opened <- err
		}()
		select {
		case err := <-opened:
			if err == nil {
				t.Errorf("flag %d: a pipe was opened as a file", flag)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("flag %d: opening a pipe waits", flag)
		}
	}
}

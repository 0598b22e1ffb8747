package tsa

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// ErrClockWentBack: the clock is behind a second that was already stated. The
// authority signs again when the clock has caught up.
var ErrClockWentBack = errors.New("the clock went back")

const (
	clockFile   = "clock"
	clockHeader = "tool-guardian/tsa-clock/1\n"
)

// clockGuard hands out seconds that never go back, across restarts too.
type clockGuard struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	last time.Time // guarded by mu; on disk before any token states it
}

// openClock reads the last stated second. A missing file means none was.
func openClock(dir string, now func() time.Time) (*clockGuard, error) {
	g := &clockGuard{path: filepath.Join(dir, clockFile), now: now}
	b, err := os.ReadFile(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(string(b), clockHeader)
	if !ok {
		return nil, fmt.Errorf("%s is not of the form %q: remove it once the clock is right", g.path, strings.TrimSpace(clockHeader))
	}
	if g.last, err = time.Parse(time.RFC3339, strings.TrimSpace(text)); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it once the clock is right", g.path, err)
	}
	return g, nil
}

// read returns the current second in UTC. A new second is durable before it is
// returned, so at most one sync a second is paid and a crash can only lose a
// second that no token states.
func (g *clockGuard) read() (time.Time, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.now().UTC().Truncate(time.Second)
	if at.Before(g.last) {
		return time.Time{}, fmt.Errorf("%w: it says %s, already stated was %s; set the clock, or remove %s once it is right",
			ErrClockWentBack, at.Format(time.RFC3339), g.last.Format(time.RFC3339), g.path)
	}
	if at.Equal(g.last) {
		return at, nil
	}
	if err := replaceFile(g.path, []byte(clockHeader+at.Format(time.RFC3339)+"\n")); err != nil {
		return time.Time{}, err
	}
	g.last = at
	return at, nil
}

// replaceFile writes beside path, syncs, renames and syncs the folder.
func replaceFile(path string, b []byte) error {
	beside := path + ".new"
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeNew(beside, b); err != nil {
		return err
	}
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// writeNew creates a private file that must not exist, and syncs it.
func writeNew(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes names in a folder durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

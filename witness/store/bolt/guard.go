package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"toolguardian/witness/store"
)

// guard turns what bbolt does over a damaged file, a failed assertion or a
// fault in the memory map, into an error. Damage must not end the process
// before it has said which file to restore.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", store.ErrDamaged, p)
		}
	}()
	return fn()
}

// takeLock takes the lock file and writes our pid into it. The lock is the
// kernel's; the pid only tells a second opener whom to look for.
func takeLock(path string, timeout time.Duration) (*flock.Flock, error) {
	const every = 20 * time.Millisecond
	lock := flock.New(path, flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ok, err := lock.TryLockContext(ctx, every)
	if errors.Is(err, context.DeadlineExceeded) || (err == nil && !ok) {
		return nil, fmt.Errorf("%w: %s is locked by pid %s; stop that process or ask it through its admin socket",
			store.ErrLocked, path, holder(path))
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.Unlock())
	}
	return lock, nil
}

func holder(path string) string {
	b, err := os.ReadFile(path)
	pid := strings.TrimSpace(string(b))
	if err != nil || pid == "" {
		return "unknown"
	}
	return fmt.Sprintf("%.20s", pid)
}

// syncFolder makes a new file's name durable.
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

package chain

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// lockFile is evidence/lock. Whoever holds its lock may write; its text says
// who that is and the generation of the chain's files: "<pid> <generation>\n".
//
// The generation changes before files are created, cut, replaced or renamed,
// so a process that finds its own number again knows that since its last look
// bytes were at most appended to the last segment. The text is never synced:
// after a crash of the machine there is no process left to remember a number.
type lockFile struct {
	fs   FS
	name string
	pid  int

	mu   sync.Mutex
	file File // replaced where its name was removed
}

// lockText is the fixed length of the text, padded with spaces.
const lockText = 48

func openLock(f FS, name string) (*lockFile, error) {
	l := &lockFile{fs: f, name: name, pid: os.Getpid()}
	return l, l.open()
}

func (l *lockFile) open() error {
	file, err := l.fs.OpenFile(l.name, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return fmt.Errorf("open lock: %w", noSpace(err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = file
	return nil
}

func (l *lockFile) current() File {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file
}

// acquire waits until the lock is ours, the deadline passes or ctx ends, and
// returns the generation.
func (l *lockFile) acquire(ctx context.Context, deadline time.Time) (uint64, error) {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 2*time.Millisecond) {
		ok, err := l.try()
		if err != nil {
			return 0, fmt.Errorf("lock %s: %w", l.name, err)
		}
		if ok {
			return l.enter()
		}
		if !time.Now().Before(deadline) {
			return 0, fmt.Errorf("%w by process %s (%s): wait for it or end it", ErrLocked, l.holder(), l.name)
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// try also notices that the file was removed: a lock on a name that is gone
// would let another process write at the same time.
func (l *lockFile) try() (bool, error) {
	ok, err := l.current().TryLock()
	if !ok || err != nil {
		return false, err
	}
	info, err := l.current().Info()
	if err != nil || !info.Gone {
		return err == nil, err
	}
	if err := l.current().Close(); err != nil {
		return false, err
	}
	return false, l.open()
}

// enter reads the text and puts our pid into it.
func (l *lockFile) enter() (uint64, error) {
	pid, gen := l.read()
	if pid == l.pid {
		return gen, nil
	}
	return gen, l.write(gen)
}

// read takes what a crash may have left there for generation 0.
func (l *lockFile) read() (pid int, gen uint64) {
	var b [lockText]byte
	if n, _ := l.current().ReadAt(b[:], 0); n != lockText {
		return 0, 0
	}
	first, rest, _ := strings.Cut(string(b[:]), " ")
	second, _, _ := strings.Cut(rest, " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0
	}
	gen, err = strconv.ParseUint(second, 10, 64)
	if err != nil {
		return 0, 0
	}
	return pid, gen
}

func (l *lockFile) write(gen uint64) error {
	text := fmt.Sprintf("%-*s\n", lockText-1, fmt.Sprintf("%d %d", l.pid, gen))
	if _, err := l.current().WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("write lock: %w", noSpace(err))
	}
	return nil
}

// holder is who the text names.
func (l *lockFile) holder() string {
	if pid, _ := l.read(); pid > 0 {
		return strconv.Itoa(pid)
	}
	return "unknown"
}

func (l *lockFile) release() error { return l.current().Unlock() }
func (l *lockFile) close() error   { return l.current().Close() }

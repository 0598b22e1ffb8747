package witness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"toolguardian/tsa"
)

// Quarantine keeps what authorities sent that cannot count, for a person to
// look at: refused replies, and tokens without a pinned root. It holds a bounded
// number of files; beyond it nothing new is kept. It is no part of the log.
type Quarantine struct {
	dir    string
	logger *slog.Logger

	mu sync.Mutex // one writer
}

const quarantineMost = 64

// NewQuarantine keeps in dir, which is made when it is needed.
func NewQuarantine(dir string, logger *slog.Logger) *Quarantine {
	return &Quarantine{dir: dir, logger: logger}
}

// Dir is where the files lie.
func (q *Quarantine) Dir() string { return q.dir }

// Keep is told of every attempt; it keeps the refused and unanchored ones.
func (q *Quarantine) Keep(a tsa.Attempt) {
	if len(a.Response) == 0 || a.Outcome != tsa.Refused && a.Outcome != tsa.Unanchored {
		return
	}
	path, err := q.write(a)
	switch {
	case err != nil:
		q.logger.Error("a refused timestamp reply was not kept", "authority", a.Authority, "err", err)
	case path != "":
		q.logger.Warn("a timestamp reply that does not count was kept", "authority", a.Authority, "outcome", string(a.Outcome), "path", path)
	}
}

func (q *Quarantine) write(a tsa.Attempt) (path string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := os.MkdirAll(q.dir, 0o700); err != nil {
		return "", err
	}
	files, err := os.ReadDir(q.dir)
	if err != nil || len(files) >= quarantineMost {
		return "", err
	}
	sum := sha256.Sum256(a.Response)
	path = filepath.Join(q.dir, a.Authority+"."+hex.EncodeToString(sum[:8])+".tsr")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(a.Response)
	return path, errors.Join(err, f.Close())
}

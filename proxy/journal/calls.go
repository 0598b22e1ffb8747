package journal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	maxCalls = 64 << 20 // bytes of a call log before it is set aside
	waiting  = 1024     // rows that may wait to be written
	together = 64       // rows written before the file is opened anew
)

// Row is one line of the call log. It holds names and counts, never a value.
type Row struct {
	Time    time.Time `json:"ts"`
	Session string    `json:"session"`
	Kind    string    `json:"kind"` // KindCall, KindSession, KindPolicy or KindBypass

	Tool          string   `json:"tool,omitempty"`   // the router's; of a policy row the server's
	Server        string   `json:"server,omitempty"` // that was addressed
	Target        string   `json:"target,omitempty"` // the server's tool
	ArgKeys       []string `json:"arg_keys,omitempty"`
	OK            *bool    `json:"ok,omitempty"`
	Millis        *int64   `json:"ms,omitempty"`
	OriginalChars *int     `json:"original_chars,omitempty"` // of the result's text, as it came
	FinalChars    *int     `json:"final_chars,omitempty"`    // as the client got it
	Rule          string   `json:"rule,omitempty"`           // that shaped the result, or denied the call
	SpillID       string   `json:"spill_id,omitempty"`
	Error         string   `json:"error,omitempty"` // a code

	Event   string `json:"event,omitempty"` // of a session: start or end
	Harness string `json:"harness,omitempty"`
	Client  string `json:"client,omitempty"`

	Decision string `json:"decision,omitempty"` // of a policy row: deny or ask
	Via      string `json:"via,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
}

// The kinds of rows.
const (
	KindCall    = "call"
	KindSession = "session"
	KindPolicy  = "policy"
	KindBypass  = "bypass"
)

// Calls writes calls.jsonl, which several routers share: a line in one write,
// by a goroutine of its own, so that no call waits for the disk. What waits
// there is lost in a crash; receipts are not kept here.
type Calls struct {
	path   string
	logger *slog.Logger
	rows   chan func() Row
	done   chan struct{} // closed when the last row was written
	limit  int64         // bytes

	mu     sync.Mutex
	closed bool // under mu
	lost   int  // rows nobody had time to write; under mu
}

// OpenCalls begins to write to the file at path, which need not exist. An
// empty path is a log that keeps nothing.
func OpenCalls(path string, logger *slog.Logger) *Calls {
	if path == "" {
		return nil
	}
	c := &Calls{path: path, logger: logger, rows: make(chan func() Row, waiting), done: make(chan struct{}), limit: maxCalls}
	go c.run()
	return c
}

// Add writes a row soon. It is formed only then, beside the call it tells of,
// and must not refer to what changes later. Where rows come faster than they
// can be written, some are left out and counted.
func (c *Calls) Add(form func() Row) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	select {
	case c.rows <- form:
	default:
		c.lost++
	}
}

// Close returns when the last row is written.
func (c *Calls) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		close(c.rows)
	}
	<-c.done
}

func (c *Calls) run() {
	defer close(c.done)
	failed := false
	for form := range c.rows {
		if err := c.burst(form); err != nil && !failed {
			failed = true
			c.logger.Warn("the call log cannot be written", "file", c.path, "err", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost > 0 {
		c.logger.Warn("rows are missing in the call log", "file", c.path, "rows", c.lost)
	}
}

// burst writes a row and some that wait behind it. The file is opened anew each
// time, since it may be full, and another router may have set it aside.
func (c *Calls) burst(form func() Row) error {
	f, err := c.open()
	if err != nil {
		return err
	}
	defer f.Close()
	for range together {
		if err := write(f, form()); err != nil {
			return err
		}
		select {
		case next, ok := <-c.rows:
			if !ok {
				return nil
			}
			form = next
		default:
			return nil
		}
	}
	return write(f, form())
}

func write(f *os.File, r Row) error {
	r.Time = r.Time.UTC().Truncate(time.Millisecond)
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// open opens the file for appending, for its owner alone, after one that is
// full has been set aside.
func (c *Calls) open() (*os.File, error) {
	info, err := os.Stat(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case info.Size() >= c.limit:
		if err := c.setAside(); err != nil {
			return nil, err
		}
	case info.Mode().Perm()&0o077 != 0:
		if err := os.Chmod(c.path, 0o600); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// setAside renames the full file, in the place of the one set aside before.
// Only one router does so.
func (c *Calls) setAside() error {
	lock := flock.New(c.path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer lock.Close()
	if info, err := os.Stat(c.path); err != nil || info.Size() < c.limit {
		return nil // another router was faster
	}
	return os.Rename(c.path, c.path+".1")
}

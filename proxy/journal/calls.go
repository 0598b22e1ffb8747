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
	together = 64       // rows in one write
	recheck  = time.Second
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

// Calls writes calls.jsonl, which several routers share: whole lines in one
// write, by a goroutine of its own, so that no call waits for the disk. What
// waits there is lost in a crash; receipts are not kept here.
type Calls struct {
	path   string
	logger *slog.Logger
	rows   chan func() Row
	done   chan struct{} // closed when the last row was written
	limit  int64         // bytes

	file   *os.File  // nil: not open; it and what follows are run's
	looked time.Time // when the file at path was last known to be this one
	buf    []byte    // of the write that is being put together

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
	defer c.shut()
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

// burst writes a row and those that wait behind it, in one write.
func (c *Calls) burst(form func() Row) error {
	c.buf = c.buf[:0]
	for n := 1; ; n++ {
		r := form()
		r.Time = r.Time.UTC().Truncate(time.Millisecond)
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		c.buf = append(append(c.buf, line...), '\n')
		var ok bool
		if form, ok = c.waits(n); !ok {
			return c.write()
		}
	}
}

// waits takes the next row if there is one and it belongs into this write.
func (c *Calls) waits(n int) (form func() Row, ok bool) {
	if n == together {
		return nil, false
	}
	select {
	case form, ok = <-c.rows:
	default:
	}
	return form, ok
}

// write appends to the file, which stays open. After a failure it is opened
// anew.
func (c *Calls) write() error {
	if err := c.ready(); err != nil {
		c.shut()
		return err
	}
	if _, err := c.file.Write(c.buf); err != nil {
		c.shut()
		return err
	}
	return nil
}

// ready leaves the file at path open. One that another router has set aside is
// full, which is seen at once; one that is gone for another reason is noticed
// within a second.
func (c *Calls) ready() error {
	if c.file != nil {
		info, err := c.file.Stat()
		if err == nil && info.Size() < c.limit && (time.Since(c.looked) < recheck || c.same(info)) {
			return nil
		}
		c.shut()
	}
	f, err := c.open()
	c.file, c.looked = f, time.Now()
	return err
}

// same says whether the open file is still the one at path.
func (c *Calls) same(open fs.FileInfo) bool {
	c.looked = time.Now()
	there, err := os.Stat(c.path)
	return err == nil && os.SameFile(open, there)
}

func (c *Calls) shut() {
	if c.file != nil {
		_ = c.file.Close()
		c.file = nil
	}
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

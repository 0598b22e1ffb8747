package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"toolguardian/proxy/journal"
)

// tally counts rows of the call log.
type tally struct {
	from     time.Time // rows before it are not counted
	servers  map[string]*serverUsage
	called   map[string]bool // servers with a call_tool
	sessions map[string]sessionSeen
	calls    int
	errors   int
	shaped   int // characters that shaping left out
	bad      int // lines that are no rows
}

// sessionSeen is what the log says of a session.
type sessionSeen struct {
	began   bool // its start is in the log
	counted bool // it started in the window or, where the log has no start, was at work in it
}

func (t *tally) started() (n int) {
	for _, s := range t.sessions {
		if s.counted {
			n++
		}
	}
	return n
}

// readFile counts one file; an absent one is empty.
func (t *tally) readFile(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			t.line(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// rowTime reads a time as this version writes it, or as seconds since 1970.
type rowTime struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (t *rowTime) UnmarshalJSON(b []byte) error {
	var seconds float64
	if json.Unmarshal(b, &seconds) == nil {
		t.Time = time.UnixMilli(int64(seconds * 1000))
		return nil
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			t.Time = at
			return nil
		}
	}
	return errors.New("no time")
}

func (t *tally) line(b []byte) {
	var row struct {
		journal.Row
		Time rowTime `json:"ts"`
	}
	if json.Unmarshal(b, &row) != nil {
		t.bad++
		return
	}
	inside := !row.Time.Before(t.from)
	switch row.Kind {
	case journal.KindSession:
		if row.Event != "end" {
			s := t.sessions[row.Session]
			t.sessions[row.Session] = sessionSeen{began: true, counted: s.counted && s.began || inside}
		}
	case journal.KindPolicy, journal.KindBypass:
	default:
		if s := t.sessions[row.Session]; inside && !s.began {
			t.sessions[row.Session] = sessionSeen{counted: true}
		}
		if inside {
			t.call(row.Row)
		}
	}
}

func (t *tally) call(r journal.Row) {
	t.calls++
	failed := r.OK != nil && !*r.OK
	if failed {
		t.errors++
	}
	in, out := chars(r.OriginalChars), chars(r.FinalChars)
	if r.Tool == "call_tool" {
		t.shaped += max(in-out, 0)
	}
	if r.Server == "" {
		return
	}
	t.called[r.Server] = t.called[r.Server] || r.Tool == "call_tool"
	s := t.servers[r.Server]
	if s == nil {
		s = &serverUsage{Name: r.Server}
		t.servers[r.Server] = s
	}
	s.Calls++
	s.In += in
	s.Out += out
	if failed {
		s.Errors++
	}
}

func chars(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

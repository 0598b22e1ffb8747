package backend

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	tailLines = 20
	tailWidth = 500 // bytes of a line that are kept
)

// tail keeps the last lines of a stream, each cut to a width.
type tail struct {
	mu    sync.Mutex
	lines []string // guarded by mu; oldest first
}

// readFrom drains r to its end.
func (t *tail) readFrom(r io.Reader) {
	br := bufio.NewReaderSize(r, 4096)
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		if room := tailWidth - len(line); room > 0 {
			line = append(line, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		t.add(line)
		line = line[:0]
		if err != nil {
			return
		}
	}
}

// add keeps what a person can read: valid text, no control characters.
func (t *tail) add(raw []byte) {
	line := strings.TrimSpace(strings.ToValidUTF8(string(raw), string(utf8.RuneError)))
	line = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, line)
	if line == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

func (t *tail) snapshot() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.lines...)
}

package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// MaxMessage is the default bound of one message, in bytes.
const MaxMessage = 64 << 20

// chunk is how much is read at once, and the most that is kept of a line
// being skipped.
const chunk = 64 << 10

var bom = []byte("\xef\xbb\xbf")

// Reader splits a stream into messages, one a line, as the stdio transport of
// MCP does. It belongs to one goroutine.
type Reader struct {
	in      *bufio.Reader
	max     int
	backend bool
	batch   []Message // the rest of a backend's batch
	eof     bool      // seen once; a terminal would wait for it again
	long    []byte    // a line longer than a chunk, while it is gathered
	noise   atomic.Int64
}

// NewReader reads a client: every line that is no message is a *LineError.
// A max of 0 or less means MaxMessage.
func NewReader(r io.Reader, max int) *Reader { return newReader(r, max, false) }

// NewBackendReader reads a backend, which may print what it likes: lines that
// are no message are skipped and counted, unless an id shows whose answer was
// spoilt. The messages of a batch come one by one.
func NewBackendReader(r io.Reader, max int) *Reader { return newReader(r, max, true) }

func newReader(r io.Reader, max int, backend bool) *Reader {
	if max <= 0 {
		max = MaxMessage
	}
	return &Reader{in: bufio.NewReaderSize(r, chunk), max: max, backend: backend}
}

// Noise counts the lines and byte order marks skipped. It is safe to call
// from any goroutine.
func (r *Reader) Noise() int { return int(r.noise.Load()) }

// Next returns the next message. A *LineError concerns one line only; any
// other error ends the stream, and is io.EOF at its proper end. Empty lines
// are skipped. The message's memory is its own.
func (r *Reader) Next() (Message, error) {
	for len(r.batch) == 0 {
		line, err := r.line()
		if err != nil {
			return Message{}, err
		}
		if len(line) == 0 {
			continue
		}
		m, err := Parse(line)
		if !r.backend || !noise(m, err) {
			return m, err
		}
		if !r.split(err) {
			r.noise.Add(1)
		}
	}
	m := r.batch[0]
	r.batch = r.batch[1:]
	return m, nil
}

// noise tells a backend's stray output from a message or a spoilt one. A
// structured log line may have an "error" or an "id" of its own: without a
// version it answers nothing.
func noise(m Message, err error) bool {
	if err == nil {
		return m.NoVersion && m.ID.Absent() && m.Kind() == Response
	}
	var bad *LineError
	if errors.As(err, &bad) && bad.unknown {
		return m.NoVersion
	}
	return m.ID.Absent()
}

// split queues the messages of a batch.
func (r *Reader) split(err error) bool {
	var bad *LineError
	if !errors.As(err, &bad) || !bad.Batch {
		return false
	}
	elements, err := Elements(bad.Msg.Raw)
	if err != nil {
		return false
	}
	for _, raw := range elements {
		if m, err := Parse(raw); err == nil {
			r.batch = append(r.batch, m)
		}
	}
	return len(r.batch) > 0
}

// line returns the next line without its end, its byte order mark and the
// white space around it. The last line may lack its newline. A line longer
// than a chunk is gathered and then copied once to its exact size, so that
// nothing more is held for as long as the message lives.
func (r *Reader) line() ([]byte, error) {
	r.long = r.long[:0]
	if cap(r.long) > keepBuffer {
		r.long = nil
	}
	for !r.eof {
		part, err := r.in.ReadSlice('\n')
		r.eof = err == io.EOF
		if len(r.long)+len(part) > r.max+1 {
			return nil, r.skip(part, err)
		}
		whole := part
		if err == bufio.ErrBufferFull || len(r.long) > 0 {
			r.long = append(r.long, part...)
			whole = r.long
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == nil, err == io.EOF && len(whole) > 0:
			return bytes.Clone(r.trim(whole)), nil
		default:
			return nil, err
		}
	}
	return nil, io.EOF
}

// skip drops the rest of a line that is too long, in bounded memory, and
// looks for its id on the way.
func (r *Reader) skip(part []byte, err error) error {
	var f idFinder
	f.feed(r.long)
	f.feed(part)
	size := len(r.long) + len(part)
	for err == bufio.ErrBufferFull {
		part, err = r.in.ReadSlice('\n')
		r.eof = err == io.EOF
		f.feed(part)
		size += len(part)
	}
	if err != nil && err != io.EOF {
		return err
	}
	return &LineError{
		Code:   CodeInvalidRequest,
		Reason: fmt.Sprintf("a message of %d bytes; at most %d are read", size, r.max),
		Msg:    Message{ID: f.id},
	}
}

func (r *Reader) trim(line []byte) []byte {
	line = bytes.Trim(line, " \t\r\n")
	if bare, found := bytes.CutPrefix(line, bom); found {
		r.noise.Add(1)
		line = bytes.TrimLeft(bare, " \t\r\n")
	}
	return line
}

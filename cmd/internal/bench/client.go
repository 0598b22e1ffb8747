package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"toolguardian/proxy/wire"
)

// client is a scripted MCP client. It does little by itself, and the same on
// every side: requests are formed in one buffer and written at once, answers
// are found by their first bytes.
type client struct {
	in   io.Writer
	out  *bufio.Reader
	call shape
	next int // id of the next request
}

// shape is a tools/call request but for the id, which stands in the arguments
// too so that no two calls are alike, and the text.
type shape struct{ head, middle, tail string }

// directShape calls the echo tool itself.
func directShape() shape {
	return shape{
		head:   `{"jsonrpc":"2.0","id":`,
		middle: `,"method":"tools/call","params":{"name":"` + echoTool + `","arguments":{"n":`,
		tail:   `}}}` + "\n",
	}
}

// routedShape calls it through the router's call_tool.
func routedShape() shape {
	return shape{
		head: `{"jsonrpc":"2.0","id":`,
		middle: `,"method":"tools/call","params":{"name":"call_tool","arguments":{"server":"` + echoServer +
			`","tool":"` + echoTool + `","args":{"n":`,
		tail: `}}}}` + "\n",
	}
}

func (s shape) request(b []byte, id int, text []byte) []byte {
	b = strconv.AppendInt(append(b[:0], s.head...), int64(id), 10)
	b = strconv.AppendInt(append(b, s.middle...), int64(id), 10)
	b = append(append(b, `,"text":"`...), text...)
	return append(append(b, '"'), s.tail...)
}

const answerHead = `{"jsonrpc":"2.0","id":`

// newClient's buffer holds any answer of a bench.
func newClient(in io.Writer, out io.Reader, call shape) *client {
	return &client{in: in, out: bufio.NewReaderSize(out, 256<<10), call: call, next: 1}
}

// hello opens the session and makes one call, which waits for the server.
func (c *client) hello() error {
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + echoRevision +
		`","capabilities":{},"clientInfo":{"name":"tool-guardian-bench","version":"1"}}}` + "\n"
	if _, err := io.WriteString(c.in, initialize); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if _, err := c.answer([]byte(`"protocolVersion"`)); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return err
	}
	_, err := c.one([]byte("ready"))
	return err
}

// one is a single call, timed from before it is written until its answer was
// read.
func (c *client) one(text []byte) (sample, error) { return c.alone(text, time.Time{}) }

// turn makes calls with some callers at once until a time, at least one each.
func (c *client) turn(text []byte, callers int, until time.Time) (sample, error) {
	if callers == 1 {
		return c.alone(text, until)
	}
	return c.together(text, callers, until)
}

// alone is the turn of one caller.
func (c *client) alone(text []byte, until time.Time) (s sample, err error) {
	var b []byte
	begin := time.Now()
	for {
		b = c.call.request(b, c.next, text)
		start := time.Now()
		if _, err := c.in.Write(b); err != nil {
			return s, fmt.Errorf("call %d: %w", c.next, err)
		}
		id, err := c.answer(text)
		if err != nil {
			return s, fmt.Errorf("call %d: %w", c.next, err)
		}
		if id != c.next {
			return s, fmt.Errorf("call %d was answered as %d", c.next, id)
		}
		end := time.Now()
		c.next++
		s.took = append(s.took, end.Sub(start))
		if s.wall = end.Sub(begin); !end.Before(until) {
			return s, nil
		}
	}
}

// caller is one of several. It sends the calls it is told to.
type caller struct {
	ids   chan int       // closed: no more
	start chan time.Time // before each request is written
}

func (a caller) run(w *wire.Writer, call shape, text []byte) {
	var b []byte
	for id := range a.ids {
		b = call.request(b, id, text)
		a.start <- time.Now()
		if w.Write(b[:len(b)-1]) != nil {
			return // the reader sees the end of the stream
		}
	}
}

// together is the turn of several callers, each of which waits for its answer
// before it calls again. One goroutine reads for all.
func (c *client) together(text []byte, callers int, until time.Time) (s sample, err error) {
	w := wire.NewWriter(c.in)
	all := make([]caller, callers)
	begin, first := time.Now(), c.next
	for i := range all {
		all[i] = caller{ids: make(chan int, 1), start: make(chan time.Time, 1)}
		defer close(all[i].ids)
		all[i].ids <- first + i
		go all[i].run(w, c.call, text)
	}
	for active := callers; active > 0; {
		id, err := c.answer(text)
		if err != nil {
			return s, errors.Join(err, w.Err())
		}
		if id < first {
			return s, fmt.Errorf("call %d was answered twice", id)
		}
		end, a := time.Now(), all[(id-first)%callers]
		s.took = append(s.took, end.Sub(<-a.start))
		c.next = max(c.next, id+callers)
		if end.Before(until) {
			a.ids <- id + callers
		} else {
			active--
		}
	}
	s.wall = time.Since(begin)
	return s, nil
}

// answer reads up to the next answer and returns its id. It must be a result
// that holds want.
func (c *client) answer(want []byte) (id int, err error) {
	for {
		line, err := c.line()
		if err != nil {
			return 0, err
		}
		rest, found := bytes.CutPrefix(line, []byte(answerHead))
		if !found {
			continue // a notification
		}
		digits, body, _ := bytes.Cut(rest, []byte(","))
		if id, err = strconv.Atoi(string(digits)); err != nil {
			return 0, fmt.Errorf("an answer with a strange id: %.200s", line)
		}
		if !bytes.HasPrefix(body, []byte(`"result":`)) || !bytes.Contains(body, want) {
			return id, fmt.Errorf("not what was asked for: %.400s", line)
		}
		return id, nil
	}
}

// line is valid until the next one is read.
func (c *client) line() ([]byte, error) {
	line, err := c.out.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	line = bytes.Clone(line) // it lies in the buffer that is filled next
	rest, err := c.out.ReadBytes('\n')
	return append(line, rest...), err
}

package backend

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"toolguardian/proxy/wire"
)

const (
	exitPatience   = 300 * time.Millisecond // from the end of stdout to the exit
	drainPatience  = time.Second            // from the exit to the end of stdout
	stderrPatience = 200 * time.Millisecond // from the exit to the end of stderr
	answerQueue    = 64                     // server requests waiting for our answer
	maxLate        = 256                    // given up calls whose answer is still expected
)

// errEnded is a connection whose process is gone.
var errEnded = errors.New("the process ended")

// conn is the conversation with one process. A respawned server gets a new one.
type conn struct {
	proc     *process
	in       *input
	out      *wire.Reader // read by one goroutine
	tail     tail
	envelope []byte // `_meta` members of each request; set before the second one

	ctx    context.Context // ends with the conversation
	cancel context.CancelFunc
	done   chan struct{} // closed last; exit is final

	answers     chan []byte   // to requests of the server
	listChanged chan struct{} // room for one: its tools are not those we read
	heard       atomic.Uint64 // messages so far
	bare        atomic.Bool   // some message came without "jsonrpc":"2.0"

	mu    sync.Mutex // guards the rest
	next  int64
	calls map[int64]*call
	late  map[int64]func(Reply) // of calls given up
	stray int
	owed  int   // notifications that a careless server may still answer with a null id
	told  int64 // id of the last request before the newest notification
	exit  *Exit
}

func newConn(p *process) *conn {
	c := &conn{proc: p, in: newInput(p.stdin),
		out:     wire.NewBackendReader(p.stdout, wire.MaxMessage),
		answers: make(chan []byte, answerQueue), listChanged: make(chan struct{}, 1), done: make(chan struct{}),
		calls: map[int64]*call{}, late: map[int64]func(Reply){}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	stderrEnd, stdoutEnd := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stderrEnd)
		c.tail.readFrom(p.stderr)
	}()
	go func() {
		defer close(stdoutEnd)
		c.read()
	}()
	go c.answer()
	go c.wind(stdoutEnd, stderrEnd)
	return c
}

// wind waits for the end of the process, reads what it still had to say, and
// then fails the calls in flight. A grandchild that holds a pipe open does not
// hold this up.
func (c *conn) wind(stdoutEnd, stderrEnd <-chan struct{}) {
	select {
	case <-c.proc.exited:
		within(drainPatience, stdoutEnd)
	case <-stdoutEnd: // nothing can be answered any more
		if !within(exitPatience, c.proc.exited) {
			c.proc.stop()
		}
	}
	within(stderrPatience, stderrEnd)
	if within(0, c.proc.exited) {
		c.mu.Lock()
		c.exit = &c.proc.exit
		c.mu.Unlock()
	}
	c.cancel()
	c.proc.closePipes()
	close(c.done)
}

func within(d time.Duration, ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ch:
		return true
	case <-t.C:
		return false
	}
}

func (c *conn) ended() bool { return within(0, c.done) }

// shut ends the process: end of input first, a stop after patience. It returns
// when the process is gone.
func (c *conn) shut(patience time.Duration) {
	if patience > 0 {
		c.proc.closing()
	}
	c.proc.stdin.Close()
	if !within(patience, c.proc.exited) {
		c.proc.stop()
	}
	<-c.proc.exited
	<-c.done
}

// request sends one request and waits for its reply until the context or
// its clock ends.
// sent says whether any byte may have reached the server.
func (c *conn) request(ctx context.Context, method string, params json.RawMessage, k *call) (r Reply, sent bool, err error) {
	c.open(k)
	defer c.forget(k)
	line, err := c.encode(k, method, params)
	if err != nil {
		return Reply{}, false, err
	}
	if sent, err = c.in.writeBy(ctx, k.clock, line); err != nil {
		return c.unsent(ctx, k, method, sent, err)
	}
	if k.obs.Sent != nil {
		k.obs.Sent()
	}
	select {
	case r = <-k.reply:
		return r, true, nil
	case <-c.done:
		return k.last(errEnded)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-k.clock.ended():
		err = ErrTimeout
	}
	if !c.giveUp(k, method) {
		return <-k.reply, true, nil
	}
	return Reply{}, true, err
}

// last prefers a reply that came together with the end of the process.
func (k *call) last(err error) (Reply, bool, error) {
	select {
	case r := <-k.reply:
		return r, true, nil
	default:
		return Reply{}, true, err
	}
}

// unsent sorts out a write that failed. A broken pipe is a dying process: its
// exit is worth a short wait.
func (c *conn) unsent(ctx context.Context, k *call, method string, begun bool, err error) (Reply, bool, error) {
	if ctx.Err() != nil || errors.Is(err, ErrTimeout) {
		if begun && !c.giveUp(k, method) {
			return <-k.reply, true, nil
		}
		return Reply{}, begun, err
	}
	within(drainPatience, c.done)
	return Reply{}, begun, errEnded
}

func (c *conn) encode(k *call, method string, params json.RawMessage) ([]byte, error) {
	members := c.envelope
	if k.obs.Progress != nil {
		members = joinMembers(members, progressMember(k.id))
	}
	if c.envelope != nil && k.obs.Log != nil && k.level != "" {
		members = joinMembers(members, logMember(k.level))
	}
	params, err := withMeta(params, members)
	if err != nil {
		return nil, err
	}
	return append(wire.NewRequest(wire.IntID(k.id), method, params), '\n'), nil
}

// giveUp tells the server, and nobody else, that the call is not waited for.
// It does not wait itself: the pipe may be full. It returns false when the
// reply has come meanwhile.
func (c *conn) giveUp(k *call, method string) bool {
	if !c.abandon(k) {
		return false
	}
	if method != methodInitialize && method != methodDiscover {
		// MCP forbids cancelling initialize; that process ends anyway.
		params := append(strconv.AppendInt([]byte(`{"requestId":`), k.id, 10), '}')
		go c.tell("notifications/cancelled", params)
	}
	return true
}

func (c *conn) tell(method string, params json.RawMessage) error {
	c.mu.Lock()
	c.owed++
	c.told = c.next
	c.mu.Unlock()
	_, err := c.in.write(c.ctx, append(wire.NewNotification(method, params), '\n'))
	return err
}

// subscribe asks a stateless server for list_changed, which the stateful ones
// send unasked (MCP 2026-07-28, subscriptions/listen).
func (c *conn) subscribe() {
	k := c.open(&call{standing: true})
	line, err := c.encode(k, "subscriptions/listen", json.RawMessage(`{"notifications":{"toolsListChanged":true}}`))
	if err == nil {
		c.in.write(c.ctx, line)
	}
}

func (c *conn) countStray() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stray++
}

func (c *conn) endState() (exit *Exit, stray int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit, c.stray
}

package front

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"toolguardian/proxy/wire"
)

// queued is how many requests may be unanswered on one connection, for each
// that may be handled at once.
const queued = 16

// maxSpare is how many goroutines may wait for a request.
const maxSpare = 32

// conn is one client's connection.
type conn struct {
	srv    *Server
	out    *wire.Writer
	ctx    context.Context
	cancel context.CancelCauseFunc
	eof    chan struct{} // closed when the client has sent its last byte
	slots  chan struct{} // one per request being handled
	work   sync.WaitGroup
	idle   chan *request // to a goroutine that waits for one
	spare  atomic.Int32  // goroutines that wait

	initialized atomic.Bool // notifications/initialized has come
	level       atomic.Int32

	mu        sync.Mutex // guards what follows
	stopped   bool
	active    int
	stateful  *opening // of the first initialize
	stateless *opening // of the first stateless request
	inFlight  map[wire.ID][]*request
	listeners map[*request]struct{} // of subscriptions/listen
}

func newConn(ctx context.Context, s *Server, out io.Writer) *conn {
	c := &conn{
		srv:       s,
		out:       wire.NewWriter(out),
		eof:       make(chan struct{}),
		slots:     make(chan struct{}, s.o.MaxCalls),
		idle:      make(chan *request),
		inFlight:  make(map[wire.ID][]*request),
		listeners: make(map[*request]struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// read takes lines until the stream ends. It never waits for a handler.
func (c *conn) read(in *wire.Reader) error {
	defer close(c.eof)
	send := c.send
	for {
		m, err := in.Next()
		if err == nil {
			c.take(m, send)
			continue
		}
		var bad *wire.LineError
		switch {
		case errors.As(err, &bad):
			c.badLine(bad)
		case err == io.EOF:
			return nil
		default:
			return err
		}
	}
}

// take handles one message; reply is called exactly once, with nil when
// nothing is to be sent.
func (c *conn) take(m wire.Message, reply func([]byte)) {
	if m.Kind() == wire.Response {
		// We ask nothing yet, so no response is awaited.
		c.srv.o.Logger.Debug("response to nothing ignored", "id", m.ID.String())
		reply(nil)
		return
	}
	if err := wire.CheckStrict(m); err != nil {
		var bad *wire.LineError
		if errors.As(err, &bad) {
			reply(refusal(bad))
			return
		}
	}
	if m.Kind() == wire.Notification {
		c.notified(m)
		reply(nil)
		return
	}
	c.request(m, reply)
}

// notified handles a notification. One that names a request's method runs
// nothing: without an id its caller could never learn what happened.
func (c *conn) notified(m wire.Message) {
	switch m.Method {
	case "notifications/initialized":
		c.initialized.Store(true)
	case "notifications/cancelled":
		c.cancelled(wire.RawID(wire.Get(m.Params, "requestId")))
	default:
		c.srv.o.Logger.Debug("notification ignored", "method", m.Method)
	}
}

// badLine answers a line that is no message.
func (c *conn) badLine(bad *wire.LineError) {
	if bad.Batch && c.batches() {
		c.batch(bad.Msg.Raw)
		return
	}
	if bad.Batch {
		bad.Reason = "a JSON array; only revision " + withBatches + " has batches: send one object a line"
	}
	c.srv.o.Logger.Warn("bad line from the client", "reason", bad.Reason)
	c.send(refusal(bad))
}

func refusal(bad *wire.LineError) []byte {
	return wire.ReplyError(bad.Msg.ID, &wire.Error{Code: bad.Code, Message: bad.Reason})
}

// send writes one message. A client that cannot be written to is gone.
func (c *conn) send(raw []byte) {
	if raw == nil {
		return
	}
	if err := c.out.Write(raw); err != nil {
		c.cancel(ErrClosed)
	}
}

// settle waits until no request is left, and says whether that came before
// patience ran out or give up was closed.
func (c *conn) settle(patience time.Duration, giveUp <-chan struct{}) bool {
	idle := make(chan struct{})
	go func() {
		c.work.Wait()
		close(idle)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
	case <-giveUp:
	}
	return false
}

// stop takes no more requests, cancels those that run and waits for them, but
// not longer than patience: a client that no longer reads may hold a reply in
// the pipe for ever, and a pipe cannot be woken.
func (c *conn) stop(patience time.Duration) {
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	if !c.settle(patience, nil) {
		c.srv.o.Logger.Warn("the client does not read; replies were given up")
	}
}

// start counts a request in, unless it is too late or there are too many; a
// ping is never too much.
func (c *conn) start(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped || c.active >= queued*cap(c.slots) && r.msg.Method != "ping" {
		return false
	}
	c.active++
	c.work.Add(1)
	c.inFlight[r.msg.ID] = append(c.inFlight[r.msg.ID], r)
	return true
}

func (c *conn) finished(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active--
	c.work.Done()
	same := c.inFlight[r.msg.ID]
	for i, other := range same {
		if other == r {
			same = append(same[:i:i], same[i+1:]...)
			break
		}
	}
	if len(same) == 0 {
		delete(c.inFlight, r.msg.ID)
	} else {
		c.inFlight[r.msg.ID] = same
	}
}

// cancelled ends the requests of an id: those of its exact form, else those
// that a careless client could mean by it. Unknown ids are ignored, as MCP's
// utilities/cancellation asks.
func (c *conn) cancelled(id wire.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hit := c.inFlight[id]
	if hit == nil && !id.Absent() {
		for other, same := range c.inFlight {
			if other.Key() == id.Key() {
				hit = append(hit, same...)
			}
		}
	}
	for _, r := range hit {
		r.abort()
	}
}

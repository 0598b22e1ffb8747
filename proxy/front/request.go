package front

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"sync/atomic"

	"toolguardian/proxy/wire"
)

// request is one request on its way to its reply.
type request struct {
	conn    *conn
	msg     wire.Message
	params  params
	env     envelope
	session *opening // nil: the method needs none, or there is none
	reply   func([]byte)
	ctx     context.Context
	cancel  context.CancelCauseFunc
	aborted atomic.Bool // the client cancelled it: no reply

	mu   sync.Mutex // orders notifications before the reply
	done bool       // the reply is being sent
	last float64    // the progress sent last

	acked, missed bool // a subscription was granted; a change came before that
}

// params are the members of a request's params that matter here.
type params struct {
	name, arguments, meta, cursor json.RawMessage
}

func readParams(raw json.RawMessage) (p params, err *wire.Error) {
	if raw == nil || string(raw) == "null" {
		return p, nil
	}
	if raw[0] != '{' {
		return p, badParams("params must be an object")
	}
	for m := range wire.Members(raw) {
		switch m.Key {
		case "name":
			p.name = m.Value
		case "arguments":
			p.arguments = m.Value
		case "cursor":
			p.cursor = m.Value
		case "_meta":
			p.meta = m.Value
		}
	}
	return p, nil
}

// request reads what must be read in the order of the stream, then has it
// answered by another goroutine.
func (c *conn) request(m wire.Message, reply func([]byte)) {
	r := &request{conn: c, msg: m, reply: reply, last: math.Inf(-1)}
	if err := r.prepare(); err != nil {
		reply(wire.ReplyError(m.ID, err))
		return
	}
	r.ctx, r.cancel = context.WithCancelCause(c.ctx)
	if !c.start(r) {
		r.cancel(nil)
		reply(wire.ReplyError(m.ID, &wire.Error{
			Code:    wire.CodeBusy,
			Message: "too many requests are unanswered on this connection; wait for some and send it again",
		}))
		return
	}
	if m.Method == "subscriptions/listen" && r.env.stateless {
		r.listening(true)
	}
	select {
	case c.idle <- r:
	default:
		go c.serve(r)
	}
}

// serve answers requests one after the other. A goroutine that has answered
// one waits for the next, since its stack has grown to what a call needs.
func (c *conn) serve(r *request) {
	for r != nil {
		r.run()
		r = c.next()
	}
}

// next waits for a request, unless enough others do; nil ends the goroutine.
func (c *conn) next() *request {
	defer c.spare.Add(-1)
	if c.spare.Add(1) > maxSpare {
		return nil
	}
	select {
	case r := <-c.idle:
		return r
	case <-c.ctx.Done():
		return nil
	}
}

func (r *request) run() {
	defer r.conn.finished(r)
	defer r.cancel(nil)
	r.finish(r.answer())
}

// prepare reads the envelope and begins the session that the request needs.
func (r *request) prepare() (err *wire.Error) {
	if r.params, err = readParams(r.msg.Params); err != nil {
		return err
	}
	c := r.conn
	if r.msg.Method == "initialize" {
		r.session = c.open(&c.stateful, initializing(r.msg.Params))
		return nil
	}
	begun := c.begun()
	if r.env, err = readEnvelope(r.params.meta, begun != nil); err != nil {
		return err
	}
	switch {
	case !needsSession(r.msg.Method):
	case r.env.stateless:
		r.session = c.open(&c.stateless, Session{
			Client: r.env.client, Protocol: stateless, Stateless: true, Capabilities: r.env.caps,
		})
	case begun == nil:
		return invalidRequest("%s before initialize; send initialize first, or the _meta of %s", r.msg.Method, stateless)
	default:
		r.session = begun
	}
	return nil
}

func needsSession(method string) bool {
	switch method {
	case "tools/list", "tools/call", "logging/setLevel", "subscriptions/listen":
		return true
	}
	return false
}

// abort cancels the request on the client's behalf. It never blocks. The
// handshake cannot be cancelled (MCP, utilities/cancellation).
func (r *request) abort() {
	if r.msg.Method != "initialize" {
		r.aborted.Store(true)
		r.cancel(ErrCancelled)
	}
}

// finish sends the reply, unless the client cancelled the request.
func (r *request) finish(result json.RawMessage, err error) {
	r.mu.Lock()
	r.done = true
	r.mu.Unlock()
	if r.aborted.Load() {
		r.reply(nil)
		return
	}
	if err == nil && !isObject(result) {
		err = &wire.Error{Code: wire.CodeInternal, Message: "the result is not a JSON object"}
	}
	if err != nil {
		r.reply(wire.ReplyError(r.msg.ID, rpcError(r.ctx, err)))
		return
	}
	if r.env.stateless {
		result = r.complete(result)
	}
	r.reply(wire.Reply(r.msg.ID, result))
}

// notify sends a notification that belongs to this request, none after the
// reply or a cancel. ok is asked under the lock that orders them.
func (r *request) notify(method string, params json.RawMessage, ok func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done && !r.aborted.Load() && ok() {
		r.conn.send(wire.NewNotification(method, params))
	}
}

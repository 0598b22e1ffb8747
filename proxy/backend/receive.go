package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"toolguardian/proxy/wire"
)

// read is the goroutine of stdout. Nothing in it waits for the server to read.
func (c *conn) read() {
	for {
		m, err := c.out.Next()
		if err == nil {
			c.dispatch(m)
			continue
		}
		var bad *wire.LineError
		if !errors.As(err, &bad) {
			return
		}
		c.unreadable(bad)
	}
}

func (c *conn) dispatch(m wire.Message) {
	c.heard.Add(1)
	if m.NoVersion {
		c.bare.Store(true)
	}
	switch m.Kind() {
	case wire.Response:
		c.deliver(m.ID, replyOf(m))
	case wire.Request:
		c.asked(m)
	case wire.Notification:
		c.noted(m)
	default:
		c.deliver(m.ID, noAnswer("neither a result nor an error is in the server's answer"))
	}
}

// unreadable is a line that is no message: too long, too deep or broken. It
// fails the call it names, or the only one there is.
func (c *conn) unreadable(bad *wire.LineError) {
	c.heard.Add(1)
	if bad.Msg.Method != "" {
		c.countStray()
		return
	}
	id := bad.Msg.ID
	if id.Absent() {
		id = wire.RawID([]byte("null"))
	}
	c.deliver(id, noAnswer(fmt.Sprintf("the server's answer cannot be read: %v", bad)))
}

// deliver hands a reply to its call. A null id names none, so it concerns a
// call only if it is an error and there is just one; servers also answer
// notifications that way.
func (c *conn) deliver(id wire.ID, r Reply) {
	k := c.take(id)
	if k == nil && id.Null() && r.Err != nil {
		k = c.takeSole()
	}
	if k == nil {
		c.countStray()
		if late := c.takeLate(id); late != nil {
			late(r)
		}
		return
	}
	k.reply <- r // has room: a call is taken once
}

func replyOf(m wire.Message) Reply {
	switch {
	case m.Err != nil && !isNull(m.Err):
		return Reply{Err: wire.ParseError(m.Err)}
	case m.Result == nil || isNull(m.Result):
		return noAnswer("the server answered with a null result")
	}
	return Reply{Result: m.Result}
}

func noAnswer(text string) Reply {
	return Reply{Err: &wire.Error{Code: wire.CodeInternal, Message: text}}
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// noted handles a notification of the server.
func (c *conn) noted(m wire.Message) {
	switch m.Method {
	case "notifications/progress":
		c.progress(m.Params)
	case "notifications/message":
		c.logged(m.Params)
	case "notifications/tools/list_changed":
		select {
		case c.listChanged <- struct{}{}:
		default:
		}
	}
}

func (c *conn) progress(params json.RawMessage) {
	k := c.find(wire.RawID(wire.Get(params, metaProgress)))
	if k == nil {
		c.countStray()
		return
	}
	k.clock.moved()
	if k.obs.Progress != nil {
		k.obs.Progress(params)
	}
}

// logged passes a log message to one call. Over stdio it names none; the
// newest that listens is the likeliest, and one is enough: several calls may
// belong to the same client.
func (c *conn) logged(params json.RawMessage) {
	c.mu.Lock()
	var newest *call
	for _, k := range c.calls {
		if k.obs.Log != nil && (newest == nil || k.id > newest.id) {
			newest = k
		}
	}
	c.mu.Unlock()
	if newest != nil {
		newest.obs.Log(params)
	}
}

// asked answers a request of the server at once. We announced no capability,
// so all but ping may be refused; an empty list of roots harms nobody.
func (c *conn) asked(m wire.Message) {
	var line []byte
	switch m.Method {
	case methodPing:
		line = wire.Reply(m.ID, json.RawMessage(`{}`))
	case "roots/list":
		line = wire.Reply(m.ID, json.RawMessage(`{"roots":[]}`))
	default:
		text := fmt.Sprintf("%q is not supported: this client announced no such capability", m.Method)
		line = wire.ReplyError(m.ID, &wire.Error{Code: wire.CodeMethodNotFound, Message: text})
	}
	select {
	case c.answers <- append(line, '\n'):
	default:
		c.countStray() // it asks faster than it reads
	}
}

// answer writes what asked queued; the pipe may be full while it does.
func (c *conn) answer() {
	for {
		select {
		case line := <-c.answers:
			c.in.write(c.ctx, line)
		case <-c.ctx.Done():
			return
		}
	}
}

package front

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"toolguardian/proxy/wire"
)

// levels in rising order (RFC 5424, as MCP names them).
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func (r *request) setLevel() (json.RawMessage, error) {
	level, _ := wire.GetString(r.msg.Params, "level")
	rank := slices.Index(levels, level)
	if rank < 0 {
		return nil, badParams("params.level must be one of debug, info, notice, warning, error, critical, alert, emergency")
	}
	s, err := r.session.wait(r.ctx)
	if err != nil {
		return nil, err
	}
	r.conn.level.Store(int32(rank))
	if err := r.conn.srv.o.Handler.SetLogLevel(r.ctx, s, level); err != nil {
		return nil, err
	}
	return json.RawMessage("{}"), nil
}

// log passes a log message on if the client wants its level. A stateless
// client asks for them in each request, else it gets none; a stateful one gets
// all until it sets a level. An unknown level passes to who gets any.
func (r *request) log(params json.RawMessage) {
	level, _ := wire.GetString(params, "level")
	least := int(r.conn.level.Load())
	if r.env.stateless {
		if least = slices.Index(levels, r.env.level); least < 0 {
			return
		}
	}
	if rank := slices.Index(levels, level); rank >= 0 && rank < least {
		return
	}
	r.notify("notifications/message", params, func() bool { return true })
}

// progress passes progress on under the client's token, while it grows (MCP,
// utilities/progress).
func (r *request) progress(token wire.ID, params json.RawMessage) {
	value, err := strconv.ParseFloat(string(wire.Get(params, "progress")), 64)
	if err != nil && !math.IsInf(value, 0) {
		return
	}
	mapped, err := wire.SetNotifiedToken(params, token)
	if err != nil {
		return
	}
	r.notify("notifications/progress", mapped, func() bool {
		grows := value > r.last
		if grows {
			r.last = value
		}
		return grows
	})
}

// listen answers subscriptions/listen (2026-07-28): an acknowledgement of what
// is granted, then changes until the client cancels it or the stream ends.
func (r *request) listen() (json.RawMessage, error) {
	defer r.listening(false)
	wanted := wire.Get(r.msg.Params, "notifications")
	if !isObject(wanted) {
		return nil, badParams("params.notifications must be an object")
	}
	if _, err := r.session.wait(r.ctx); err != nil {
		return nil, err
	}
	granted := string(wire.Get(wanted, "toolsListChanged")) == "true"
	r.acknowledge(granted)
	if granted {
		select {
		case <-r.ctx.Done():
		case <-r.conn.eof:
		}
	}
	return r.subscribed(""), nil
}

// listening adds the request to those that hear of changes, or takes it away.
// It is added while the stream is read, so that a client which listens first
// and lists then misses no change in between.
func (r *request) listening(on bool) {
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if on {
		c.listeners[r] = struct{}{}
	} else {
		delete(c.listeners, r)
	}
}

// acknowledge sends the first message of a subscription, then the change that
// came before it, if any.
func (r *request) acknowledge(granted bool) {
	kinds := "{}"
	if granted {
		kinds = `{"toolsListChanged":true}`
	}
	r.notify("notifications/subscriptions/acknowledged", r.subscribed(`"notifications":`+kinds), func() bool {
		r.acked = granted
		return true
	})
	if granted {
		r.notify(toolsChanged, r.subscribed(""), func() bool { return r.missed })
	}
}

// subscribed is an object with the subscription's id and other members.
func (r *request) subscribed(members string) json.RawMessage {
	if members != "" {
		members = "," + members
	}
	return json.RawMessage(`{"_meta":{"` + metaSubscription + `":` + r.msg.ID.String() + `}` + members + `}`)
}

const toolsChanged = "notifications/tools/list_changed"

func (c *conn) toolsChanged() {
	if c.initialized.Load() {
		c.send(wire.NewNotification(toolsChanged, nil))
	}
	c.mu.Lock()
	all := make([]*request, 0, len(c.listeners))
	for r := range c.listeners {
		all = append(all, r)
	}
	c.mu.Unlock()
	for _, r := range all {
		r.notify(toolsChanged, r.subscribed(""), func() bool {
			r.missed = !r.acked
			return r.acked
		})
	}
}

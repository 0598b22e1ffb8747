package backend

import (
	"maps"
	"slices"
	"strconv"

	"toolguardian/proxy/wire"
)

// call is one request in flight.
type call struct {
	id    int64
	reply chan Reply // room for one: the reader never waits
	obs   Observer
	clock *clock // nil: only its context ends it
	level string // of log messages a stateless server should send; empty: none

	standing bool // a subscription: nobody waits for its reply
}

// open gives a call its id and waits for its reply from now on.
func (c *conn) open(k *call) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	k.id, k.reply = c.next, make(chan Reply, 1)
	c.calls[k.id] = k
	return k
}

func (c *conn) forget(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, k.id)
}

// abandon is forget for a call that the server still works on; it returns false
// when deliver has taken the call. When too many pile up, the oldest answers
// are expected no more.
func (c *conn) abandon(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[k.id] == nil {
		return false
	}
	delete(c.calls, k.id)
	if k.obs.Late == nil {
		return true
	}
	if len(c.late) >= maxLate {
		delete(c.late, slices.Min(slices.Collect(maps.Keys(c.late))))
	}
	c.late[k.id] = k.obs.Late
	return true
}

// takeLate returns, once, who wants the late answer with that id.
func (c *conn) takeLate(id wire.ID) func(Reply) {
	n, err := strconv.ParseInt(id.Key(), 10, 64)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.late[n]
	delete(c.late, n)
	return f
}

// find returns the call with that id, in whatever form the server wrote it.
func (c *conn) find(id wire.ID) *call {
	n, err := strconv.ParseInt(id.Key(), 10, 64)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[n]
}

// take is find for a reply: whoever gets the call owes it one.
func (c *conn) take(id wire.ID) *call {
	n, err := strconv.ParseInt(id.Key(), 10, 64)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls[n]
	if k == nil {
		return nil
	}
	delete(c.calls, n)
	if n > c.told { // it has done with the notifications before
		c.owed = 0
	}
	return k
}

// takeSole takes the call that an error without an id must mean: the only one in
// flight, unless a notification went out since the last proper answer, which
// such an error may as well concern.
func (c *conn) takeSole() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed > 0 {
		c.owed--
		return nil
	}
	var only *call
	for _, k := range c.calls {
		switch {
		case k.standing:
		case only != nil:
			return nil
		default:
			only = k
		}
	}
	if only != nil {
		delete(c.calls, only.id)
	}
	return only
}

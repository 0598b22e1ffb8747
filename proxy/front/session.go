package front

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
)

// opening is a session that is opened once, by the request that needs it
// first; the others wait for it, and pings do not.
type opening struct {
	session *Session
	done    chan struct{}
	err     error // set before done is closed
}

// settled says whether opening has ended, and with which error.
func (o *opening) settled() (bool, error) {
	select {
	case <-o.done:
		return true, o.err
	default:
		return false, nil
	}
}

// wait returns the session when it is open.
func (o *opening) wait(ctx context.Context) (*Session, error) {
	if done, err := o.settled(); done {
		return o.session, err
	}
	select {
	case <-o.done:
		return o.session, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// open begins to open s in the given place unless a session is there. It is
// called by the reading goroutine, so requests behind the first one in the
// stream find the session begun.
func (c *conn) open(place **opening, s Session) *opening {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *place != nil {
		if _, err := (*place).settled(); err == nil {
			return *place
		}
	}
	id, err := uuid.NewV7()
	s.ID, s.Principal, s.info = id.String(), c.srv.o.Principal, c.srv.o.Info
	o := &opening{session: &s, done: make(chan struct{}), err: err}
	*place = o
	if err != nil || c.stopped {
		o.err = errors.Join(err, ErrClosed)
		close(o.done)
		return o
	}
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		defer close(o.done)
		o.err = c.srv.o.Handler.OpenSession(c.ctx, o.session)
	}()
	return o
}

// begun returns the session of the first initialize, nil before it.
func (c *conn) begun() *opening {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stateful
}

// batches says whether the client speaks a revision with batches.
func (c *conn) batches() bool {
	o := c.begun()
	return o != nil && o.session.Protocol == withBatches
}

// closeSessions is called when no request is left.
func (c *conn) closeSessions(ctx context.Context, end End) error {
	c.mu.Lock()
	open := [...]*opening{c.stateful, c.stateless}
	c.mu.Unlock()
	var all error
	for _, o := range open {
		if o == nil {
			continue
		}
		if done, err := o.settled(); !done || err != nil {
			continue
		}
		if err := c.srv.o.Handler.CloseSession(ctx, o.session, end); err != nil {
			all = errors.Join(all, fmt.Errorf("close session %s: %w", o.session.ID, err))
		}
	}
	return all
}

package backend

import (
	"context"
	"time"
)

const maxExtension = 10 // call timeouts that a call with progress may take

// clock ends a call when its time is up; progress restarts it, but not for
// ever. A nil clock never ends. It is a timer and no context, which would cost
// every call what only one that has to wait needs.
type clock struct {
	timer *time.Timer
	limit time.Duration
	first time.Time // when the time is up without progress
	last  time.Time // when it is up in any case
}

func startClock(limit time.Duration) *clock {
	now := time.Now()
	return &clock{timer: time.NewTimer(limit), limit: limit, first: now.Add(limit), last: now.Add(maxExtension * limit)}
}

func (k *clock) stop() { k.timer.Stop() }

// ended is read from when the time is up.
func (k *clock) ended() <-chan time.Time {
	if k == nil {
		return nil
	}
	return k.timer.C
}

// moved restarts the clock, unless the time is up.
func (k *clock) moved() {
	if k != nil && k.timer.Stop() {
		k.timer.Reset(min(k.limit, time.Until(k.last)))
	}
}

// within is a context for waiting before anything was sent, when there can be
// no progress yet. Its cause is ErrTimeout once the time is up.
func (k *clock) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if k == nil {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, k.first, ErrTimeout)
}

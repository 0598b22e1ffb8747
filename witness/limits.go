package witness

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"toolguardian/witness/api"
)

// limits bounds what one origin may send. It is asked only after a valid
// signature, so strangers can neither use up an origin's share nor make it
// grow: it has at most an entry for each enrolled origin.
type limits struct {
	perSecond float64 // below zero: no bound

	mu sync.Mutex
	of map[string]*rate.Limiter // guarded by mu
}

func newLimits(perSecond float64) *limits {
	return &limits{perSecond: perSecond, of: map[string]*rate.Limiter{}}
}

func (l *limits) take(origin string, now time.Time) error {
	if l.perSecond < 0 {
		return nil
	}
	const burstSeconds = 5
	l.mu.Lock()
	defer l.mu.Unlock()
	lim := l.of[origin]
	if lim == nil {
		lim = rate.NewLimiter(rate.Limit(l.perSecond), max(1, int(burstSeconds*l.perSecond)))
		l.of[origin] = lim
	}
	r := lim.ReserveN(now, 1)
	if wait := r.DelayFrom(now); wait > 0 {
		r.CancelAt(now)
		return api.ErrRateLimited{RetryAfter: wait}
	}
	return nil
}

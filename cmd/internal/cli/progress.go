package cli

import (
	"fmt"
	"io"
	"time"
)

// progress shows a count on stderr, on a terminal, once the work has taken a
// second. It belongs to one goroutine at a time.
type progress struct {
	w       io.Writer // nil: not shown
	what    string
	now     func() time.Time
	started time.Time
	shown   time.Time
}

func (a *app) progress(what string) *progress {
	p := &progress{what: what, now: a.Now, started: a.Now()}
	if terminal(a.Err) {
		p.w = a.Err
	}
	return p
}

func (p *progress) set(n uint64) {
	if p.w == nil {
		return
	}
	now := p.now()
	if now.Sub(p.started) < time.Second || now.Sub(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = now
	fmt.Fprintf(p.w, "\r%d %s, %.0f/s ", n, p.what, float64(n)/now.Sub(p.started).Seconds())
}

func (p *progress) done() {
	if p.w != nil && !p.shown.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

package bench

import (
	"fmt"
	"io"
	"time"
)

// Progress tells a person at a terminal how far a measurement is, once it has
// taken a second. A nil Progress is silent. It belongs to one goroutine.
type Progress struct {
	w     io.Writer
	began time.Time
	told  time.Time
}

// NewProgress writes to a terminal.
func NewProgress(w io.Writer) *Progress { return &Progress{w: w, began: time.Now()} }

// step tells that done of total are done, at most ten times a second.
func (p *Progress) step(what string, done, total int) {
	if p == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.began) < time.Second || now.Sub(p.told) < 100*time.Millisecond {
		return
	}
	p.told = now
	fmt.Fprintf(p.w, "\r\x1b[K%s %d%%", what, done*100/max(total, 1))
}

// Done wipes the line.
func (p *Progress) Done() {
	if p != nil && !p.told.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

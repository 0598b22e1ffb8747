package guard

import "sync"

// DefaultLimit is the look in a row that is refused first.
const DefaultLimit = 12

// Looks watches one session for looking at tools without ever calling one. It
// is safe for concurrent use.
type Looks struct {
	limit int

	mu sync.Mutex
	n  int // looks since the last call; under mu
}

// Verdict is what becomes of a look.
type Verdict int

const (
	Pass   Verdict = iota
	Notice         // answered, and the client is told
	Refuse         // not answered
)

// NewLooks is a guard that refuses the look with the number limit; 0 or less
// refuses none.
func NewLooks(limit int) *Looks { return &Looks{limit: limit} }

// Look counts one look and judges it: from two thirds of the limit on there is
// a notice, at the limit and beyond a refusal. n is how many there were in a
// row.
func (l *Looks) Look() (v Verdict, n int) {
	if l.limit <= 0 {
		return Pass, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n = min(l.n+1, l.limit)
	switch {
	case l.n == l.limit:
		return Refuse, l.n
	case l.n*3 >= l.limit*2:
		return Notice, l.n
	}
	return Pass, l.n
}

// Called starts the count again: a tool was called.
func (l *Looks) Called() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n = 0
}

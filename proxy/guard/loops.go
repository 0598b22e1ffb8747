package guard

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"
)

const (
	noticed  = 3 // equal results after which the client is told
	stopped  = 4 // equal results after which the call is not made again
	remember = 20
	forget   = 10 * time.Minute
)

// Loops watches one session for calls that are repeated without any change. It
// is safe for concurrent use.
type Loops struct {
	now  func() time.Time
	seed maphash.Seed

	mu    sync.Mutex
	calls []call // that ran, the newest last; under mu
}

type call struct {
	key    Key
	result uint64
	at     time.Time
}

// Key names calls that are the same: server, tool and arguments in canonical
// form.
type Key struct {
	server, tool string
	args         uint64
}

// NewLoops is a guard for a new session.
func NewLoops(now func() time.Time) *Loops {
	return &Loops{now: now, seed: maphash.MakeSeed()}
}

// Key digests a call. Arguments that differ in white space, in the order of
// members or in how a value is written are the same, as in a canonical form
// (RFC 8785); numbers that only a canonical form would make equal are not.
func (l *Loops) Key(server, tool string, args []byte) Key {
	k := Key{server: server, tool: tool}
	if v, ok := decode(args); ok {
		k.args = l.digest(v)
	} else {
		k.args = maphash.Bytes(l.seed, args)
	}
	return k
}

// Stops says whether the call is not to be made: the last four results of the
// same call were equal.
func (l *Loops) Stops(k Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.equal(k) >= stopped
}

// Ran adds a call that ran, with what came of it, and returns how many equal
// results it has given in a row where the client should be told, else 0.
func (l *Loops) Ran(k Key, result []byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) == remember {
		l.calls = append(l.calls[:0], l.calls[1:]...)
	}
	l.calls = append(l.calls, call{k, maphash.Bytes(l.seed, result), l.now()})
	if n := l.equal(k); n >= noticed {
		return n
	}
	return 0
}

// equal counts the newest results of a call that are alike, among those that
// are remembered and not too old.
func (l *Loops) equal(k Key) (n int) {
	oldest := l.now().Add(-forget)
	var result uint64
	for i := len(l.calls) - 1; i >= 0; i-- {
		c := l.calls[i]
		if c.key != k {
			continue
		}
		if c.at.Before(oldest) || n > 0 && c.result != result {
			return n
		}
		n, result = n+1, c.result
	}
	return n
}

// Listed says whether a tool is on a list of selectors: a server, a tool,
// "server.tool", or the beginning of one of them before a star.
func Listed(selectors []string, server, tool string) bool {
	full := server + "." + tool
	for _, s := range selectors {
		if s == server || s == tool || s == full {
			return true
		}
		if start, any := strings.CutSuffix(s, "*"); any && (strings.HasPrefix(full, start) || strings.HasPrefix(tool, start)) {
			return true
		}
	}
	return false
}

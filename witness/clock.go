package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// ErrClock: the wall clock cannot be believed. Nothing is signed until the
// operator has told that it is right.
var ErrClock = fmt.Errorf("%w: the clock is in doubt", api.ErrUnavailable)

const (
	clockMoves = time.Minute    // most that the wall clock may move against the monotonic one
	clockAhead = 24 * time.Hour // most that it may lie past the newest time token at start

	fileClock = "clock"
)

// clockGuard dates cosignatures by the wall clock for as long as that clock
// agrees with the monotonic one. A doubt stays until it is confirmed.
type clockGuard struct {
	wall func() time.Time
	mono func() time.Duration

	mu    sync.Mutex
	began time.Time     // what the wall clock said; guarded by mu
	from  time.Duration // when the monotonic clock said this; guarded by mu
	doubt error         // guarded by mu
}

func newClockGuard(wall func() time.Time, mono func() time.Duration) *clockGuard {
	g := &clockGuard{wall: wall, mono: mono}
	g.confirm()
	return g
}

// confirm believes the wall clock from now on and gives what it says.
func (g *clockGuard) confirm() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.began, g.from, g.doubt = g.wall().Round(0), g.mono(), nil
	return g.began
}

// now is the time to date with, or ErrClock. All movement since the start
// counts together: many small steps make a large one.
func (g *clockGuard) now() (time.Time, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.wall()
	moved := at.Round(0).Sub(g.began) - (g.mono() - g.from)
	if g.doubt == nil && moved.Abs() > clockMoves {
		g.doubt = fmt.Errorf("%w: it moved by %v against the monotonic clock", ErrClock, moved.Round(time.Second))
	}
	if g.doubt != nil {
		return at, fmt.Errorf("%w; set it right, then tell: tool-guardian witness recover --clock", g.doubt)
	}
	return at, nil
}

// start compares the clock with what the log remembers: the newest
// cosignature, and the newest time token where there is one. What the operator
// has confirmed before counts in their place.
func (g *clockGuard) start(cosigned, token time.Time, told confirmation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !cosigned.After(told.Cosigned) {
		cosigned = told.At
	}
	if !token.IsZero() && told.At.After(token) {
		token = told.At
	}
	at := g.began
	switch {
	case at.Before(cosigned):
		g.doubt = fmt.Errorf("%w: it says %s, the newest cosignature %s", ErrClock, stamp(at), stamp(cosigned))
	case !token.IsZero() && at.Sub(token) > clockAhead:
		g.doubt = fmt.Errorf("%w: it says %s, the newest time token %s: more than a day ago", ErrClock, stamp(at), stamp(token))
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// confirmation is what the operator told of the clock: it was right at At,
// though a cosignature said Cosigned.
type confirmation struct {
	At       time.Time `json:"at"`
	Cosigned time.Time `json:"cosigned"`
}

func readConfirmation(dir string) (c confirmation, err error) {
	path := filepath.Join(dir, fileClock)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("%s: %w; remove it and confirm the clock again", path, err)
	}
	return c, nil
}

// judgeClock is the clock's part of a start.
func (s *Server) judgeClock(r store.Reader) error {
	cosigned, err := newestCosignature(r)
	if err != nil {
		return err
	}
	token, err := s.newestToken(r)
	if err != nil {
		return err
	}
	told, err := readConfirmation(s.o.Dir)
	if err != nil {
		return err
	}
	s.seq.clock.start(cosigned, token, told)
	if _, err := s.seq.clock.now(); err != nil {
		s.o.Logger.Error("nothing is signed", "err", err)
	}
	return nil
}

func newestCosignature(r store.Reader) (at time.Time, err error) {
	err = scanAgents(r, func(rec *originRecord) {
		if rec.Head != nil && rec.Head.Time > at.Unix() {
			at = time.Unix(rec.Head.Time, 0)
		}
	})
	return at, err
}

// newestToken is zero while nothing was stamped.
func (s *Server) newestToken(r store.Reader) (at time.Time, err error) {
	size, err := lastStamped(r, s.origin)
	if err != nil || size == 0 {
		return at, err
	}
	records, err := readStamps(r, size)
	return records.newest(), err
}

// ConfirmClock is the operator's word that the clock is right now. It outlives
// the process.
func (s *Server) ConfirmClock() error {
	var told confirmation
	err := s.read(func(p published) (err error) {
		told.Cosigned, err = newestCosignature(p)
		return err
	})
	if err != nil {
		return err
	}
	told.At = s.o.Now().UTC()
	b, err := json.Marshal(told)
	if err != nil {
		return err
	}
	if err := writeDurably(filepath.Join(s.o.Dir, fileClock), append(b, '\n')); err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	s.o.Logger.Warn("the operator confirmed the clock", "at", stamp(s.seq.clock.confirm()))
	return nil
}

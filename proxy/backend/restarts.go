package backend

import "time"

const (
	crashWindow = 60 * time.Second // two failures within it are too many
	firstDelay  = time.Second
	laterDelay  = 5 * time.Second
)

// restarts decides what follows a failure. The zero value is a backend that
// never failed. It belongs to the goroutine that runs the backend.
type restarts struct {
	failures   int
	last       time.Time // of the last failure
	lastChance bool      // the one attempt after DOWN is under way
}

// after records a failure at that time. up says whether the backend had come
// up before it. It returns the state to show, how long to wait, and whether to
// try again at all.
func (r *restarts) after(at time.Time, up bool) (State, time.Duration, bool) {
	recent := r.failures > 0 && at.Sub(r.last) < crashWindow
	earlier := r.failures
	r.failures++
	r.last = at
	switch {
	case r.lastChance && (!up || recent):
		return failedState(up, earlier), 0, false
	case !up || recent:
		r.lastChance = true
		return failedState(up, earlier), crashWindow, true
	}
	r.lastChance = false
	if earlier == 0 {
		return Starting, firstDelay, true
	}
	return Starting, laterDelay, true
}

// failedState tells a server that never worked from one that stopped working.
func failedState(up bool, earlier int) State {
	if !up && earlier == 0 {
		return Unknown
	}
	return Down
}

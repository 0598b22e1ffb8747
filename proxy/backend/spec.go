package backend

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"time"

	"toolguardian/proxy/wire"
)

// Protocol revisions that a backend may speak over stdio.
const (
	Stateless   = "2026-07-28"
	latestState = "2025-11-25"
	oldestState = "2024-11-05"
)

// Spec says how to run a backend. The zero value of each limit has a default.
type Spec struct {
	Name    string
	Command string   // looked up in Env's PATH unless it holds a separator
	Args    []string // already expanded
	Env     []string // complete: nothing is added
	Dir     string   // empty: the router's

	// Protocol forces a revision; empty finds it out.
	Protocol string

	StartTimeout  time.Duration // process, handshake and catalogue; 90 s
	Silence       time.Duration // of initialize, before a fresh process is asked the stateless way; 20 s
	CallTimeout   time.Duration // restarted by progress, to ten times as long at most; 120 s
	MaxConcurrent int           // calls in flight; 0 is no limit

	// Hint is added to the reason why it did not start, such as which
	// variables it was not given.
	Hint string
}

// withDefaults fills the limits in.
func (s Spec) withDefaults() Spec {
	s.StartTimeout = cmp.Or(s.StartTimeout, 90*time.Second)
	s.Silence = cmp.Or(s.Silence, 20*time.Second)
	s.CallTimeout = cmp.Or(s.CallTimeout, 120*time.Second)
	return s
}

// ClientInfo is how the router names itself to a backend.
type ClientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Verdicts remembers which revision a command speaks, so that the next start
// need not find out again. It is called from several goroutines.
type Verdicts interface {
	Load(key string) (protocol string, ok bool)
	Store(key, protocol string)
	Drop(key string)
}

// Options are what a backend needs of its surroundings.
type Options struct {
	Client     ClientInfo
	Supervisor *Supervisor // required
	Verdicts   Verdicts    // nil: nothing is remembered

	// OnCatalogue is called after the tools were read: before the state becomes
	// UP, and after a change. OnState is called after the state changed. Both
	// come from the backend's own goroutine and must not call Close.
	OnCatalogue func(*Backend)
	OnState     func(*Backend)

	Logger *slog.Logger     // nil: silent
	Now    func() time.Time // nil: time.Now
}

func (o Options) withDefaults() Options {
	if o.Verdicts == nil {
		o.Verdicts = forgetful{}
	}
	if o.OnCatalogue == nil {
		o.OnCatalogue = func(*Backend) {}
	}
	if o.OnState == nil {
		o.OnState = func(*Backend) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

type forgetful struct{}

func (forgetful) Load(string) (string, bool) { return "", false }
func (forgetful) Store(string, string)       {}
func (forgetful) Drop(string)                {}

// State is what a catalogue shows of a backend.
type State string

// The states, as users read them.
const (
	Starting     State = "STARTING"
	Up           State = "UP"
	Down         State = "DOWN"
	Unknown      State = "UNKNOWN" // it never came up
	AuthRequired State = "AUTH_REQUIRED"
	Unsupported  State = "UNSUPPORTED"
)

// Status is a snapshot.
type Status struct {
	State      State
	Err        error    // why it is not UP
	StderrTail []string // last lines of the newest process, oldest first
	Noise      int      // stdout lines of the newest process that were no message
	Stray      int      // messages that belonged to nothing: late or unknown replies
	Respawns   int
	PID        int
	Protocol   string
	ServerInfo json.RawMessage // as announced; nil when it was not
	Flags      []string        // oddities to show: one sentence each
}

// Observer hears of a call while it runs. Its functions come from the
// backend's reading goroutine and must return at once; nil ones are skipped.
// After a reply nothing more comes, but when Request returns an error one may
// still be running.
type Observer struct {
	Progress func(params json.RawMessage) // token as the backend knows it
	Log      func(params json.RawMessage)
	Sent     func() // the whole request was handed to the backend

	// Late is called at most once, after Request returned ErrTimeout or
	// ErrCancelled, if the answer comes nevertheless. The caller of Request
	// never gets it.
	Late func(Reply)
}

// Reply is what the backend answered: Result as it came, or Err. Both are set
// for a result that cannot be passed on as it is, such as input_required.
type Reply struct {
	Result json.RawMessage
	Err    *wire.Error
}

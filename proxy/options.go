package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"toolguardian/policy"
	"toolguardian/proxy/backend"
	"toolguardian/proxy/config"
	"toolguardian/proxy/guard"
	"toolguardian/proxy/journal"
	"toolguardian/proxy/spill"
	"toolguardian/receipts"
)

// Recorder keeps receipts. *chain.Chain is one.
type Recorder interface {
	// Append returns once the receipt is durable.
	Append(context.Context, receipts.Receipt) (receipts.Position, error)
	// PersonSalt is the salt under which a person is committed to, the same
	// in every receipt.
	PersonSalt(ctx context.Context, person []byte) ([32]byte, error)
}

// Backend is one server that runs. *backend.Backend is one.
type Backend interface {
	Status() backend.Status
	Ready(context.Context) error
	Tools() []json.RawMessage
	Request(ctx context.Context, method string, params json.RawMessage, o backend.Observer) (backend.Reply, error)
	Close(context.Context)
}

// EvidenceMode says what a call owes to its receipts.
type EvidenceMode string

const (
	EvidenceOff      EvidenceMode = "off"
	EvidenceOn       EvidenceMode = "on"       // a store failure lets the call run, a gap receipt follows
	EvidenceRequired EvidenceMode = "required" // no durable decision receipt, no call
)

// Previous holds digests of the last run, for the changed receipts; nil where
// there was none.
type Previous struct {
	Config, Policy *[32]byte
	Catalogues     map[string][32]byte // of each server's definitions
}

// Options are copied by New.
type Options struct {
	Config     *config.Config      // required
	Supervisor *backend.Supervisor // starts the backends
	Verdicts   backend.Verdicts    // nil: nothing is remembered
	Seen       map[string]Seen     // the servers' tools in the last run
	Hints      map[string]string   // what a server without a description said of itself in the last run

	Evidence  EvidenceMode // "": off without a Recorder, else on
	Recorder  Recorder     // required unless off
	NotBefore func() *receipts.NotBefore
	Previous  Previous
	Heartbeat time.Duration // between signs of life of a session; 0: 5 minutes

	Policy *policy.Policy // nil: everything is allowed
	Calls  *journal.Calls // nil: no call is logged

	Unchecked  bool          // pass arguments on that do not fit their schema
	CheckLimit time.Duration // that a call waits for its schema; 0: 50 ms

	Unguarded bool // let a call be repeated however often its result was the same
	LookLimit int  // looks in a row, without a call, of which the last is refused; 0: 12, below 0: none

	Spills   *spill.Store // keeps what was shortened; nil: nothing is shortened
	NoLadder bool         // shorten nothing
	Intent   bool         // of a long result, show what the call's intent names

	Wait         time.Duration // of discovery for a server that starts; 0: 10 s
	StartTimeout time.Duration // 0: 90 s
	CallTimeout  time.Duration // 0: 120 s
	RawResults   bool          // add nothing to what a backend answers
	DescribeFull bool          // describe_tool answers in full where detail is absent
	DescWords    int           // of a description in a line; 0: 12
	MaxChars     int           // of a server's block in a list; 0: no bound
	Terse        bool          // a sentence for each tool of the router's own, for small windows
	Needs        bool          // a search says which tool provides a required argument
	SkillFolders []string      // where SKILL.md files are looked for

	// Learnt hears, from a goroutine of its own and soon after definitions came
	// or changed, that what Hints, Seen and Catalogues give can be kept. It is
	// not called once Serve has returned; nil: nobody hears.
	Learnt func(*Router)

	Version string
	Now     func() time.Time // nil: time.Now
	Logger  *slog.Logger     // nil: silent

	// Start starts a backend; nil: backend.Start.
	Start func(context.Context, backend.Spec, backend.Options) Backend
}

// check fills in the defaults and refuses what cannot work.
func (o *Options) check() error {
	if o.Config == nil {
		return errors.New("proxy: Options.Config is missing")
	}
	if o.Evidence == "" {
		o.Evidence = EvidenceOn
		if o.Recorder == nil {
			o.Evidence = EvidenceOff
		}
	}
	switch o.Evidence {
	case EvidenceOff:
		o.Recorder = nil
	case EvidenceOn, EvidenceRequired:
		if o.Recorder == nil {
			return fmt.Errorf("proxy: evidence is %q and there is no Recorder", o.Evidence)
		}
	default:
		return fmt.Errorf("proxy: evidence %q: use off, on or required", o.Evidence)
	}
	o.defaults()
	return nil
}

func (o *Options) defaults() {
	o.LookLimit = cmp.Or(o.LookLimit, guard.DefaultLimit)
	o.Heartbeat = cmp.Or(o.Heartbeat, 5*time.Minute)
	o.Wait = cmp.Or(o.Wait, 10*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 90*time.Second)
	o.CallTimeout = cmp.Or(o.CallTimeout, 120*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Policy == nil {
		o.Policy = policy.AllowAll()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NotBefore == nil {
		o.NotBefore = func() *receipts.NotBefore { return nil }
	}
	if o.Start == nil {
		o.Start = func(ctx context.Context, s backend.Spec, bo backend.Options) Backend {
			return backend.Start(ctx, s, bo)
		}
	}
}

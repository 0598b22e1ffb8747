package tsa

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// DefaultTimeout bounds one exchange with one authority.
const DefaultTimeout = 10 * time.Second

// Remote is one authority a Client may ask.
type Remote struct {
	Name       string         // label, unique among the client's authorities
	URL        string         // http or https
	Roots      *x509.CertPool // what its tokens must chain to; nil: all are unanchored
	ExtraCerts [][]byte       // DER, for authorities that embed no certificate
	Policy     string         // asked for and required; empty: the authority's default
	AllowESSv1 bool           // accept a SHA-1 certificate hash from this authority
}

// ClientOptions configures a Client.
type ClientOptions struct {
	Authorities []Remote          // asked in this order; at least one
	Transport   http.RoundTripper // nil: http.DefaultTransport
	Timeout     time.Duration     // one exchange, from dialling to the last byte; zero: DefaultTimeout
	MaxSkew     time.Duration     // genTime against our clock, both ways; zero: DefaultMaxSkew
	Now         func() time.Time  // nil: time.Now
	Logger      *slog.Logger      // nil: discards
	Report      func(Attempt)     // called after every attempt, from the calling goroutine; may be nil
}

// Outcome is what became of an attempt.
type Outcome string

// The outcomes. Only Stamped counts.
const (
	Stamped     Outcome = "stamped"     // Token is verified
	Unanchored  Outcome = "unanchored"  // sound, but no pinned root: keep Token.DER, it counts once the root is added
	Unreachable Outcome = "unreachable" // no answer, or none in time
	Later       Outcome = "later"       // the authority cannot now; ask again another time
	Resting     Outcome = "resting"     // not asked: it told us to wait
	Stopped     Outcome = "stopped"     // a permanent refusal, now or before; an operator must act
	Refused     Outcome = "refused"     // what it sent is not what was asked: keep Response, raise an alarm
)

// Attempt is one authority's part in a call.
type Attempt struct {
	Authority string
	Outcome   Outcome
	Token     Token     // when Stamped or Unanchored
	Err       error     // unless Stamped
	Response  []byte    // what the authority sent as a reply, at most MaxToken bytes, for diagnosis
	RetryAt   time.Time // when Resting, or Later with a wish of the authority
	// OwnClock: this and another authority agree on a time that our clock is far
	// from; ours is suspected.
	OwnClock bool
}

// StampError says why no authority gave a token.
type StampError struct{ Attempts []Attempt }

// Error lists the attempts on one line.
func (e *StampError) Error() string {
	parts := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		parts[i] = fmt.Sprintf("%s: %s: %v", a.Authority, a.Outcome, a.Err)
	}
	return "no timestamp: " + strings.Join(parts, "; ")
}

// Unwrap gives the attempts' errors to errors.Is and errors.As.
func (e *StampError) Unwrap() []error {
	var errs []error
	for _, a := range e.Attempts {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// Permanent reports that no authority is left to ask until an operator acts.
func (e *StampError) Permanent() bool {
	for _, a := range e.Attempts {
		if a.Outcome != Stopped {
			return false
		}
	}
	return len(e.Attempts) > 0
}

// Client asks authorities for tokens and verifies each before returning it. It
// asks an authority at most once a call: retrying is the caller's, by its own
// schedule. It is safe for concurrent use.
type Client struct {
	authorities []Remote
	http        http.Client
	timeout     time.Duration
	skew        time.Duration
	now         func() time.Time
	logger      *slog.Logger
	report      func(Attempt)

	mu      sync.Mutex
	resting map[string]time.Time // guarded by mu: authority → not before
	stopped map[string]error     // guarded by mu: authority → its permanent refusal
}

// New copies and validates o.
func New(o ClientOptions) (*Client, error) {
	if len(o.Authorities) == 0 {
		return nil, errors.New("timestamp client: no authority is given")
	}
	names := map[string]bool{}
	for _, r := range o.Authorities {
		if err := checkRemote(r, names); err != nil {
			return nil, fmt.Errorf("timestamp client: %w", err)
		}
		names[r.Name] = true
	}
	if o.Timeout < 0 || o.MaxSkew < 0 {
		return nil, errors.New("timestamp client: negative timeout or skew")
	}
	c := &Client{
		authorities: append([]Remote(nil), o.Authorities...),
		http:        http.Client{Transport: o.Transport, CheckRedirect: refuseRedirect},
		timeout:     o.Timeout, skew: o.MaxSkew, now: o.Now, logger: o.Logger, report: o.Report,
		resting: map[string]time.Time{}, stopped: map[string]error{},
	}
	c.setDefaults()
	return c, nil
}

func (c *Client) setDefaults() {
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if c.skew == 0 {
		c.skew = DefaultMaxSkew
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
}

func checkRemote(r Remote, names map[string]bool) error {
	if r.Name == "" || names[r.Name] {
		return fmt.Errorf("authority name %q is empty or taken", r.Name)
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return fmt.Errorf("authority %s: %w", r.Name, err)
	}
	if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("authority %s: %q is not an http or https URL", r.Name, r.URL)
	}
	if r.Policy != "" {
		if _, err := encodeOID(r.Policy); err != nil {
			return fmt.Errorf("authority %s: policy %q is not a dotted OID: %w", r.Name, r.Policy, err)
		}
	}
	return nil
}

// Stamp asks the authorities in order and returns the first verified token over
// a SHA-256 digest. Without one the error is a [*StampError], or ctx's.
func (c *Client) Stamp(ctx context.Context, imprint [32]byte) (Token, error) {
	var run attempts
	for _, r := range c.authorities {
		if err := ctx.Err(); err != nil {
			return Token{}, errors.Join(err, &StampError{run})
		}
		a := c.attempt(ctx, r, imprint, &run)
		if a.Outcome == Stamped {
			return a.Token, nil
		}
	}
	return Token{}, &StampError{run}
}

// StampAll asks every authority, one after another, and returns one attempt for
// each that was asked before ctx ended. How many must have stamped is the
// caller's to judge, by distinct operators.
func (c *Client) StampAll(ctx context.Context, imprint [32]byte) []Attempt {
	var run attempts
	for _, r := range c.authorities {
		if ctx.Err() != nil {
			break
		}
		c.attempt(ctx, r, imprint, &run)
	}
	return run
}

// Resume lets an authority be asked again that rests or was stopped.
func (c *Client) Resume(authority string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.resting, authority)
	delete(c.stopped, authority)
}

// attempts of one call, in the order of asking.
type attempts []Attempt

// attempt asks one authority, unless it rests or was stopped, and records what
// became of it.
func (c *Client) attempt(ctx context.Context, r Remote, imprint [32]byte, run *attempts) Attempt {
	a, skip := c.skip(r.Name)
	if !skip {
		a = c.ask(ctx, r, imprint)
		a.Authority = r.Name
		c.remember(a)
	}
	a.OwnClock = run.agrees(a, c.skew)
	*run = append(*run, a)
	c.log(ctx, a)
	if c.report != nil {
		c.report(a)
	}
	return a
}

// skip reports an authority that is not to be asked now.
func (c *Client) skip(name string) (Attempt, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.stopped[name]; err != nil {
		return Attempt{Authority: name, Outcome: Stopped, Err: err}, true
	}
	until := c.resting[name]
	if c.now().Before(until) {
		err := fmt.Errorf("asked to wait until %s", until.UTC().Format(time.RFC3339))
		return Attempt{Authority: name, Outcome: Resting, Err: err, RetryAt: until}, true
	}
	delete(c.resting, name)
	return Attempt{}, false
}

func (c *Client) remember(a Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case a.Outcome == Stopped:
		c.stopped[a.Authority] = a.Err
	case !a.RetryAt.IsZero():
		c.resting[a.Authority] = a.RetryAt
	}
}

// agrees reports that two authorities of one call were refused for their time
// and state about the same one.
func (run attempts) agrees(a Attempt, skew time.Duration) bool {
	at, ok := refusedTime(a)
	if !ok {
		return false
	}
	for _, other := range run {
		if then, ok := refusedTime(other); ok && then.Sub(at).Abs() <= skew {
			return true
		}
	}
	return false
}

func refusedTime(a Attempt) (time.Time, bool) {
	var off *clockRefusal
	if errors.As(a.Err, &off) {
		return off.stated, true
	}
	return time.Time{}, false
}

// log raises the voice where a person must look.
func (c *Client) log(ctx context.Context, a Attempt) {
	level := slog.LevelInfo
	switch a.Outcome {
	case Stamped, Resting:
		level = slog.LevelDebug
	case Refused, Stopped, Unanchored:
		level = slog.LevelWarn
	}
	if a.OwnClock {
		level = slog.LevelError
	}
	c.logger.Log(ctx, level, "timestamp attempt", "authority", a.Authority, "outcome", string(a.Outcome), "own_clock_suspected", a.OwnClock, "err", a.Err)
}

package args

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/wire"
)

// Bounds of a check. What goes beyond one is not checked, and never refused.
const (
	maxSchema = 256 << 10 // bytes of a schema
	maxArgs   = 4 << 20   // bytes of arguments
	maxSteps  = 200_000   // subschemas applied in one check
	maxDigits = 400       // characters of a number
	budget    = 50 * time.Millisecond
	compilers = 2 // schemas compiled at once
)

// errUnchecked is the outcome of a check that could not be finished.
var errUnchecked = errors.New("not checked")

// Checker checks arguments against the inputSchema of the tools they are for.
// A schema is compiled at its tool's first call that does not plainly fit. It is safe for concurrent use.
type Checker struct {
	budget time.Duration
	slots  chan struct{} // a place for each schema being compiled

	mu    sync.Mutex
	known map[[2]string]*schema // by server and tool; under mu
}

// NewChecker bounds the time that a call waits for a compilation or a check; 0
// is 50 ms.
func NewChecker(limit time.Duration) *Checker {
	if limit <= 0 {
		limit = budget
	}
	return &Checker{budget: limit, slots: make(chan struct{}, compilers), known: map[[2]string]*schema{}}
}

// Check returns the arguments as they should be sent: the same bytes, but for
// values that the schema leaves no doubt about ("2" for a number, "true" for a
// boolean, 2 for a text). The error is an *Error that tells every problem of
// arguments which cannot work. Where the schema cannot be used, or a check
// would cost too much, the arguments come back as they are.
func (c *Checker) Check(t catalogue.Tool, args json.RawMessage) (json.RawMessage, error) {
	s := c.schema(t)
	if len(args) > maxArgs || s.usual.takesAll(args) || !c.compiled(s) || s.v == nil {
		return args, nil
	}
	sent, err := s.judge(args, c.budget)
	var bad *Error
	if errors.As(err, &bad) {
		bad.text = t.Server + "." + t.Name + " was not called, because its arguments cannot work.\n" + bad.text
		return nil, bad
	}
	if err != nil {
		return args, nil
	}
	return sent, nil
}

// schema is one tool's. v is set before ready is closed, and nil then if the
// schema cannot be used.
type schema struct {
	definition json.RawMessage // the tool's, to know a changed one
	input      json.RawMessage
	usual      *usual // nil: it has to be compiled to tell anything

	start sync.Mutex // held to begin the compilation
	begun bool       // under start
	ready chan struct{}
	v     *validator
}

func (c *Checker) schema(t catalogue.Tool) *schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{t.Server, t.Name}
	if s := c.known[key]; s != nil && bytes.Equal(s.definition, t.Raw) {
		return s
	}
	s := &schema{definition: t.Raw, input: wire.Get(t.Raw, "inputSchema"), ready: make(chan struct{})}
	if len(s.input) <= maxSchema {
		s.usual = readUsual(s.input, true)
	}
	c.known[key] = s
	return s
}

// compiled waits for the compilation, and says whether it is over. One that
// takes too long goes on for the calls to come; it is linear in a bounded
// schema, so it ends, and at most two run at a time.
func (c *Checker) compiled(s *schema) bool {
	select {
	case <-s.ready:
		return true
	default:
	}
	if !c.begin(s) {
		return false
	}
	late := time.NewTimer(c.budget)
	defer late.Stop()
	select {
	case <-s.ready:
		return true
	case <-late.C:
		return false
	}
}

func (c *Checker) begin(s *schema) bool {
	s.start.Lock()
	defer s.start.Unlock()
	if s.begun {
		return true
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return false
	}
	s.begun = true
	go func() {
		defer func() { <-c.slots }()
		defer close(s.ready)
		if v, err := compile(s.input, c.budget); err == nil {
			s.v = v
		}
	}()
	return true
}

// judge is one check with its coercions.
func (s *schema) judge(args json.RawMessage, limit time.Duration) (json.RawMessage, error) {
	value, err := decode(args)
	if err != nil {
		return nil, err
	}
	faults, err := s.v.check(value, limit)
	if err != nil || len(faults) == 0 {
		return args, err
	}
	if fixed := coerce(args, value, faults); fixed != nil {
		again, err := decode(fixed)
		if err != nil {
			return nil, err
		}
		left, err := s.v.check(again, limit)
		if err != nil || len(left) == 0 {
			return fixed, err
		}
		value, faults = again, left
	}
	return nil, s.refusal(value, faults, limit)
}

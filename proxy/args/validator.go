package args

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// validator is a compiled schema. One check runs at a time, since the meter
// belongs to the check.
type validator struct {
	compiled *jsonschema.Schema
	document any // the schema, decoded; only read
	meter    *meter
	patterns atomic.Bool   // it has regular expressions
	turn     chan struct{} // a place for the check that runs
}

// location is the URL a schema is known by while it is compiled.
const location = "tool:///input"

// compile prepares a schema of any draft; 2020-12 where it names none (MCP,
// tools). Its own references are followed, to other documents none.
func compile(input json.RawMessage, limit time.Duration) (v *validator, err error) {
	defer recovered(&err)
	if len(input) > maxSchema {
		return nil, errUnchecked
	}
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage(`{"type":"object"}`)
	}
	v = &validator{meter: &meter{}, turn: make(chan struct{}, 1)}
	if v.document, err = decode(input); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(v.engine(limit))
	c.AssertVocabs()
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: "tool:///meter", Compile: v.metered})
	for _, name := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
	if err := c.AddResource(location, v.document); err != nil {
		return nil, err
	}
	v.compiled, err = c.Compile(location)
	return v, err
}

// formats are those the library would assert in older drafts. Servers read
// them in many ways, so they are left to the server.
var formats = []string{"json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6", "hostname",
	"email", "date", "time", "date-time", "uri", "iri", "uri-reference", "iri-reference", "uri-template", "semver"}

// noLoader refuses every document but the schema itself: neither the network
// nor a file is read.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%w: the schema refers to %s", errUnchecked, url)
}

// meter counts the subschemas applied in one check and ends it by a panic when
// there were too many: references can double the work at each step.
type meter struct {
	left  int
	until time.Time
}

var errCostly = fmt.Errorf("%w: it costs too much", errUnchecked)

// Validate implements jsonschema.SchemaExt, as part of every subschema.
func (m *meter) Validate(*jsonschema.ValidatorContext, any) {
	if m.left--; m.left <= 0 || m.left%256 == 0 && time.Now().After(m.until) {
		panic(errCostly)
	}
}

func (v *validator) metered(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
	return v.meter, nil
}

// pattern is a regular expression as ECMA-262 reads it.
type pattern struct{ *regexp2.Regexp }

// MatchString ends the check where the expression takes too long: it neither
// matched nor failed.
func (p pattern) MatchString(s string) bool {
	ok, err := p.Regexp.MatchString(s)
	if err != nil {
		panic(errCostly)
	}
	return ok
}

func (v *validator) engine(limit time.Duration) jsonschema.RegexpEngine {
	return func(expr string) (jsonschema.Regexp, error) {
		re, err := regexp2.Compile(expr, regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			re, err = regexp2.Compile(expr, regexp2.ECMAScript)
		}
		if err != nil {
			return nil, err
		}
		re.MatchTimeout = limit
		v.patterns.Store(true)
		return pattern{re}, nil
	}
}

// check returns what is wrong with a value, nothing when it fits, and an error
// when that could not be found out within the limit.
func (v *validator) check(value any, limit time.Duration) ([]fault, error) {
	if !v.patterns.Load() {
		v.turn <- struct{}{} // held for limit at most
		defer func() { <-v.turn }()
		return v.run(value, limit)
	}
	return v.checkAside(value, limit)
}

// checkAside runs a check whose expressions may outlive the limit by their own
// timeout, for which nobody waits.
func (v *validator) checkAside(value any, limit time.Duration) ([]fault, error) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case v.turn <- struct{}{}:
	case <-late.C:
		return nil, errCostly
	}
	type outcome struct {
		faults []fault
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-v.turn }()
		faults, err := v.run(value, limit)
		done <- outcome{faults, err}
	}()
	select {
	case o := <-done:
		return o.faults, o.err
	case <-late.C:
		return nil, errCostly
	}
}

func (v *validator) run(value any, limit time.Duration) (faults []fault, err error) {
	defer recovered(&err)
	v.meter.left, v.meter.until = maxSteps, time.Now().Add(limit)
	err = v.compiled.Validate(value)
	var bad *jsonschema.ValidationError
	if !errors.As(err, &bad) {
		return nil, err
	}
	if undecided(bad) {
		return nil, errUnchecked
	}
	f := finder{root: v.document, value: value}
	return f.find(bad), nil
}

// recovered turns a panic of a check into its error.
func recovered(err *error) {
	switch r := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%w: %w", errUnchecked, r)
	default:
		*err = fmt.Errorf("%w: %v", errUnchecked, r)
	}
}

// undecided says that the schema itself failed: a reference that only leads
// to itself.
func undecided(e *jsonschema.ValidationError) bool {
	switch e.ErrorKind.(type) {
	case *kind.RefCycle, *kind.InvalidJsonValue:
		return true
	}
	for _, c := range e.Causes {
		if undecided(c) {
			return true
		}
	}
	return false
}

// at is the subschema an error was raised by, nil if it is not an object.
func (f finder) at(url string) map[string]any {
	_, fragment, _ := strings.Cut(url, "#")
	s, _ := follow(f.root, "#"+fragment).(map[string]any)
	return s
}

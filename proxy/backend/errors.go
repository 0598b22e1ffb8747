package backend

import (
	"errors"
	"fmt"
	"strings"
)

// What a caller decides on. A [CallError] matches one reason and, when no byte
// of the request was written, ErrNotSent too. Without ErrNotSent the outcome of
// the call is unknown.
var (
	ErrTimeout   = errors.New("no answer in time")
	ErrCancelled = errors.New("cancelled")
	ErrDied      = errors.New("the server ended during the call")
	ErrDown      = errors.New("the server is not running")
	ErrTaskOnly  = errors.New("the tool only runs as a task, which is not supported")
	ErrNotSent   = errors.New("the request was not sent")
)

// Exit is how a process ended.
type Exit struct {
	Code   int    `json:"code"`             // -1: by a signal, or not known
	Signal string `json:"signal,omitempty"` // "killed", "segmentation fault"…
}

func (e Exit) String() string {
	switch {
	case e.Signal != "":
		return "signal: " + e.Signal
	case e.Code < 0:
		return "exit unknown"
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// CallError says why a request has no answer.
type CallError struct {
	Server string
	Reason error // one of the sentinels
	Sent   bool  // some of its bytes were written: outcome unknown
	Cause  error // nil, or more of it: the context's cause, why it is down
	Exit   *Exit // for ErrDied and ErrDown, when the process ended
	Stderr []string
}

func (e *CallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server %q: %v", e.Server, e.Reason)
	if e.Exit != nil {
		fmt.Fprintf(&b, " (%v)", *e.Exit)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if e.Sent {
		b.WriteString("; the outcome is unknown")
	} else {
		b.WriteString("; the request was not sent")
	}
	writeTail(&b, e.Stderr)
	return b.String()
}

// Is matches the reason, and ErrNotSent when nothing was written.
func (e *CallError) Is(target error) bool {
	return target == e.Reason || (target == ErrNotSent && !e.Sent)
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Cause }

// StartError says why a backend did not come up.
type StartError struct {
	Server string
	Step   string // "start", "initialize", "server/discover", "tools/list"
	Err    error
	Exit   *Exit
	Stderr []string
	Hint   string // what the configuration may lack; may be empty
}

func (e *StartError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server %q: could not start: %s: %v", e.Server, e.Step, e.Err)
	if e.Exit != nil {
		fmt.Fprintf(&b, " (%v)", *e.Exit)
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	writeTail(&b, e.Stderr)
	return b.String()
}

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }

func writeTail(b *strings.Builder, lines []string) {
	if len(lines) > 0 {
		b.WriteString(" -- its stderr: ")
		b.WriteString(strings.Join(lines, " | "))
	}
}

package backend

import "log/slog"

// Supervisor is the process that starts every backend of this router. It is
// launched with the first of them.
type Supervisor struct{}

// NewSupervisor makes a supervisor of the binary exe, whose main must call
// SupervisorMain first. An empty exe is the running binary.
func NewSupervisor(exe string, l *slog.Logger) *Supervisor { return &Supervisor{} }

// Close ends every backend that still runs and waits for the end.
func (s *Supervisor) Close() error { return nil }

// SupervisorMain must be the first call of main, and of TestMain. It returns
// true when this process was started to supervise and has now finished; main
// must return then.
func SupervisorMain() bool { return false }

package backend

import (
	"context"
	"errors"
	"log/slog"
)

// Supervisor on Windows does not start backends yet: without a job object a
// killed router would leave them running.
type Supervisor struct{}

// NewSupervisor keeps nothing on Windows.
func NewSupervisor(exe string, l *slog.Logger) *Supervisor { return &Supervisor{} }

// Close has nothing to end.
func (s *Supervisor) Close() error { return nil }

func (s *Supervisor) start(ctx context.Context, spec Spec) (*process, error) {
	return nil, errors.New("servers started by command are not supported on Windows yet; run the router under WSL")
}

// SupervisorMain is never the supervisor on Windows.
func SupervisorMain() bool { return false }

package witness

import (
	"context"
	"sync"
	"time"
)

// AuditStatus is what the last walk over the whole store found.
type AuditStatus struct {
	At     time.Time `json:"at"`
	Size   uint64    `json:"size"`
	Faults int       `json:"faults"`
	Error  string    `json:"error,omitempty"` // the walk did not end
}

// audit keeps the last walk.
type audit struct {
	mu     sync.Mutex
	result *AuditStatus // guarded by mu; nil: none yet
}

func (a *audit) last() *AuditStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.result
}

func (a *audit) keep(r AuditStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.result = &r
}

// auditLoop walks the store now and then: damage that nobody reads would grow
// in silence.
func (s *Server) auditLoop(ctx context.Context) error {
	if s.o.AuditEvery < 0 {
		return nil
	}
	tick := time.NewTicker(s.o.AuditEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.Audit(ctx)
		}
	}
}

// Audit walks the whole store once, as Fsck does, and keeps what it found for
// the metrics and the status.
func (s *Server) Audit(ctx context.Context) AuditStatus {
	report, err := s.Fsck(ctx)
	found := AuditStatus{At: s.o.Now().UTC(), Size: report.Size, Faults: len(report.Faults) + report.More}
	switch {
	case ctx.Err() != nil:
		return found
	case err != nil:
		found.Faults++
		found.Error = err.Error()
		s.o.Logger.Error("the self-audit did not end", "err", err)
	case found.Faults > 0:
		s.o.Logger.Error("the self-audit found damage; run witness fsck", "faults", found.Faults,
			"first", report.Faults[0].Where, "detail", report.Faults[0].Detail)
	default:
		s.o.Logger.Info("the self-audit found every hash in place", "size", found.Size)
	}
	s.audit.keep(found)
	return found
}

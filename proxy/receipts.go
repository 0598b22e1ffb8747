package proxy

import (
	"bytes"
	"context"
	"fmt"

	"toolguardian/policy"
	"toolguardian/receipts"
)

// The receipts of one call. Each is written under the session's clock and
// outlives the client's patience: a cancelled call still has an outcome.

// decided makes the decision durable before anything is sent. The error means
// that the call must not run; under EvidenceOn it is remembered instead.
func (e *evidence) decided(ctx context.Context, t *trip) error {
	if e == nil {
		return nil
	}
	fields := []receipts.Committed{commit(receipts.FieldArgsSent, t.sent)}
	if !bytes.Equal(t.sent, t.received) {
		fields = append(fields, commit(receipts.FieldArgsReceived, t.received))
	}
	err := e.write(ctx, t, func(c receipts.Common, f []receipts.Committed) receipts.Receipt {
		return receipts.NewDecision(c, e.decision(t), f...)
	}, fields)
	if err == nil {
		return nil
	}
	if !e.required {
		e.lost(t, err)
		return nil
	}
	e.refused(ctx, t, receipts.RefusedEvidence) // where the store works again by now
	return err
}

// ended makes the outcome durable before the client is shown anything.
func (e *evidence) ended(ctx context.Context, t *trip, what end) error {
	if e == nil {
		return nil
	}
	return e.record(ctx, t, func(c receipts.Common, f []receipts.Committed) receipts.Receipt {
		return receipts.NewOutcome(c, what.outcome(t), f...)
	}, what.fields())
}

// late states an answer that came too late, after the outcome that says so and
// unless the session is over.
func (e *evidence) late(ctx context.Context, t *trip, what end) {
	<-t.over
	if !t.s.gate.enter() {
		e.logger.Warn("an answer came after its session", "server", t.tool.Server, "tool", t.tool.Name, "call", t.id.ID)
		return
	}
	defer t.s.gate.leave()
	_ = e.record(ctx, t, func(c receipts.Common, f []receipts.Committed) receipts.Receipt {
		return receipts.NewLate(c, what.outcome(t), f...)
	}, what.fields())
}

func (w end) outcome(t *trip) receipts.Outcome {
	return receipts.Outcome{Call: t.id, Status: w.status, Duration: w.took, Changes: w.changes}
}

func (w end) fields() (f []receipts.Committed) {
	if w.received != nil {
		f = append(f, commit(receipts.FieldResultReceived, w.received))
	}
	if w.delivered != nil && !bytes.Equal(w.received, w.delivered) {
		f = append(f, commit(receipts.FieldResultDelivered, w.delivered))
	}
	return f
}

// denied states that the policy did not let the call through.
func (e *evidence) denied(ctx context.Context, t *trip) {
	if e == nil {
		return
	}
	_ = e.record(ctx, t, func(c receipts.Common, f []receipts.Committed) receipts.Receipt {
		return receipts.NewDenied(c, e.decision(t), f...)
	}, t.attempted())
}

// refused states that the call was not sent for a reason other than a rule.
func (e *evidence) refused(ctx context.Context, t *trip, reason string) {
	if e == nil {
		return
	}
	_ = e.record(ctx, t, func(c receipts.Common, f []receipts.Committed) receipts.Receipt {
		return receipts.NewRefused(c, e.decision(t), reason, f...)
	}, t.attempted())
}

// attempted commits to the arguments of a call that was not sent.
func (t *trip) attempted() []receipts.Committed {
	return []receipts.Committed{commit(receipts.FieldArgsReceived, t.received)}
}

func (e *evidence) decision(t *trip) receipts.Decision {
	effect := t.decision.Effect
	if effect == "" {
		effect = policy.Allow
	}
	return receipts.Decision{
		Call: t.id, Effect: string(effect), Rule: t.decision.Rule, Policy: e.policy, Mode: receipts.ModeEnforced,
	}
}

// former makes a receipt of what every receipt has and its fields.
type former func(receipts.Common, []receipts.Committed) receipts.Receipt

// record is write for a receipt that is told as a gap where it cannot be
// written.
func (e *evidence) record(ctx context.Context, t *trip, form former, fields []receipts.Committed) error {
	err := e.write(ctx, t, form, fields)
	if err != nil {
		e.lost(t, err)
	}
	return err
}

// write appends one receipt of a call, with the person added to its fields.
func (e *evidence) write(ctx context.Context, t *trip, form former, fields []receipts.Committed) error {
	ctx = context.WithoutCancel(ctx)
	person, err := e.principal(ctx, t.s)
	if err != nil {
		return err
	}
	return e.append(ctx, t.s, func() receipts.Receipt {
		return form(e.common(t.s, t.c.Traceparent), append(fields, person))
	})
}

// lost counts a call without one of its receipts, once a call.
func (e *evidence) lost(t *trip, err error) {
	calls := int64(1)
	if t.gapped {
		calls = 0
	}
	t.gapped = true
	e.miss(t.s, calls, fmt.Errorf("%s: %w", e.untold(t), err))
}

// untold says what a gap stands for.
func (e *evidence) untold(t *trip) string {
	switch {
	case t.over != nil:
		return "calls without an outcome"
	case e.required:
		return "calls not run"
	}
	return "calls without a decision"
}

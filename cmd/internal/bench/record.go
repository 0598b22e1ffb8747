package bench

import (
	"context"
	"crypto/rand"
	"time"

	"toolguardian/chain"
	"toolguardian/receipts"
)

// record appends the two receipts of one call, as the router does: the
// outcome after the decision is durable.
func record(ctx context.Context, ch *chain.Chain) error {
	now := time.Now()
	c := receipts.Common{
		Session: "bench", Capture: receipts.CaptureCLI, Version: "bench", Time: receipts.Time{Wall: now},
		Client: &receipts.Client{Name: "tool-guardian-bench", Version: "1"},
	}
	call := receipts.Call{ID: receipts.NewID(now), Server: echoServer, Tool: echoTool, RPC: []byte("1")}
	d := receipts.Decision{Call: call, Effect: "allow", Rule: "default", Mode: receipts.ModeEnforced}
	args := receipts.Commit(receipts.FieldArgsSent, newSalt(), []byte(`{"n":1,"text":"0123456789abcdef"}`))
	if _, err := ch.Append(ctx, receipts.NewDecision(c, d, args)); err != nil {
		return err
	}
	o := receipts.Outcome{Call: call, Status: receipts.StatusOK, Duration: time.Millisecond}
	result := receipts.Commit(receipts.FieldResultReceived, newSalt(), []byte(`{"content":[{"type":"text","text":"0123456789abcdef"}]}`))
	_, err := ch.Append(ctx, receipts.NewOutcome(c, o, result))
	return err
}

func newSalt() (salt [32]byte) {
	rand.Read(salt[:])
	return salt
}

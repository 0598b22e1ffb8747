package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/chain"
	"toolguardian/proxy"
	"toolguardian/proxy/wire"
	"toolguardian/receipts"
)

// The events of a client's hooks that leave receipts, as the client names them.
const (
	eventPre    = "PreToolUse"
	eventPost   = "PostToolUse"
	eventFailed = "PostToolUseFailure"
)

const (
	// hookServer stands for the client's own tools.
	hookServer = "claude-code"
	// maxHook bounds what a client sends to a hook.
	maxHook = 64 << 20
)

func (a *app) hookCommand() *cobra.Command {
	return group("hook", "Receipts of a client's own tools, called from its hooks", a.hookPre(), a.hookPost())
}

func (a *app) hookPre() *cobra.Command {
	var rules string
	c := &cobra.Command{
		Use:   "pretooluse",
		Short: "Record that a tool of the client is about to run; reads the hook's JSON from stdin",
		Long: "Record a decision about one of the client's own tools, in the same chain as the router's calls.\n" +
			"With --rules a matching rule denies it; whether the client obeys is out of our hands, so the receipt\n" +
			"says \"advised\". Whatever goes wrong here never blocks the client: it exits 1 and says so on stderr.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.hook(c.Context(), rules, eventPre) },
	}
	c.Flags().StringVar(&rules, "rules", "", "JSON file with deny and allow rules")
	return c
}

func (a *app) hookPost() *cobra.Command {
	return &cobra.Command{
		Use: "posttooluse", Short: "Record how a tool of the client ended; reads the hook's JSON from stdin", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.hook(c.Context(), "", eventPost, eventFailed) },
	}
}

// hook takes one event. Any error of ours exits 1, which clients show and do
// not take for a block.
func (a *app) hook(ctx context.Context, rules string, events ...string) error {
	h, err := readHook(a.In, events)
	if err != nil {
		return &exitError{Failed, fmt.Errorf("hook: no receipt: %w", err)}
	}
	verdict := hookVerdict{}
	if h.event == eventPre {
		if verdict, err = judgeHook(rules, h); err != nil {
			a.say("tool-guardian: hook rules: %v; no rule applies", err)
		}
	}
	err = a.recordHook(ctx, h, verdict)
	if verdict.deny {
		a.printDenial(verdict.reason)
	}
	if err != nil {
		return &exitError{Failed, fmt.Errorf("hook: no receipt of %s %s: %w", h.event, h.tool, err)}
	}
	return nil
}

// hookEvent is what the client says of one tool call.
type hookEvent struct {
	event, session, tool, call string
	input, result              json.RawMessage
	took                       time.Duration
	interrupted                bool
}

func readHook(in io.Reader, events []string) (hookEvent, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxHook+1))
	if err != nil {
		return hookEvent{}, err
	}
	if len(b) > maxHook {
		return hookEvent{}, fmt.Errorf("the event is larger than %d MiB", maxHook>>20)
	}
	if !json.Valid(b) {
		return hookEvent{}, errors.New("stdin holds no JSON: this command is called by a client's hook")
	}
	var h hookEvent
	h.event, _ = wire.GetString(b, "hook_event_name")
	if !slices.Contains(events, h.event) {
		return h, fmt.Errorf("unknown event %.60q: this hook takes %v; correct the client's hook settings", h.event, events)
	}
	h.session, _ = wire.GetString(b, "session_id")
	h.call, _ = wire.GetString(b, "tool_use_id")
	if h.tool, _ = wire.GetString(b, "tool_name"); h.tool == "" {
		return h, fmt.Errorf("%s without tool_name", h.event)
	}
	h.input = wire.Get(b, "tool_input")
	return h, h.readResult(b)
}

func (h *hookEvent) readResult(b []byte) error {
	switch h.event {
	case eventPost:
		h.result = wire.Get(b, "tool_response")
	case eventFailed:
		h.result = wire.Get(b, "error")
		h.interrupted = string(wire.Get(b, "is_interrupt")) == "true"
	default:
		return nil
	}
	if ms, err := strconv.ParseFloat(string(wire.Get(b, "duration_ms")), 64); err == nil && ms >= 0 && ms < 1e12 {
		h.took = time.Duration(ms * float64(time.Millisecond))
	}
	return nil
}

// recordHook writes the event's receipt into the user's chain.
func (a *app) recordHook(ctx context.Context, h hookEvent, v hookVerdict) error {
	if proxy.EvidenceMode(a.Getenv("TOOL_GUARDIAN_EVIDENCE")) == proxy.EvidenceOff {
		return nil
	}
	dir, err := a.evidenceDir()
	if err != nil {
		return err
	}
	o := a.chainOptions(dir)
	o.Capture = receipts.CaptureHook
	c, err := chain.Open(ctx, o)
	if err != nil {
		return err
	}
	r, err := h.receipt(ctx, c, v, a.Now())
	if err == nil {
		_, err = c.Append(ctx, r)
	}
	return errors.Join(err, c.Close())
}

func (h hookEvent) receipt(ctx context.Context, c *chain.Chain, v hookVerdict, now time.Time) (receipts.Receipt, error) {
	common := receipts.Common{Session: h.session, Capture: receipts.CaptureHook, Version: Version, Time: receipts.Time{Wall: now}}
	call := receipts.Call{ID: h.call, Server: hookServer, Tool: h.tool, RPC: wire.Quote(h.call)}
	if h.call == "" {
		call.ID = receipts.NewID(now) // an older client: decision and outcome cannot be paired
	}
	if h.event != eventPre {
		out := receipts.Outcome{Call: call, Status: h.status(), Duration: h.took}
		return receipts.NewOutcome(common, out, commitTo(receipts.FieldResultReceived, h.result)...), nil
	}
	who := []byte(principal())
	salt, err := c.PersonSalt(ctx, who)
	if err != nil {
		return receipts.Receipt{}, err
	}
	person := receipts.Commit(receipts.FieldPrincipal, salt, who)
	d := receipts.Decision{Call: call, Effect: "allow", Rule: v.rule, Mode: receipts.ModeAdvised}
	if v.deny {
		d.Effect = "deny"
		return receipts.NewDenied(common, d, append(commitTo(receipts.FieldArgsReceived, h.input), person)...), nil
	}
	return receipts.NewDecision(common, d, append(commitTo(receipts.FieldArgsSent, h.input), person)...), nil
}

func (h hookEvent) status() string {
	switch {
	case h.interrupted:
		return receipts.StatusCancelled
	case h.event == eventFailed:
		return receipts.StatusToolError
	}
	return receipts.StatusOK
}

// commitTo commits to bytes as the client sent them; none where it sent none.
func commitTo(f receipts.FieldID, data []byte) []receipts.Committed {
	if data == nil {
		return nil
	}
	var salt [32]byte
	rand.Read(salt[:])
	return []receipts.Committed{receipts.Commit(f, salt, data)}
}

// printDenial answers the client in the form its hooks take.
func (a *app) printDenial(reason string) {
	type specific struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}
	b, err := json.Marshal(struct {
		Specific specific `json:"hookSpecificOutput"`
	}{specific{eventPre, "deny", reason}})
	if err != nil {
		a.fail(err)
		return
	}
	a.print("%s\n", b)
}

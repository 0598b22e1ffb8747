package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"toolguardian/proxy/args"
	"toolguardian/proxy/shape"
	"toolguardian/proxy/spill"
	"toolguardian/proxy/wire"
)

// newLadder is nil where nothing is to be shortened: what is dropped must be
// kept somewhere, and what is kept is read back by words of ours.
func newLadder(o Options) (*shape.Ladder, error) {
	so, err := shape.ParseOptions(wire.Get(o.Config.ToolGuardian, "ladder"))
	if err != nil || o.Spills == nil || o.NoLadder || o.RawResults {
		return nil, err
	}
	return shape.New(so)
}

// What an outcome names as changed where a text was shortened.
const (
	shapedBy       = "text shaped by "
	keptStructured = "structuredContent left out"
)

// shape shortens the text of a result, once the whole is in the archive; the
// line that says so goes before it. Where it cannot be archived it passes as it
// came.
func (r *Router) shape(ctx context.Context, t *trip, raw json.RawMessage) (json.RawMessage, []string) {
	if r.ladder == nil {
		return raw, nil
	}
	a := r.ladder.Apply(shape.Call{Tool: t.tool.Name, Intent: t.intent}, raw, func(o shape.Original) (string, error) {
		return r.o.Spills.Put(context.WithoutCancel(ctx), spill.Original{
			Server: t.tool.Server, Tool: t.tool.Name, Rules: strings.Fields(ruleNames(o.Rules)),
			Shown: o.Shown, Of: o.Of, Text: o.Text, Raw: o.Raw,
		})
	})
	if a.Err != nil {
		r.o.Logger.Warn("a long result passes as it came, since it cannot be kept", "server", t.tool.Server, "tool", t.tool.Name, "err", a.Err)
	}
	if !a.Changed {
		return raw, nil
	}
	t.shaped = a
	if a.Notice != "" {
		t.notices = append(t.notices, a.Notice)
	}
	changes := []string{shapedBy + ruleNames(a.Rules)}
	if wire.Get(raw, "structuredContent") != nil {
		changes = append(changes, keptStructured)
	}
	return a.Raw, changes
}

func ruleNames(rules []shape.Rule) string {
	names := make([]string, len(rules))
	for i, rule := range rules {
		names[i] = string(rule)
	}
	return strings.Join(names, " ")
}

// retrieveSpill is retrieve_spill: lines of a result that was shortened, as
// they came.
func (r *Router) retrieveSpill(ctx context.Context, raw json.RawMessage) answer {
	in, err := args.ParseRetrieve(raw)
	if err != nil {
		return explain(err)
	}
	got, err := r.o.Spills.Read(ctx, spill.Query{ID: in.ID, Grep: in.Grep, Start: in.Start, Max: in.Max})
	switch {
	case errors.Is(err, spill.ErrID), errors.Is(err, spill.ErrPattern):
		return refusal(codeArguments, err.Error(), "correct the call and use retrieve_spill again.")
	case err != nil:
		return refusal(codeNotFound, err.Error(), "make the call again whose result it was, if that has no further effect, or tell the user.")
	}
	a := answer{text: got.Text, next: "answer the user from these lines."}
	if got.Lines == 0 {
		a.text = nothingThere(in, got)
	}
	if got.Next > 0 {
		a.next = fmt.Sprintf("there is more: use retrieve_spill with id %s and start_line %d, or a grep for what you need.", strings.TrimSpace(in.ID), got.Next)
	}
	return a
}

func nothingThere(in args.Retrieve, got spill.Answer) string {
	if in.Grep != "" {
		return fmt.Sprintf("[no line from %d on matches %q]", max(in.Start, 1), in.Grep)
	}
	return fmt.Sprintf("[there is no line %d: it has %d]", max(in.Start, 1), got.Total)
}

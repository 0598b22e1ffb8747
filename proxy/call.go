package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"toolguardian/policy"
	"toolguardian/proxy/args"
	"toolguardian/proxy/backend"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/front"
	"toolguardian/proxy/guard"
	"toolguardian/proxy/shape"
	"toolguardian/receipts"
)

// trip is one call of a backend's tool, from its arguments to its outcome.
type trip struct {
	s        *session
	c        front.Call
	to       *server
	tool     catalogue.Tool
	id       receipts.Call // what pairs its receipts
	decision policy.Decision
	received json.RawMessage // the arguments as the model wrote them
	sent     json.RawMessage // as they are placed in params.arguments
	began    time.Time
	over     chan struct{} // closed once its outcome was recorded
	gapped   bool          // a receipt of it is missing already
	server   string        // as the client named it
	target   string        // the tool as the client named it
	code     string        // why there is no result; "": there is one
	end      end
	watched  bool // by the loop guard, under key
	key      guard.Key
	notices  []string // for the client, before the result
	intent   string   // what the model looks for in a long result; "": everything
	shaped   shape.Applied
	repeated bool // it was sent a second time
}

// call is call_tool: every step a call goes through, in order. The question to
// a person has its place before the decision receipt.
func (r *Router) call(ctx context.Context, t *trip) (json.RawMessage, error) {
	in, err := args.ParseCall(t.c.Arguments, r.keys...)
	if err != nil {
		return r.tell(t, explain(err))
	}
	t.received, t.server, t.target = in.Received(), in.Server, in.Tool
	if r.o.Intent {
		t.intent = in.Intent
	}
	if err := r.resolve(ctx, t); err != nil {
		return r.tell(t, explain(err))
	}
	if t.decision = r.o.Policy.Decide(t.asked(nil)); t.decision.Effect == policy.Deny {
		return r.deny(ctx, t)
	}
	if t.sent, err = r.arguments(in, t.tool); err != nil {
		return r.refuse(ctx, t, receipts.RefusedSchema, explain(err))
	}
	if t.decision = r.o.Policy.Decide(t.asked(t.sent)); t.decision.Effect != policy.Allow {
		return r.deny(ctx, t)
	}
	if r.loops(t) {
		return r.refuse(ctx, t, receipts.RefusedLoop, repeated(t))
	}
	if err := r.evidence.decided(ctx, t); err != nil {
		return r.tell(t, unrecorded(t, err))
	}
	return r.forward(ctx, t)
}

// arguments are what goes into params.arguments.
func (r *Router) arguments(in args.Call, t catalogue.Tool) (json.RawMessage, error) {
	object, err := in.For(t)
	if err != nil || r.checks == nil {
		return object, err
	}
	return r.checks.Check(t, object)
}

// loops says whether the call has been made so often, always with the same
// result, that it is not made again.
func (r *Router) loops(t *trip) bool {
	if r.o.Unguarded || guard.Listed(r.file.loopExempt, t.tool.Server, t.tool.Name) {
		return false
	}
	t.watched, t.key = true, t.s.loops.Key(t.tool.Server, t.tool.Name, t.sent)
	return t.s.loops.Stops(t.key)
}

func repeated(t *trip) answer {
	return refusal(codeLoop, t.name()+" was not run: this same call has given the same result again and again, and one more would not change it.",
		"use the result you have, change the args, or tell the user what is blocking you.")
}

// ran tells the loop guard of a call that ran, as far as is known, and the
// client of a result that repeats itself.
func (r *Router) ran(t *trip, reply backend.Reply, err error) {
	var result []byte
	switch {
	case !t.watched:
		return
	case errors.Is(err, backend.ErrTimeout):
		result = []byte(codeTimeout)
	case errors.Is(err, backend.ErrDied):
		result = []byte(codeDied)
	case err != nil:
		return
	case reply.Err != nil:
		result = reply.Err.Raw
	default:
		result = reply.Result
	}
	if n := t.s.loops.Ran(t.key, result); n > 0 {
		t.notices = append(t.notices, fmt.Sprintf("notice: this same call has now given the same result %d times in a row. "+
			"Making it again will not change the answer.", n))
	}
}

// resolve finds the tool, and waits for its server while that starts: the
// backend's start timeout bounds it.
func (r *Router) resolve(ctx context.Context, t *trip) error {
	t.to = r.server(t.server)
	if t.to != nil && t.to.starting() {
		stop := waiting(t.c, t.server)
		r.await(ctx, t.server, r.o.StartTimeout)
		stop()
	}
	var known bool
	if t.tool, known = t.to.lookup(t.target); !known {
		if _, err := r.catalogue().FindTool(t.server, t.target); err != nil {
			return err
		}
		return notUp{t.server}
	}
	if r.evidence != nil {
		t.id = receipts.Call{ID: receipts.NewID(t.began), Server: t.server, Tool: t.target, RPC: json.RawMessage(t.c.ID.String())}
	}
	return nil
}

// waiting tells the client, every few seconds, that its call waits for a
// server to start.
func waiting(c front.Call, server string) (stop func()) {
	if c.Progress == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for n := 0; ; n++ {
			message := appendText([]byte(fmt.Sprintf(`{"progress":%d,"message":`, n)), "waiting for server "+server+" to start")
			c.Progress(append(message, '}'))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(done); <-ended }
}

// asked is what the policy is asked about the trip.
func (t *trip) asked(arguments json.RawMessage) policy.Call {
	c := nameOf(t.tool)
	c.Args, c.Session, c.Principal = arguments, t.s.ID, t.s.Principal
	return c
}

func nameOf(t catalogue.Tool) policy.Call {
	return policy.Call{Server: t.Server, Tool: t.Name, ReadOnlyHint: t.ReadOnly}
}

// params are those of the backend's tools/call. The name's and the arguments'
// bytes are the ones received, _meta is what the client said beside them, its
// trace included.
func (t *trip) params() json.RawMessage {
	b := make([]byte, 0, len(t.tool.NameJSON)+len(t.sent)+len(t.c.Meta)+40)
	b = append(append(b, `{"name":`...), t.tool.NameJSON...)
	b = append(append(b, `,"arguments":`...), t.sent...)
	if t.c.Meta != nil {
		b = append(append(b, `,"_meta":`...), t.c.Meta...)
	}
	return append(b, '}')
}

// forward sends the call, which now has a durable decision, and answers with
// what came of it.
func (r *Router) forward(ctx context.Context, t *trip) (json.RawMessage, error) {
	t.over = make(chan struct{})
	defer close(t.over)
	seen := backend.Observer{Progress: t.c.Progress, Log: t.c.Log, Late: r.late(ctx, t)}
	reply, err := r.request(ctx, t, seen)
	r.ran(t, reply, err)
	t.end = r.ended(ctx, t, reply, err)
	if t.end.status != receipts.StatusOK {
		t.code = t.end.status
	}
	if err := r.evidence.ended(ctx, t, t.end); err != nil && r.o.Evidence == EvidenceRequired {
		return r.tell(t, withheld(t, err))
	}
	if t.end.status == receipts.StatusCancelled {
		return nil, front.ErrCancelled
	}
	return t.end.delivered, nil
}

// request sends the call, once: where its server ends before it answers, only
// what was declared repeatable is sent again, to the server's next process. If
// that is not reached, the first sending's end stands.
func (r *Router) request(ctx context.Context, t *trip, seen backend.Observer) (backend.Reply, error) {
	params := t.params()
	reply, err := t.to.b.Request(ctx, "tools/call", params, seen)
	if !errors.Is(err, backend.ErrDied) || !guard.Listed(r.file.repeatable, t.tool.Server, t.tool.Name) {
		return reply, err
	}
	again, second := t.to.b.Request(ctx, "tools/call", params, seen)
	if errors.Is(second, backend.ErrNotSent) {
		return reply, err
	}
	t.repeated = true
	return again, second
}

// late records an answer that came after its call had been given up. Nobody is
// shown it.
func (r *Router) late(ctx context.Context, t *trip) func(backend.Reply) {
	if r.evidence == nil {
		return nil
	}
	return func(reply backend.Reply) {
		go func() {
			e, _ := arrived(reply)
			e.changes, e.took = []string{notDelivered}, r.o.Now().Sub(t.began)
			r.evidence.late(ctx, t, e)
		}()
	}
}

// deny answers a call that the policy does not let through.
func (r *Router) deny(ctx context.Context, t *trip) (json.RawMessage, error) {
	r.evidence.denied(ctx, t)
	r.logDenial(t)
	return r.tell(t, denial(t.decision))
}

func denial(d policy.Decision) answer {
	text := codeDenied + " " + d.Rule
	if d.Effect == policy.Ask {
		text += ": a person has to agree, and this router cannot ask one yet"
	}
	return answer{text: text, next: "tell the user that the policy forbids this, or use another tool.", failed: true}
}

// refuse answers a call that cannot work as it is.
func (r *Router) refuse(ctx context.Context, t *trip, reason string, a answer) (json.RawMessage, error) {
	r.evidence.refused(ctx, t, reason)
	return r.tell(t, a)
}

// tell answers a call with words of the router's own.
func (r *Router) tell(t *trip, a answer) (json.RawMessage, error) {
	t.code = a.code()
	return r.say(a)
}

func unrecorded(t *trip, err error) answer {
	return refusal(codeEvidence, fmt.Sprintf("%s was not called, because its receipt could not be written: %v", t.name(), err),
		"tell the user: evidence is required and the store of receipts fails. Nothing ran.")
}

func withheld(t *trip, err error) answer {
	return refusal(codeEvidence, fmt.Sprintf("%s ran, and its result is withheld, because its outcome could not be recorded: %v", t.name(), err),
		nextUnsure)
}

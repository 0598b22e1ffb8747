package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gowebpki/jcs"

	"toolguardian/policy"
	"toolguardian/proxy/args"
	"toolguardian/proxy/backend"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/config"
	"toolguardian/proxy/front"
	"toolguardian/proxy/guard"
	"toolguardian/proxy/shape"
	"toolguardian/proxy/wire"
	"toolguardian/receipts"
)

// Router answers a client's tool calls from the backends behind it. It is the
// Handler of a front.Server and safe for concurrent use.
type Router struct {
	o        Options
	servers  []*server // in the order of the configuration, none disabled
	file     fileSettings
	keys     []string      // optional ones of call_tool that are in use
	checks   *args.Checker // nil: arguments are not checked
	ladder   *shape.Ladder // nil: nothing is shortened
	skills   *catalogue.Skills
	tools    json.RawMessage // the answer to tools/list, the same for a whole run
	evidence *evidence       // nil: off
	news     atomic.Uint64   // how often a backend said that something changed
	fresh    chan struct{}   // room for one: definitions changed
	view     atomic.Pointer[view]
	sessions sync.Map // *front.Session → *session

	retrieve func(context.Context, json.RawMessage) answer // reads back what was shortened; nil: nothing is
}

var _ front.Handler = (*Router)(nil)

// New checks the options. Nothing is started before Serve.
func New(o Options) (*Router, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	digest, err := ConfigDigest(o.Config.Raw)
	if err != nil {
		return nil, err
	}
	file, err := readFile(o.Config.ToolGuardian)
	if err != nil {
		return nil, err
	}
	r := &Router{o: o, file: file, evidence: newEvidence(o, digest), fresh: make(chan struct{}, 1)}
	if !o.Unchecked {
		r.checks = args.NewChecker(o.CheckLimit)
	}
	if r.ladder, err = newLadder(o); err != nil {
		return nil, err
	}
	if r.ladder != nil {
		r.retrieve = r.retrieveSpill
	}
	if o.Intent {
		r.keys = []string{"intent"}
	}
	r.findSkills()
	for _, s := range o.Config.Servers {
		if s.Disabled {
			continue
		}
		r.servers = append(r.servers, r.newServer(s))
	}
	r.tools, err = r.menu().list()
	return r, err
}

func (r *Router) newServer(c config.Server) *server {
	s := &server{Server: c, last: lastSeen(c, r.o.Seen[c.Name])}
	if r.evidence != nil {
		s.changed = r.evidence.changed
		if was, known := r.o.Previous.Catalogues[c.Name]; known {
			s.digest = &was
			s.told.Store(&was)
		}
	}
	return s
}

// ConfigDigest is the SHA-256 of a configuration's canonical JSON (RFC 8785);
// of {} where there is none. The caller keeps it for the next run.
func ConfigDigest(plain []byte) ([32]byte, error) {
	if len(plain) == 0 {
		plain = []byte("{}")
	}
	canonical, err := jcs.Transform(plain)
	if err != nil {
		return [32]byte{}, fmt.Errorf("config cannot be digested: %w", err)
	}
	return sha256.Sum256(canonical), nil
}

// visible is the one filter of every view: what the policy denies by name is
// not there.
func (r *Router) visible(t catalogue.Tool) bool {
	return r.o.Policy.Decide(policy.Call{Server: t.Server, Tool: t.Name, ReadOnlyHint: t.ReadOnly}).Effect != policy.Deny
}

// Serve starts the backends, serves one client over in and out, and ends the
// backends.
func (r *Router) Serve(ctx context.Context, f *front.Server, in io.Reader, out io.Writer) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	r.startAll(running)
	defer r.closeAll(running)
	if r.o.Learnt != nil {
		var learning sync.WaitGroup
		until, enough := context.WithCancel(running)
		learning.Go(func() { r.learn(until) })
		defer learning.Wait()
		defer enough()
	}
	return f.ServeStdio(ctx, in, out)
}

// OpenSession implements front.Handler.
func (r *Router) OpenSession(ctx context.Context, s *front.Session) error {
	own := &session{Session: s, loops: guard.NewLoops(r.o.Now), looks: guard.NewLooks(r.o.LookLimit)}
	own.clock.now, own.clock.opened = r.o.Now, r.o.Now()
	if _, twice := r.sessions.LoadOrStore(s, own); twice {
		return fmt.Errorf("session %s is open already", s.ID)
	}
	r.evidence.open(ctx, own)
	r.logSession(own, sessionStart)
	return nil
}

// CloseSession implements front.Handler. It returns once the session's last
// receipt is durable or could not be written.
func (r *Router) CloseSession(ctx context.Context, s *front.Session, end front.End) error {
	own, ok := r.sessions.LoadAndDelete(s)
	if !ok {
		return nil
	}
	r.logSession(own.(*session), sessionEnd)
	return r.evidence.close(ctx, own.(*session), end)
}

// ListTools implements front.Handler: from memory, whatever the backends do.
func (r *Router) ListTools(context.Context, *front.Session) (json.RawMessage, error) {
	return r.tools, nil
}

// SetLogLevel implements front.Handler: every backend that is up hears of it,
// and none is waited for.
func (r *Router) SetLogLevel(ctx context.Context, _ *front.Session, level string) error {
	params := append(appendText([]byte(`{"level":`), level), '}')
	for _, s := range r.servers {
		if s.b == nil || s.b.Status().State != backend.Up {
			continue
		}
		go func() {
			_, _ = s.b.Request(context.WithoutCancel(ctx), "logging/setLevel", params, backend.Observer{})
		}()
	}
	return nil
}

// CallTool implements front.Handler.
func (r *Router) CallTool(ctx context.Context, s *front.Session, c front.Call) (json.RawMessage, error) {
	own, ok := r.sessions.Load(s)
	if !ok || !own.(*session).gate.enter() {
		return nil, &wire.Error{Code: wire.CodeInvalidRequest, Message: "the session is closed"}
	}
	defer own.(*session).gate.leave()
	return r.dispatch(ctx, own.(*session), c)
}

// dispatch answers one tools/call. Only call_tool reaches a backend and leaves
// receipts; looking for tools without end is refused.
func (r *Router) dispatch(ctx context.Context, s *session, c front.Call) (json.RawMessage, error) {
	switch c.Name {
	case listTool:
		return r.look(ctx, s, c, r.list)
	case searchTool:
		return r.look(ctx, s, c, r.search)
	case describeTool:
		return r.look(ctx, s, c, r.describeTool)
	case callTool:
		s.looks.Called()
		t := &trip{s: s, c: c, began: r.o.Now()}
		result, err := r.call(ctx, t)
		r.logCall(t, result, err)
		return result, err
	}
	if own, ok := r.report(c.Name); ok {
		began := r.o.Now()
		a := own(ctx, c.Arguments)
		result, err := r.say(a)
		r.logLook(s, c, began, a, result)
		return result, err
	}
	return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf(
		"unknown tool %q; use %s to run a tool of a server. Tools: %s", c.Name, callTool,
		strings.Join(r.menu().names(), ", "))}
}

// look answers a tool that only looks for others.
func (r *Router) look(ctx context.Context, s *session, c front.Call, tool func(context.Context, json.RawMessage) answer) (json.RawMessage, error) {
	began := r.o.Now()
	verdict, n := s.looks.Look()
	var a answer
	if verdict == guard.Refuse {
		a = lookedEnough(c.Name, n)
		r.evidence.refused(ctx, r.unresolved(s, c), receipts.RefusedDiscovery)
	} else {
		a = tool(ctx, c.Arguments)
	}
	if verdict == guard.Notice {
		a.notices = append(a.notices, fmt.Sprintf("notice: %d looks at tools in a row and none was called.", n))
	}
	result, err := r.say(a)
	r.logLook(s, c, began, a, result)
	return result, err
}

// unresolved is the trip of a router tool that was refused.
func (r *Router) unresolved(s *session, c front.Call) *trip {
	t := &trip{s: s, c: c, received: c.Arguments, began: r.o.Now()}
	if r.evidence != nil {
		t.id = receipts.Call{ID: receipts.NewID(t.began), Tool: c.Name, RPC: json.RawMessage(c.ID.String())}
	}
	return t
}

func lookedEnough(tool string, n int) answer {
	return refusal(codeDiscovery, fmt.Sprintf("%s was not run: this was look number %d at tools in a row, and none was called.", tool, n),
		"pick a tool from what you have seen and use call_tool, or tell the user what is missing.")
}

// say forms the answer of a tool of our own.
func (r *Router) say(a answer) (json.RawMessage, error) { return a.result(r.o.RawResults), nil }

package backend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"toolguardian/proxy/wire"
)

const (
	methodInitialize = "initialize"
	methodDiscover   = "server/discover"
	methodPing       = "ping"
	methodSetLevel   = "logging/setLevel"
	methodList       = "tools/list"

	discoverLimit = 5 * time.Second
)

// session is a conversation after its handshake.
type session struct {
	*conn
	protocol   string
	serverInfo json.RawMessage
	tools      bool // the server announced tools
	flags      []string
}

func (s *session) stateless() bool { return s.protocol == Stateless }

// handshake starts a process and agrees on a revision.
func (b *Backend) handshake(ctx context.Context) (*session, error) {
	if p := b.spec.Protocol; p != "" {
		return b.connect(ctx, p)
	}
	key := verdictKey(b.spec)
	if p, ok := b.opt.Verdicts.Load(key); ok {
		s, err := b.connect(ctx, p)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		b.opt.Verdicts.Drop(key)
	}
	s, err := b.findEra(ctx)
	if err == nil {
		b.opt.Verdicts.Store(key, s.era())
	}
	return s, err
}

// era is what is worth remembering: the way to ask, not the answer.
func (s *session) era() string {
	if s.stateless() {
		return Stateless
	}
	return latestState
}

// verdictKey names a command and its arguments without showing them.
func verdictKey(s Spec) string {
	h := sha256.New()
	for _, part := range append([]string{s.Command}, s.Args...) {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// connect speaks one given revision to a fresh process.
func (b *Backend) connect(ctx context.Context, protocol string) (*session, error) {
	c, err := b.spawn(ctx)
	if err != nil {
		return nil, err
	}
	return b.greet(ctx, c, protocol)
}

// findEra asks for the stateful revisions first, as nearly every server knows
// one. On a refusal, an exit or silence a fresh process is asked for the
// stateless one; a silent first process goes on starting meanwhile, since it
// may only be slow.
func (b *Backend) findEra(ctx context.Context) (*session, error) {
	first, err := b.spawn(ctx)
	if err != nil {
		return nil, err
	}
	result := make(chan greeting, 1)
	go func() {
		s, err := b.greet(ctx, first, latestState)
		result <- greeting{s, err}
	}()
	select {
	case g := <-result:
		if g.err == nil || !maybeStateless(g.err) {
			return g.session, g.err
		}
		if s, err := b.probe(ctx); err == nil {
			return s, nil
		}
		return nil, g.err
	case <-time.After(b.spec.Silence):
	}
	if s, err := b.probe(ctx); err == nil {
		first.shut(0)
		return s, nil
	}
	g := <-result
	return g.session, g.err
}

type greeting struct {
	session *session
	err     error
}

// maybeStateless says whether a failed initialize looks like a server that
// does not know it.
func maybeStateless(err error) bool {
	var e *wire.Error
	if errors.As(err, &e) {
		return e.Code == wire.CodeMethodNotFound || e.Code == wire.CodeUnsupportedVersion
	}
	return errors.Is(err, errEnded)
}

func (b *Backend) probe(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, discoverLimit, ErrTimeout)
	defer cancel()
	return b.connect(ctx, Stateless)
}

// greet does the handshake of a revision and ends the process if it fails.
func (b *Backend) greet(ctx context.Context, c *conn, protocol string) (*session, error) {
	step, ask := methodInitialize, b.initialize
	if protocol == Stateless {
		step, ask = methodDiscover, b.discover
	}
	s, err := ask(ctx, c, protocol)
	if err != nil {
		c.shut(0)
		return nil, b.startError(c, step, err)
	}
	return s, nil
}

func (b *Backend) initialize(ctx context.Context, c *conn, protocol string) (*session, error) {
	info, err := json.Marshal(b.opt.Client)
	if err != nil {
		return nil, err
	}
	params := fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":{},"clientInfo":%s}`, protocol, info)
	r, err := ask(ctx, c, methodInitialize, params)
	if err != nil {
		return nil, err
	}
	s := &session{conn: c, serverInfo: wire.Get(r, "serverInfo"), tools: wire.Get(r, "capabilities", "tools") != nil}
	answer, _ := wire.GetString(r, "protocolVersion")
	s.settle(answer)
	return s, c.tell("notifications/initialized", nil)
}

// settle accepts what the server answered. An unknown revision is treated as
// the nearest known one, which beats not talking at all.
func (s *session) settle(answer string) {
	known := []string{oldestState, "2025-03-26", "2025-06-18", latestState}
	s.protocol = answer
	if slices.Contains(known, answer) {
		return
	}
	s.protocol = oldestState
	if answer > latestState {
		s.protocol = latestState
	}
	s.flags = append(s.flags, fmt.Sprintf("it answered initialize with the unknown revision %q and is spoken to as %s", answer, s.protocol))
}

func (b *Backend) discover(ctx context.Context, c *conn, _ string) (*session, error) {
	c.envelope = envelope(b.opt.Client)
	r, err := ask(ctx, c, methodDiscover, nil)
	if err != nil {
		return nil, err
	}
	var versions []string
	if err := json.Unmarshal(wire.Get(r, "supportedVersions"), &versions); err != nil || !slices.Contains(versions, Stateless) {
		return nil, fmt.Errorf("it does not offer %s but %s", Stateless, strings.Join(versions, ", "))
	}
	s := &session{conn: c, protocol: Stateless, tools: wire.Get(r, "capabilities", "tools") != nil}
	s.serverInfo = wire.Get(r, "_meta", metaReserved+"serverInfo")
	return s, nil
}

// ask is a request of our own; a JSON-RPC error is a *wire.Error.
func ask(ctx context.Context, c *conn, method string, params json.RawMessage) (json.RawMessage, error) {
	r, _, err := c.request(ctx, method, params, &call{})
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return r.Result, nil
}

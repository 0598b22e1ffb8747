package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"toolguardian/proxy/wire"
)

// End says how a session ended.
type End string

const (
	Closed      End = "closed"      // the client ended the stream, or is gone
	Interrupted End = "interrupted" // we were told to stop
)

// ClientInfo is what a client says of itself.
type ClientInfo struct{ Name, Version string }

// Session is one client's connection, or its stateless requests on one. It
// does not change once it is open.
type Session struct {
	ID           string // UUIDv7
	Principal    string
	Client       ClientInfo
	Protocol     string // the revision spoken
	Stateless    bool
	Capabilities json.RawMessage // the client's; nil: none were sent

	info Info // of the server, for Complete
}

// Call is one tools/call.
type Call struct {
	ID          wire.ID
	Name        string
	Arguments   json.RawMessage // nil: absent
	Meta        json.RawMessage // _meta without the reserved names; nil: nothing is left
	Traceparent string          // of _meta, where it stays as well
	Params      json.RawMessage // the whole of params, as received

	// Progress sends notifications/progress with these params; the token in
	// them is replaced by the client's. What does not grow, or comes after the
	// reply, is dropped. Nil: the client gave no token.
	Progress func(params json.RawMessage)
	// Log sends notifications/message with these params, if the client wants
	// its level.
	Log func(params json.RawMessage)
}

// Handler answers what the protocol does not answer by itself. Its methods
// are called concurrently and return soon after their context ends. A
// *wire.Error becomes that JSON-RPC error, any other error an internal one.
type Handler interface {
	// OpenSession is called once before any other method gets the session.
	OpenSession(ctx context.Context, s *Session) error
	// CloseSession is called once for each opened session, after its last
	// call has returned or had Options.Drain to do so; its context outlives an
	// interruption.
	CloseSession(ctx context.Context, s *Session, end End) error
	// ListTools returns the JSON array of tools.
	ListTools(ctx context.Context, s *Session) (json.RawMessage, error)
	// CallTool returns the result object. The context's cause is ErrCancelled
	// or ErrClosed when the client is why it ended.
	CallTool(ctx context.Context, s *Session, c Call) (json.RawMessage, error)
	// SetLogLevel tells of a level the client asked for.
	SetLogLevel(ctx context.Context, s *Session, level string) error
}

// Info is what the server says of itself.
type Info struct{ Name, Title, Version string }

// Options are copied by New.
type Options struct {
	Handler    Handler       // required
	Info       Info          // Name is required
	Logger     *slog.Logger  // nil: silent
	Principal  string        // of the stdio client
	MaxMessage int           // bytes; 0: wire.MaxMessage
	MaxCalls   int           // requests handled at once, the next wait; 0: 256
	Drain      time.Duration // how long requests may go on after the client's last byte, and after their cancel; 0: 1.5 s
	Terminal   io.Writer     // where one line says what is expected; set only if stdin is a terminal
}

// Server speaks MCP to clients. It is safe for concurrent use.
type Server struct {
	o Options

	mu    sync.Mutex
	conns map[*conn]struct{} // guarded by mu
}

// New checks the options.
func New(o Options) (*Server, error) {
	if o.Handler == nil || o.Info.Name == "" {
		return nil, errors.New("front: Handler and Info.Name are required")
	}
	if o.MaxMessage < 0 || o.MaxCalls < 0 || o.Drain < 0 {
		return nil, errors.New("front: MaxMessage, MaxCalls and Drain cannot be negative")
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = 256
	}
	if o.Drain == 0 {
		// MCP's SDKs close stdin and send a signal two seconds later.
		o.Drain = 1500 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{o: o, conns: make(map[*conn]struct{})}, nil
}

// ServeStdio serves one client until in ends (nil), ctx is done (its cause)
// or out fails. It returns when every request has been answered or cancelled,
// or has not heeded its cancel for Options.Drain, and the sessions are closed.
// After an interruption a read of in may still
// be pending, since a pipe cannot be woken; close in to end it.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if s.o.Terminal != nil {
		fmt.Fprintf(s.o.Terminal, "%s speaks MCP on stdin and stdout, one JSON-RPC message a line; "+
			"an MCP client is meant to start it (Ctrl-D ends)\n", s.o.Info.Name)
	}
	c := newConn(ctx, s, out)
	s.track(c, true)
	defer s.track(c, false)

	ended := make(chan error, 1)
	go func() { ended <- c.read(wire.NewReader(in, s.o.MaxMessage)) }()
	var err error
	select {
	case err = <-ended:
		// A script that pipes its requests in relies on their answers.
		c.settle(s.o.Drain, c.ctx.Done())
	case <-c.ctx.Done():
	}
	end := Closed
	if ctx.Err() != nil {
		end, err = Interrupted, context.Cause(ctx)
	} else if broken := c.out.Err(); broken != nil {
		err = fmt.Errorf("write to the client: %w", broken)
	}
	c.stop(s.o.Drain)
	return errors.Join(err, c.closeSessions(context.WithoutCancel(ctx), end))
}

func (s *Server) track(c *conn, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.conns[c] = struct{}{}
	} else {
		delete(s.conns, c)
	}
}

// ToolsChanged tells every client that listens for it that the tool list
// changed. The caller debounces.
func (s *Server) ToolsChanged() {
	s.mu.Lock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		c.toolsChanged()
	}
}

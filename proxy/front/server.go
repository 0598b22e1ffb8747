package front

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"

	"toolguardian/proxy/wire"
)

// ErrCancelled is the cause of a call's context when the client cancelled it.
var ErrCancelled = errors.New("cancelled by the client")

// ErrClosed is the cause of a call's context when the connection ended.
var ErrClosed = errors.New("the client closed the connection")

// End says how a session ended.
type End string

const (
	Closed      End = "closed"      // the client ended the stream
	Interrupted End = "interrupted" // we were told to stop
)

// ClientInfo is what a client says of itself.
type ClientInfo struct{ Name, Version string }

// Session is one client's connection.
type Session struct {
	ID           string
	Principal    string
	Client       ClientInfo
	Protocol     string
	Stateless    bool
	Capabilities json.RawMessage
}

// Call is one tools/call.
type Call struct {
	ID          wire.ID
	Name        string
	Arguments   json.RawMessage              // nil: absent
	Meta        json.RawMessage              // _meta without the reserved keys; nil: nothing is left
	Traceparent string                       // _meta.traceparent
	Progress    func(params json.RawMessage) // nil: the client gave no token
	Log         func(params json.RawMessage) // a notifications/message's params
}

// Handler answers what the protocol does not answer by itself. Its methods
// are called concurrently.
type Handler interface {
	OpenSession(ctx context.Context, s *Session) error
	CloseSession(ctx context.Context, s *Session, end End) error
	ListTools(ctx context.Context, s *Session) (json.RawMessage, error)
	CallTool(ctx context.Context, s *Session, c Call) (json.RawMessage, error)
	SetLogLevel(ctx context.Context, s *Session, level string) error
}

// Info is what the server says of itself.
type Info struct{ Name, Title, Version string }

// Options are copied by New.
type Options struct {
	Handler    Handler // required
	Info       Info
	Logger     *slog.Logger // nil: silent
	Principal  string       // of the stdio client
	MaxMessage int          // bytes; 0: wire.MaxMessage
	MaxCalls   int          // requests that run at once; 0: 256
	Terminal   io.Writer    // not nil: stdin is a terminal, and this is where one line says what is expected
}

// Server speaks MCP to clients.
type Server struct{ o Options }

// New checks the options.
func New(o Options) (*Server, error) { return &Server{o}, nil }

// ServeStdio serves one client until in ends or ctx is done.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error { return nil }

// ToolsChanged tells every open session that the tool list changed.
func (s *Server) ToolsChanged() {}

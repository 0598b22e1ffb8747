package bench

import (
	"context"
	"encoding/json"
	"io"

	"toolguardian/proxy/front"
	"toolguardian/proxy/wire"
)

const (
	echoServer   = "echo" // its name in the router's config
	echoTool     = "read" // a name whose results the router shortens at no length
	echoRevision = "2025-11-25"
)

const echoTools = `[{"name":"` + echoTool + `","description":"gives its text back",` +
	`"inputSchema":{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"]}}]`

// Echo is an MCP server whose tool gives the argument text back. All but the
// tool is what every server of ours is made of, so it does the work of a
// server: it checks each message, runs calls side by side and heeds a cancel.
// It serves until in ends.
func Echo(in io.Reader, out io.Writer) error {
	s, err := front.New(front.Options{Handler: echo{}, Info: front.Info{Name: echoServer, Version: "1"}})
	if err != nil {
		return err
	}
	return s.ServeStdio(context.Background(), in, out)
}

// echo is the tool.
type echo struct{}

func (echo) OpenSession(context.Context, *front.Session) error             { return nil }
func (echo) CloseSession(context.Context, *front.Session, front.End) error { return nil }
func (echo) SetLogLevel(context.Context, *front.Session, string) error     { return nil }

func (echo) ListTools(context.Context, *front.Session) (json.RawMessage, error) {
	return json.RawMessage(echoTools), nil
}

func (echo) CallTool(_ context.Context, _ *front.Session, c front.Call) (json.RawMessage, error) {
	text := wire.Get(c.Arguments, "text")
	if text == nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "no argument text"}
	}
	result := make([]byte, 0, len(text)+len(echoHead)+len(echoTail))
	return append(append(append(result, echoHead...), text...), echoTail...), nil
}

const (
	echoHead = `{"content":[{"type":"text","text":`
	echoTail = `}]}`
)

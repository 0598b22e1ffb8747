package bench

import (
	"errors"
	"io"

	"toolguardian/proxy/wire"
)

const (
	echoServer   = "echo" // its name in the router's config
	echoTool     = "echo"
	echoRevision = "2025-11-25"
)

const (
	echoHello = `{"protocolVersion":"` + echoRevision + `","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`
	echoTools = `{"tools":[{"name":"` + echoTool + `","description":"gives its text back",` +
		`"inputSchema":{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"]}}]}`
)

// Echo is an MCP server that does as little as one can: its tool gives the
// argument text back. It serves until in ends, one request after the other,
// so that what is measured is not the server.
func Echo(in io.Reader, out io.Writer) error {
	r, w := wire.NewReader(in, 0), wire.NewWriter(out)
	for {
		m, err := r.Next()
		var bad *wire.LineError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			err = w.Write(wire.ReplyError(bad.Msg.ID, &wire.Error{Code: bad.Code, Message: bad.Reason}))
		case err == nil && m.Kind() == wire.Request:
			err = w.Write(echoReply(m))
		}
		if err != nil {
			return err
		}
	}
}

func echoReply(m wire.Message) []byte {
	switch m.Method {
	case "tools/call":
		text := wire.Get(m.Params, "arguments", "text")
		if text == nil {
			return wire.ReplyError(m.ID, &wire.Error{Code: -32602, Message: "no argument text"})
		}
		result := append([]byte(`{"content":[{"type":"text","text":`), text...)
		return wire.Reply(m.ID, append(result, "}]}"...))
	case "initialize":
		return wire.Reply(m.ID, []byte(echoHello))
	case "tools/list":
		return wire.Reply(m.ID, []byte(echoTools))
	case "ping":
		return wire.Reply(m.ID, []byte("{}"))
	}
	return wire.ReplyError(m.ID, &wire.Error{Code: -32601, Message: "method not found: " + m.Method})
}

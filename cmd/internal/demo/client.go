package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"toolguardian/proxy/wire"
)

// client is a scripted MCP client on the pipes of one server process.
type client struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	w    *wire.Writer
	r    *wire.Reader
	next int64
}

// connect starts a server and shakes hands.
func connect(cmd *exec.Cmd) (*client, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &client{cmd: cmd, in: in, w: wire.NewWriter(in), r: wire.NewReader(out, 0)}
	_, err = c.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"demo-client","version":"1"}}`)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, c.w.Write(wire.NewNotification("notifications/initialized", nil))
}

// close ends the session by closing the server's input, and waits for its end.
func (c *client) close() error {
	return errors.Join(c.in.Close(), c.cmd.Wait())
}

// request sends one request and gives the raw result.
func (c *client) request(method, params string) (json.RawMessage, error) {
	c.next++
	id := wire.IntID(c.next)
	if err := c.w.Write(wire.NewRequest(id, method, json.RawMessage(params))); err != nil {
		return nil, err
	}
	for {
		m, err := c.r.Next()
		var bad *wire.LineError
		switch {
		case errors.As(err, &bad):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", method, err)
		case m.Kind() != wire.Response || m.ID != id:
			continue
		case m.Err != nil:
			return nil, fmt.Errorf("%s: %s", method, m.Err)
		}
		return m.Result, nil
	}
}

// call runs one tool and gives the text blocks of its result.
func (c *client) call(name, args string) ([]string, error) {
	raw, err := c.request("tools/call", `{"name":`+string(wire.Quote(name))+`,"arguments":`+args+`}`)
	if err != nil {
		return nil, err
	}
	var r struct {
		Content []struct{ Text string }
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	texts := make([]string, len(r.Content))
	for i, b := range r.Content {
		texts[i] = b.Text
	}
	return texts, nil
}

// toolList is the tools array as a client gets it.
func (c *client) toolList() (json.RawMessage, error) {
	raw, err := c.request("tools/list", `{}`)
	return wire.Get(raw, "tools"), err
}

// listDirect asks a server for its tools without the router in between.
func listDirect(ctx context.Context, s *story, folder string) (json.RawMessage, error) {
	c, err := connect(s.command(ctx, "files", folder))
	if err != nil {
		return nil, err
	}
	tools, err := c.toolList()
	return tools, errors.Join(err, c.close())
}

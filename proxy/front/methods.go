package front

import (
	"encoding/json"
	"strings"

	"toolguardian/proxy/wire"
)

const capabilities = `{"logging":{},"tools":{"listChanged":true}}`

// answer runs the request's method.
func (r *request) answer() (json.RawMessage, error) {
	switch r.msg.Method {
	case "server/discover":
		return r.discover()
	case "tools/list":
		return r.listTools()
	case "tools/call":
		return r.callTool()
	case "subscriptions/listen":
		if r.env.stateless {
			return r.listen()
		}
	}
	if r.env.stateless {
		return nil, noMethod(r.msg.Method)
	}
	switch r.msg.Method {
	case "initialize":
		return r.initialize()
	case "ping":
		return json.RawMessage("{}"), nil
	case "logging/setLevel":
		return r.setLevel()
	}
	return nil, noMethod(r.msg.Method)
}

// initializing is the session that an initialize asks for.
func initializing(p json.RawMessage) Session {
	asked, _ := wire.GetString(p, "protocolVersion")
	return Session{
		Client:       readClient(wire.Get(p, "clientInfo")),
		Protocol:     negotiate(asked),
		Capabilities: wire.Get(p, "capabilities"),
	}
}

func (r *request) initialize() (json.RawMessage, error) {
	s, err := r.session.wait(r.ctx)
	if err != nil {
		return nil, err
	}
	b := append([]byte(`{"protocolVersion":`), wire.Quote(s.Protocol)...)
	b = append(b, `,"capabilities":`+capabilities+`,"serverInfo":`...)
	b = append(b, r.conn.srv.o.Info.object(s.Protocol >= withTitle)...)
	return append(b, '}'), nil
}

// object is the Implementation object of every revision.
func (i Info) object(title bool) []byte {
	b := append([]byte(`{"name":`), wire.Quote(i.Name)...)
	if title && i.Title != "" {
		b = append(append(b, `,"title":`...), wire.Quote(i.Title)...)
	}
	b = append(append(b, `,"version":`...), wire.Quote(i.Version)...)
	return append(b, '}')
}

// discover is answered in any state, so that a probe costs nothing: the
// session opens with the first request that needs one.
func (r *request) discover() (json.RawMessage, error) {
	r.env.stateless = true
	b := append([]byte(`{"supportedVersions":`), quoteAll(supported())...)
	return append(b, `,"capabilities":`+capabilities+`}`...), nil
}

func (r *request) listTools() (json.RawMessage, error) {
	if r.params.cursor != nil && string(r.params.cursor) != "null" {
		return nil, badParams("unknown cursor; the list has one page")
	}
	s, err := r.admitted()
	if err != nil {
		return nil, err
	}
	defer r.leave()
	tools, err := r.conn.srv.o.Handler.ListTools(r.ctx, s)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(`{"tools":`), tools...), '}'), nil
}

func (r *request) callTool() (json.RawMessage, error) {
	if len(r.params.name) < 2 || r.params.name[0] != '"' {
		return nil, badParams("params.name must be the tool's name, a string")
	}
	s, err := r.admitted()
	if err != nil {
		return nil, err
	}
	defer r.leave()
	return r.conn.srv.o.Handler.CallTool(r.ctx, s, r.call())
}

// admitted waits for the session and for one of the places at the handler.
// It gives the place back with leave.
func (r *request) admitted() (*Session, error) {
	s, err := r.session.wait(r.ctx)
	if err != nil {
		return nil, err
	}
	select {
	case r.conn.slots <- struct{}{}:
		return s, nil
	default:
	}
	select {
	case r.conn.slots <- struct{}{}:
		return s, nil
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	}
}

func (r *request) leave() { <-r.conn.slots }

// call is the request as the handler sees it.
func (r *request) call() Call {
	name, _ := wire.GetString(r.params.name)
	c := Call{
		ID:        r.msg.ID,
		Name:      name,
		Arguments: r.params.arguments,
		Meta:      openMeta(r.params.meta),
		Params:    r.msg.Params,
		Log:       r.log,
	}
	c.Traceparent, _ = wire.GetString(c.Meta, "traceparent")
	if r.params.meta != nil {
		if token := wire.ProgressToken(r.msg.Params); !token.Absent() {
			c.Progress = func(params json.RawMessage) { r.progress(token, params) }
		}
	}
	return c
}

// openMeta is _meta without the names that belong to this connection.
func openMeta(meta json.RawMessage) json.RawMessage {
	if !isObject(meta) {
		return nil
	}
	left, err := wire.Remove(meta, func(name string) bool {
		return name == metaProgress || strings.HasPrefix(name, reserved)
	})
	if err != nil {
		return nil
	}
	for range wire.Members(left) {
		return left
	}
	return nil
}

// Complete adds to the result of a tools/call what the session's revision asks
// for where it is missing, so that a Handler can vouch for the very bytes the
// client reads. It does nothing for a stateful session, and nothing the second
// time.
func Complete(s *Session, result json.RawMessage) json.RawMessage {
	if !s.Stateless || !isObject(result) {
		return result
	}
	return s.info.sign(withDefault(result, "resultType", `"complete"`))
}

// complete adds what 2026-07-28 asks of a result where it is missing: the
// result type, how long and by whom a listing may be kept, and who we are. Our
// listings depend on the principal and may change at any time.
func (r *request) complete(result json.RawMessage) json.RawMessage {
	out := withDefault(result, "resultType", `"complete"`)
	if m := r.msg.Method; m == "server/discover" || m == "tools/list" {
		out = withDefault(out, "ttlMs", "0")
		out = withDefault(out, "cacheScope", `"private"`)
	}
	return r.conn.srv.o.Info.sign(out)
}

// sign puts who we are into a result's _meta, unless somebody is named there.
func (i Info) sign(result json.RawMessage) json.RawMessage {
	if wire.Get(result, "_meta", metaServer) != nil {
		return result
	}
	named, err := wire.Set(result, i.object(true), "_meta", metaServer)
	if err != nil {
		return result
	}
	return named
}

func withDefault(obj json.RawMessage, name, value string) json.RawMessage {
	out, err := wire.SetDefault(obj, name, []byte(value))
	if err != nil {
		return obj
	}
	return out
}

package front_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"toolguardian/proxy/front"
	"toolguardian/proxy/wire"
)

// scripted is a Handler whose tools do what their names say. It writes down
// what it is asked.
type scripted struct {
	open func() error // what OpenSession answers; nil: at once, without error

	mu     sync.Mutex
	events []string
	late   func(json.RawMessage) // the Progress of an answered call

	started chan string // names of the hold calls, when they have begun
}

func newScripted() *scripted { return &scripted{started: make(chan string, 1000)} }

func (h *scripted) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, fmt.Sprintf(format, args...))
}

// taken returns what was written down since the last time.
func (h *scripted) taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	h.events = nil
	return events
}

func (h *scripted) OpenSession(_ context.Context, s *front.Session) error {
	h.note("open %s stateless=%v client=%s/%s principal=%s capabilities=%s",
		s.Protocol, s.Stateless, s.Client.Name, s.Client.Version, s.Principal, s.Capabilities)
	if h.open != nil {
		return h.open()
	}
	return nil
}

func (h *scripted) CloseSession(ctx context.Context, s *front.Session, end front.End) error {
	h.note("close %s %s", s.Protocol, end)
	return ctx.Err()
}

func (h *scripted) SetLogLevel(_ context.Context, _ *front.Session, level string) error {
	h.note("level %s", level)
	return nil
}

func (h *scripted) ListTools(context.Context, *front.Session) (json.RawMessage, error) {
	return json.RawMessage(`[{"name":"echo","inputSchema":{"type":"object"},"x-future":1.0}]`), nil
}

func (h *scripted) CallTool(ctx context.Context, s *front.Session, c front.Call) (json.RawMessage, error) {
	h.note("call id=%s name=%s arguments=%s meta=%s traceparent=%s progress=%v stateless=%v",
		c.ID, c.Name, c.Arguments, c.Meta, c.Traceparent, c.Progress != nil, s.Stateless)
	switch c.Name {
	case "raw":
		return c.Arguments, nil
	case "progress":
		return h.progress(c), nil
	case "steps":
		for i := range 3 {
			c.Progress(json.RawMessage(fmt.Sprintf(`{"progress":%d,"total":3}`, i+1)))
		}
		return json.RawMessage(`{"content":[]}`), nil
	case "late":
		h.mu.Lock()
		late := h.late
		h.mu.Unlock()
		late(json.RawMessage(`{"progress":99}`))
		return json.RawMessage(`{"content":[]}`), nil
	case "log":
		for _, level := range []string{"debug", "warning", "odd"} {
			c.Log(json.RawMessage(`{"level":"` + level + `","data":1.0}`))
		}
		return json.RawMessage(`{"content":[]}`), nil
	case "hold":
		h.started <- c.ID.String()
		<-ctx.Done()
		h.note("held %s: %v", c.ID, context.Cause(ctx))
		return nil, ctx.Err()
	case "fail":
		return nil, &wire.Error{Code: -32050, Message: "no", Data: json.RawMessage(`{"n":1.0}`)}
	case "break":
		return nil, errors.New("it broke")
	}
	text := wire.Quote(strings.ToUpper(c.Name))
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}],"n":9007199254740993}`), nil
}

func (h *scripted) progress(c front.Call) json.RawMessage {
	if c.Progress != nil {
		for _, params := range []string{
			`{"progressToken":"ours","progress":1.0,"total":4,"x":1e400}`,
			`{"progressToken":"ours","progress":1}`, // does not grow
			`{"progressToken":"ours","progress":0.5}`,
			`{"progressToken":"ours","progress":"2"}`, // no number
			`{"progress":2,"message":"two"}`,
			`{"progressToken":"ours","progress":1e400}`,
		} {
			c.Progress(json.RawMessage(params))
		}
		h.mu.Lock()
		h.late = c.Progress
		h.mu.Unlock()
	}
	return json.RawMessage(`{"content":[]}`)
}

package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"toolguardian/proxy/wire"
)

const (
	maxPages        = 1000
	maxCatalogue    = 64 << 20 // bytes of definitions
	undeclaredLimit = 5 * time.Second
)

// listing is a server's tools with what was odd about them.
type listing struct {
	tools    []json.RawMessage
	taskOnly map[string]bool // tools that only run as a task
	flags    []string
	size     int
	names    map[string]bool
}

func newListing() *listing {
	return &listing{taskOnly: map[string]bool{}, names: map[string]bool{}}
}

func (l *listing) flag(format string, args ...any) {
	l.flags = append(l.flags, fmt.Sprintf(format, args...))
}

// readTools reads every page of tools/list (MCP "Pagination"). Only the first
// page may fail; of the rest, what was read is kept and the list is flagged.
func readTools(ctx context.Context, s *session) (*listing, error) {
	l := newListing()
	if !s.tools {
		return l, l.readUndeclared(ctx, s)
	}
	return l, l.readPages(ctx, s)
}

// readUndeclared asks a server that announced no tools: some forget to.
func (l *listing) readUndeclared(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeoutCause(ctx, undeclaredLimit, ErrTimeout)
	defer cancel()
	err := l.readPages(ctx, s)
	switch {
	case errors.Is(err, errEnded):
		return err
	case err == nil && len(l.tools) > 0:
		l.flag("it lists tools although it announced none")
	}
	return nil
}

func (l *listing) readPages(ctx context.Context, s *session) error {
	seen := map[string]bool{}
	var params json.RawMessage
	for page := 1; ; page++ {
		result, err := ask(ctx, s.conn, methodList, params)
		if err != nil && page == 1 {
			return err
		}
		if err != nil {
			l.flag("page %d of its tools could not be read: %v", page, err)
			return nil
		}
		l.addPage(wire.Get(result, "tools"))
		cursor, _ := wire.GetString(result, "nextCursor")
		if cursor == "" {
			return nil
		}
		if why := l.stop(page, seen[cursor]); why != "" {
			l.flag("its list of tools was cut off after page %d: %s", page, why)
			return nil
		}
		seen[cursor] = true
		params = wire.Get(result, "nextCursor")
		params = bytes.Join([][]byte{[]byte(`{"cursor":`), params, {'}'}}, nil)
	}
}

func (l *listing) stop(page int, repeated bool) string {
	switch {
	case repeated:
		return "a cursor came twice"
	case page >= maxPages:
		return fmt.Sprintf("%d pages is the limit", maxPages)
	case l.size > maxCatalogue:
		return fmt.Sprintf("%d bytes is the limit", maxCatalogue)
	}
	return ""
}

func (l *listing) addPage(raw json.RawMessage) {
	if raw == nil || isNull(raw) {
		return
	}
	tools, err := wire.Elements(raw)
	if err != nil {
		l.flag("its list of tools is no array")
		return
	}
	for _, t := range tools {
		l.add(t)
	}
}

// add keeps a tool that can be called, exactly as it was sent.
func (l *listing) add(raw json.RawMessage) {
	l.size += len(raw)
	name, _ := wire.GetString(raw, "name")
	switch {
	case name == "":
		l.flag("a tool without a name was left out: %.60s", raw)
		return
	case l.names[name]:
		l.flag("tool %q is listed twice; the first one stands", name)
		return
	}
	l.names[name] = true
	l.tools = append(l.tools, raw)
	if task, _ := wire.GetString(raw, "execution", "taskSupport"); task == "required" {
		l.taskOnly[name] = true
		l.flag("tool %q only runs as a task, which is not supported", name)
	}
	if oddSchema(wire.Get(raw, "inputSchema")) {
		l.flag("tool %q has an inputSchema that is no object", name)
	}
}

// oddSchema accepts an absent or null schema: both mean any object.
func oddSchema(raw json.RawMessage) bool {
	t := bytes.TrimSpace(raw)
	return len(t) > 0 && t[0] != '{' && !isNull(t)
}

package args

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/wire"
)

// Error is an argument that cannot be read. Its text says which and why;
// Next is what to do.
type Error struct{ text, Next string }

func (e *Error) Error() string { return e.text }

func problem(next, format string, a ...any) *Error {
	return &Error{text: fmt.Sprintf(format, a...), Next: next}
}

// aliases of a missing server, in order of trust.
var aliases = []string{"query", "name"}

// given are the members of one tool's arguments, by name.
type given map[string]json.RawMessage

func read(raw json.RawMessage) (given, []wire.Member, error) {
	g := given{}
	if absent(raw) {
		return g, nil, nil
	}
	order := make([]wire.Member, 0, 4)
	for m, err := range wire.Members(raw) {
		if err != nil {
			return nil, nil, problem("pass the arguments as one JSON object.", "the arguments are no JSON object: %v", err)
		}
		g[m.Key] = m.Value
		order = append(order, m)
	}
	return g, order, nil
}

func absent(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// str is the text at key; "" where it is absent or null.
func (g given) str(key string) (string, error) {
	raw := g[key]
	if absent(raw) {
		return "", nil
	}
	s, ok := wire.GetString(raw)
	if !ok {
		return "", problem("pass "+key+" as text.", "%s must be text, not %s", key, short(raw))
	}
	return s, nil
}

// server is the text at "server", or at an alias where it is missing.
func (g given) server() (name, from string, err error) {
	for _, key := range append([]string{"server"}, aliases...) {
		if name, err = g.str(key); err != nil && key == "server" {
			return "", "", err
		}
		if name != "" {
			return name, key, nil
		}
	}
	return "", "", nil
}

// names are the server's and the tool's, and the key that held the server's.
func (g given) names(order []wire.Member) (server, tool, from string, err error) {
	if server, from, err = g.server(); err != nil {
		return "", "", "", err
	}
	if tool, err = g.str("tool"); err != nil {
		return "", "", "", err
	}
	if server == "" && g["server"] == nil {
		err = misnamed(order, "server")
	}
	if tool == "" && g["tool"] == nil && err == nil {
		err = misnamed(order, "tool")
	}
	return server, tool, from, err
}

// misnamed is the error of a member that looks like the wanted one, which is
// missing; nil where there is none.
func misnamed(order []wire.Member, wanted string) error {
	for _, m := range order {
		if len(catalogue.Nearest(m.Key, []string{wanted}, 1)) == 1 {
			return problem("use the name "+wanted+" instead.", "%q is no argument here; the nearest: %s", m.Key, wanted)
		}
	}
	return nil
}

// whole is the number at key, also when written as text; 0 where it is absent.
func (g given) whole(key string) (int, error) {
	raw := bytes.TrimSpace(g[key])
	if absent(raw) {
		return 0, nil
	}
	text := string(raw)
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &text)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(f) {
		return 0, problem("pass "+key+" as a number.", "%s must be a number, not %s", key, short(raw))
	}
	return int(max(min(f, math.MaxInt32), math.MinInt32)), nil
}

// short is the beginning of a value, to be shown.
func short(raw []byte) string {
	const most = 60
	if s := []rune(string(raw)); len(s) > most {
		return string(s[:most]) + "…"
	}
	return string(raw)
}

// List is what list_capabilities takes.
type List struct{ Server string }

// ParseList reads list_capabilities' arguments.
func ParseList(raw json.RawMessage) (l List, err error) {
	g, _, err := read(raw)
	if err == nil {
		l.Server, _, err = g.server()
	}
	return l, err
}

// Search is what search_capabilities takes.
type Search struct {
	Query, Server string
	Limit         int // 0: absent
}

// ParseSearch reads search_capabilities' arguments. The query is its own and
// never taken for a server.
func ParseSearch(raw json.RawMessage) (s Search, err error) {
	g, order, err := read(raw)
	if err != nil {
		return s, err
	}
	if s.Query, err = g.str("query"); err != nil {
		return s, err
	}
	if s.Server, err = g.str("server"); err != nil {
		return s, err
	}
	if s.Limit, err = g.whole("limit"); err != nil {
		return s, err
	}
	if _, there := g["limit"]; there && s.Limit == 0 {
		s.Limit = 1
	}
	if strings.TrimSpace(s.Query) == "" {
		if err := misnamed(order, "query"); err != nil && g["query"] == nil {
			return s, err
		}
		return s, problem("use search_capabilities with query, a word for what you need.", "query is missing")
	}
	return s, nil
}

// Describe is what describe_tool takes.
type Describe struct {
	Server, Tool string
	Detail       string // "", "compact" or "full"
}

// ParseDescribe reads describe_tool's arguments.
func ParseDescribe(raw json.RawMessage) (d Describe, err error) {
	g, order, err := read(raw)
	if err != nil {
		return d, err
	}
	if d.Server, d.Tool, _, err = g.names(order); err != nil {
		return d, err
	}
	if d.Detail, err = g.str("detail"); err != nil {
		return d, err
	}
	switch d.Detail {
	case "", "compact", "full":
		return d, nil
	}
	return d, problem("use detail compact or full.", "detail must be compact or full, not %q", d.Detail)
}

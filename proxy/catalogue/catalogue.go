package catalogue

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// State is a backend's, in the words a model reads.
type State string

const (
	Starting     State = "STARTING"
	Up           State = "UP"
	Down         State = "DOWN"
	Unknown      State = "UNKNOWN"
	AuthRequired State = "AUTH_REQUIRED"
	Unsupported  State = "UNSUPPORTED"
)

// Tools are one server's definitions, read once.
type Tools struct {
	list  []Tool
	index map[string]int
	flags []string
}

// ReadTools reads raw definitions. One that cannot be called or whose name
// was there before is left out and told in the flags; the others stand.
func ReadTools(server string, raw []json.RawMessage) *Tools {
	t := &Tools{index: make(map[string]int, len(raw))}
	for i, r := range raw {
		tool, err := ParseTool(server, r)
		if err != nil {
			t.flags = append(t.flags, fmt.Sprintf("definition %d left out: %v", i+1, err))
			continue
		}
		if _, twice := t.index[tool.Name]; twice {
			t.flags = append(t.flags, fmt.Sprintf("definition %d left out: %q is there already", i+1, tool.Name))
			continue
		}
		t.index[tool.Name] = len(t.list)
		t.list = append(t.list, tool)
	}
	return t
}

// Tool finds a definition by its exact name, whatever a filter hides: the
// caller judges it before it says anything about it. t may be nil.
func (t *Tools) Tool(name string) (Tool, bool) {
	if t == nil {
		return Tool{}, false
	}
	i, ok := t.index[name]
	if !ok {
		return Tool{}, false
	}
	return t.list[i], true
}

// All goes through the definitions in the backend's order. t may be nil.
func (t *Tools) All() iter.Seq[Tool] {
	if t == nil {
		return func(func(Tool) bool) {}
	}
	return slices.Values(t.list)
}

// Server is one backend as it stands now.
type Server struct {
	Name   string
	State  State
	Err    string   // why it is not up
	Stderr []string // its last lines
	Flags  []string // what is odd about its list
	Tools  *Tools   // nil: none were read
}

// Options shape what a Catalogue says.
type Options struct {
	Visible   func(Tool) bool // nil: every tool
	DescWords int             // words of a description in a line; 0: 12
	MaxChars  int             // of one server's block in a list; 0: no bound
	Needs     bool            // say in a search which tool provides a required argument
}

// Catalogue is an immutable view over servers. It is safe for concurrent use.
type Catalogue struct {
	servers   []listing // in the order of the configuration
	o         Options
	index     func() *index
	providers func() []provider
}

type listing struct {
	Server
	tools []Tool // visible ones, in the backend's order
}

// New looks at servers through the filter.
func New(servers []Server, o Options) *Catalogue {
	if o.DescWords <= 0 {
		o.DescWords = summaryWords
	}
	c := &Catalogue{o: o}
	for _, s := range servers {
		l := listing{Server: s}
		if s.Tools != nil {
			l.Flags = append(append([]string{}, s.Flags...), s.Tools.flags...)
			l.tools = visible(s.Tools.list, o.Visible)
		}
		c.servers = append(c.servers, l)
	}
	c.index, c.providers = sync.OnceValue(c.buildIndex), sync.OnceValue(c.buildProviders)
	return c
}

func visible(all []Tool, keep func(Tool) bool) []Tool {
	if keep == nil {
		return all
	}
	var out []Tool
	for _, t := range all {
		if keep(t) {
			out = append(out, t)
		}
	}
	return out
}

func (c *Catalogue) server(name string) (*listing, bool) {
	for i := range c.servers {
		if c.servers[i].Name == name {
			return &c.servers[i], true
		}
	}
	return nil, false
}

// names are those of the servers, in order.
func (c *Catalogue) names() []string {
	out := make([]string, len(c.servers))
	for i, s := range c.servers {
		out[i] = s.Name
	}
	return out
}

// Missing is the error of a name that leads nowhere. Its text names what
// would; Next says what to do.
type Missing struct{ text, Next string }

func (m *Missing) Error() string { return m.text }

// Find is nil where the server is known, else a *Missing.
func (c *Catalogue) Find(server string) error {
	if _, ok := c.server(server); ok {
		return nil
	}
	return c.noSuchServer(server, "")
}

func (c *Catalogue) noSuchServer(server, tool string) error {
	m := &Missing{text: fmt.Sprintf("there is no server %q", asked(server)), Next: "use one of the server names above."}
	if server == "" {
		m.text = "server is missing"
	}
	if near := Nearest(server, c.names(), 1); len(near) == 1 {
		m.text += fmt.Sprintf("; the nearest is %q", near[0])
	}
	m.text += "; servers: " + c.serverNames() + "."
	if at := c.elsewhere(tool); len(at) > 0 {
		m.Next = fmt.Sprintf("use server %s, tool %s.", at[0].Server, at[0].Name)
	}
	return m
}

// asked is a name as it was asked for, cut as in receipts: whoever sent it
// knows the rest.
func asked(name string) string {
	const most = 128
	if len(name) <= most {
		return name
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}

func (c *Catalogue) serverNames() string {
	if len(c.servers) == 0 {
		return "none are configured"
	}
	return strings.Join(c.names(), ", ")
}

// FindTool finds a visible tool. The error is a *Missing that names the
// nearest right ones, or tells the state of a server that is not up.
func (c *Catalogue) FindTool(server, tool string) (Tool, error) {
	l, ok := c.server(server)
	if !ok {
		return Tool{}, c.noSuchServer(server, tool)
	}
	for _, t := range l.tools {
		if t.Name == tool {
			return t, nil
		}
	}
	if l.State != Up && len(l.tools) == 0 {
		return Tool{}, &Missing{text: l.trouble(), Next: l.next()}
	}
	return Tool{}, c.noSuchTool(l, tool)
}

func (c *Catalogue) noSuchTool(l *listing, tool string) error {
	names := make([]string, len(l.tools))
	for i, t := range l.tools {
		names[i] = t.Name
	}
	m := &Missing{
		text: fmt.Sprintf("server %s has no tool %q", l.Name, asked(tool)),
		Next: "use list_capabilities with server " + l.Name + " to see its tools.",
	}
	if tool == "" {
		m.text = "tool is missing"
	}
	if near := Nearest(strings.TrimPrefix(tool, l.Name+"."), names, 3); len(near) > 0 {
		m.text += "; the nearest: " + strings.Join(near, ", ")
		m.Next = fmt.Sprintf("use server %s, tool %s, or list_capabilities with server %s.", l.Name, near[0], l.Name)
	} else if others := c.elsewhere(tool); len(others) > 0 {
		m.text += "; it is at server " + others[0].Server
		m.Next = fmt.Sprintf("use server %s, tool %s.", others[0].Server, others[0].Name)
	}
	m.text += "."
	return m
}

// elsewhere are the visible tools of that very name, with or without the
// server before it.
func (c *Catalogue) elsewhere(name string) (out []Tool) {
	for _, l := range c.servers {
		for _, t := range l.tools {
			if t.Name == name || t.Server+"."+t.Name == name {
				out = append(out, t)
			}
		}
	}
	return out
}

package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// maxEnum is how many allowed values a line shows in braces.
const maxEnum = 6

// Args is what follows "args:": every parameter as name:type, with ? before
// an optional one and the allowed values in braces.
func (t Tool) Args() string { return arguments(t.Params) }

// RequiredArgs is Args of the required parameters alone.
func (t Tool) RequiredArgs() string {
	required := slices.DeleteFunc(slices.Clone(t.Params), func(p Param) bool { return !p.Required })
	if len(required) == 0 && len(t.Params) > 0 {
		return "(none)"
	}
	return arguments(required)
}

func arguments(params []Param) string {
	if len(params) == 0 {
		return "(no arguments)"
	}
	parts := make([]string, len(params))
	for i, p := range params {
		parts[i] = p.line()
	}
	return strings.Join(parts, ", ")
}

func (p Param) line() string {
	s := p.Name + ":" + p.Type
	if !p.Required {
		s = "?" + s
	}
	if len(p.Enum) == 0 {
		return s
	}
	shown := strings.Join(p.Enum[:min(maxEnum, len(p.Enum))], "|")
	if len(p.Enum) > maxEnum {
		shown += "|…"
	}
	return s + "{" + shown + "}"
}

// words are the first n of s, with … where there were more.
func words(s string, n int) string {
	all := strings.Fields(s)
	if len(all) <= n {
		return strings.Join(all, " ")
	}
	return strings.Join(all[:n], " ") + "..."
}

// head names a tool. A reader takes what stands before the first dot for the
// server; where that would be wrong, both are said.
func (t Tool) head() string {
	if strings.Contains(t.Server, ".") {
		return fmt.Sprintf("%s.%s (server %s, tool %s)", t.Server, t.Name, t.Server, t.Name)
	}
	return t.Server + "." + t.Name
}

// line is a tool's, as lists and searches show it.
func (c *Catalogue) line(t Tool) string {
	head := t.head()
	if d := words(t.Description, c.o.DescWords); d != "" {
		head += ": " + d
	}
	return head + "\n    args: " + t.Args()
}

// List names every server with its tools, a line each.
func (c *Catalogue) List() (text, next string) {
	if len(c.servers) == 0 {
		return "no servers are configured.", "tell the user to add one: tool-guardian setup add NAME -- COMMAND."
	}
	lines := make([]string, len(c.servers))
	for i := range c.servers {
		lines[i] = c.servers[i].row(c.o.MaxChars)
	}
	return strings.Join(lines, "\n"),
		"use search_capabilities with a keyword (or list_capabilities with one server name) to see a tool's args, then call_tool."
}

// row is one server's line in the list of all.
func (l *listing) row(maxChars int) string {
	if l.State != Up && len(l.tools) == 0 {
		return l.trouble()
	}
	head := fmt.Sprintf("[%s] ", l.Name)
	if l.State != Up {
		head = l.trouble() + "; last seen: "
	}
	if len(l.tools) == 0 {
		return head + "0 tools" + l.flagged()
	}
	names := make([]string, len(l.tools))
	for i, t := range l.tools {
		names[i] = t.Name
	}
	return head + fmt.Sprintf("%d tools: ", len(names)) + cut(names, ", ", maxChars) + l.flagged()
}

func (l *listing) flagged() string {
	if len(l.Flags) == 0 {
		return ""
	}
	return "\n    ⚠ flagged: " + strings.Join(l.Flags, "; ")
}

// trouble tells a state that is not up, with the server's own words.
func (l *listing) trouble() string {
	s := fmt.Sprintf("[%s] %s", l.Name, l.State)
	switch {
	case l.Err != "":
		s += ": " + oneLine(l.Err)
	case l.State == Starting:
		s += ": it has not answered yet; ask again in a moment"
	}
	if len(l.Stderr) > 0 {
		s += " -- its stderr: " + oneLine(strings.Join(l.Stderr, " | "))
	}
	return s
}

// next is what to do about a server that is not up.
func (l *listing) next() string {
	if l.State == Starting {
		return "use list_capabilities with server " + l.Name + " again in a moment."
	}
	return "tell the user what the server said, or use another server; its tools cannot be called now."
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// ListServer shows a server's tools, two lines each.
func (c *Catalogue) ListServer(name string) (text, next string, err error) {
	if err := c.Find(name); err != nil {
		return "", "", err
	}
	l, _ := c.server(name)
	if len(l.tools) == 0 {
		if l.State != Up {
			return l.trouble(), l.next(), nil
		}
		return l.row(0), "use another server.", nil
	}
	var lines []string
	if l.State != Up {
		lines = append(lines, l.trouble()+"; its tools were:")
	}
	var blocks []string
	for _, t := range l.tools {
		blocks = append(blocks, c.line(t))
	}
	lines = append(lines, cut(blocks, "\n", c.o.MaxChars)+l.flagged())
	return strings.Join(lines, "\n"), "you have not answered the user yet. Pick the tool above that does the job and use call_tool with server " +
		name + ", that tool's name, and the args listed under it.", nil
}

// cut joins parts while they fit into max characters; 0 is no bound.
func cut(parts []string, sep string, max int) string {
	used := 0
	for i, p := range parts {
		if used += len([]rune(p)) + len(sep); max > 0 && used > max && i > 0 {
			return strings.Join(parts[:i], sep) + sep +
				fmt.Sprintf("[+%d more tools not shown; find them with search_capabilities]", len(parts)-i)
		}
	}
	return strings.Join(parts, sep)
}

// Describe is one tool in short: its first words and what it needs.
func (c *Catalogue) Describe(t Tool) (text, next string) {
	head := t.head()
	if d := words(t.Description, c.o.DescWords); d != "" {
		head += ": " + d
	}
	return head + "\nrequired args: " + t.RequiredArgs(),
		fmt.Sprintf("use call_tool with server %s, tool %s, args: %s.", t.Server, t.Name, t.Args())
}

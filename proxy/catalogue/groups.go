package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Group is a named choice of tools.
type Group struct {
	Name      string
	Selectors []string // "server", "server.tool" or "server.prefix*"
}

var errGroups = errors.New(`groups must be an object of names with lists of selectors, like {"read": ["files", "git.git_log", "git.git_diff*"]}`)

// ParseGroups reads the configuration's toolGuardian.groups, in its order; nil
// where it is absent.
func ParseGroups(raw json.RawMessage) ([]Group, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '{' || !json.Valid(raw) {
		return nil, errGroups
	}
	var groups []Group
	var err error
	eachMember(raw, func(name string, value json.RawMessage) {
		g := Group{Name: name}
		if json.Unmarshal(value, &g.Selectors) != nil || name == "" {
			err = fmt.Errorf("%w; %q is %s", errGroups, name, value)
		}
		groups = append(groups, g)
	})
	return groups, err
}

// ListGroups prices every group of tools, everything, and the router's own
// definitions. Without groups each server is one. A tool may be in several.
func (c *Catalogue) ListGroups(groups []Group, own []json.RawMessage) (text, next string) {
	var lines []string
	if len(groups) == 0 {
		lines = c.serverPrices()
	} else {
		lines = c.groupPrices(groups)
	}
	lines = append(lines, c.totals(own)...)
	return strings.Join(lines, "\n"), "answer the user, or use list_capabilities with one server name to work with its tools."
}

func (c *Catalogue) serverPrices() (lines []string) {
	for i := range c.servers {
		l := &c.servers[i]
		switch {
		case l.State == Up:
			lines = append(lines, priceLine(l.Name, l.tools))
		case len(l.tools) == 0:
			lines = append(lines, l.trouble()+"; its price is not known")
		default:
			lines = append(lines, l.trouble()+"; last seen: "+priced(l.tools))
		}
	}
	return lines
}

func (c *Catalogue) groupPrices(groups []Group) (lines []string) {
	chosen := map[string]bool{}
	var unresolved []string
	for _, g := range groups {
		var tools []Tool
		in := map[string]bool{}
		for _, selector := range g.Selectors {
			found, known := c.selected(selector)
			if !known {
				unresolved = append(unresolved, fmt.Sprintf("%s (in %s)", selector, g.Name))
			}
			for _, t := range found {
				if key := t.key(); !in[key] {
					in[key], chosen[key] = true, true
					tools = append(tools, t)
				}
			}
		}
		lines = append(lines, priceLine(g.Name, tools))
	}
	if rest := c.leftovers(chosen); len(rest) > 0 {
		lines = append(lines, priceLine(freeName(groups), rest))
	}
	lines = append(lines, c.troubles()...)
	if len(unresolved) > 0 {
		lines = append(lines, "unresolved, matching no tool: "+strings.Join(unresolved, ", "))
	}
	return lines
}

func (c *Catalogue) troubles() (lines []string) {
	for i := range c.servers {
		if l := &c.servers[i]; l.State != Up {
			lines = append(lines, l.trouble())
		}
	}
	return lines
}

// key tells tools apart: no name holds a zero byte of its own in JSON text.
func (t Tool) key() string { return t.Server + "\x00" + t.Name }

// selected are the visible tools that a selector means. Names are data: a
// server's may hold dots, so that every server the selector begins with is
// tried.
func (c *Catalogue) selected(selector string) (tools []Tool, known bool) {
	for i := range c.servers {
		l := &c.servers[i]
		if l.Name == selector {
			return l.tools, true
		}
		rest, ok := strings.CutPrefix(selector, l.Name+".")
		if !ok {
			continue
		}
		prefix, many := strings.CutSuffix(rest, "*")
		for _, t := range l.tools {
			if t.Name == rest || many && strings.HasPrefix(t.Name, prefix) {
				tools = append(tools, t)
			}
		}
	}
	return tools, len(tools) > 0
}

func (c *Catalogue) leftovers(chosen map[string]bool) (rest []Tool) {
	for _, l := range c.servers {
		for _, t := range l.tools {
			if !chosen[t.key()] {
				rest = append(rest, t)
			}
		}
	}
	return rest
}

// freeName is what the leftovers are called: a name that no group has.
func freeName(groups []Group) string {
	taken := map[string]bool{}
	for _, g := range groups {
		taken[g.Name] = true
	}
	for _, name := range []string{"other", "ungrouped", "ungrouped_tools"} {
		if !taken[name] {
			return name
		}
	}
	for n := 2; ; n++ {
		if name := fmt.Sprintf("other_%d", n); !taken[name] {
			return name
		}
	}
}

func priceLine(name string, tools []Tool) string {
	return "[" + name + "] " + priced(tools)
}

func priced(tools []Tool) string {
	return fmt.Sprintf("%s, ~%s tokens", count(len(tools), "tool"), thousands(price(tools)))
}

func price(tools []Tool) int {
	raw := make([]json.RawMessage, len(tools))
	for i, t := range tools {
		raw[i] = t.Raw
	}
	return Price(raw)
}

// totals count every tool once, each server priced by itself.
func (c *Catalogue) totals(own []json.RawMessage) []string {
	tools, tokens := 0, 0
	for _, l := range c.servers {
		tools += len(l.tools)
		tokens += price(l.tools)
	}
	return []string{
		fmt.Sprintf("total: %s, ~%s tokens on every request if all were loaded (an estimate: characters / 3.5)", count(tools, "tool"), thousands(tokens)),
		fmt.Sprintf("this router instead: %s, ~%s tokens", count(len(own), "tool"), thousands(Price(own))),
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// thousands writes 20005 as 20,005.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

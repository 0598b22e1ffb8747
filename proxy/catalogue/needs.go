package catalogue

import (
	"encoding/json"
	"fmt"
	"slices"
)

const (
	// maxNeeds bounds the lines of one tool.
	maxNeeds = 3
	// maxDepth bounds how deep an outputSchema is read.
	maxDepth = 4
)

// written are the words of arguments that a person or a model makes up: no
// tool provides them.
var written = wordSet(`path paths query text content contents body message title description url prompt code expression limit page value data type
format mode pattern command reason comment args arguments options config input topic thought`)

// nothingMore are the words that say of an argument only what form it has.
var nothingMore = wordSet(`id ids name names number numbers key uri slug type list array`)

// provider is what a tool may give to another.
type provider struct {
	tool    Tool
	outputs map[string]bool // folded names of its outputSchema's properties
	name    []string        // stems of its name
}

func (c *Catalogue) buildProviders() []provider {
	var all []provider
	for _, l := range c.servers {
		for _, t := range l.tools {
			p := provider{tool: t, outputs: map[string]bool{}, name: stems(t.Name)}
			var d struct {
				OutputSchema json.RawMessage `json:"outputSchema"`
			}
			if json.Unmarshal(t.Raw, &d) == nil {
				p.read(d.OutputSchema, maxDepth)
			}
			all = append(all, p)
		}
	}
	return all
}

func (p *provider) read(raw json.RawMessage, depth int) {
	if depth == 0 || len(raw) == 0 {
		return
	}
	s := decode(raw)
	p.read(s.Items, depth-1)
	eachMember(s.Properties, func(name string, value json.RawMessage) {
		p.outputs[string(fold(name))] = true
		p.read(value, depth-1)
	})
}

// needs are lines that name, for required arguments of t, another tool that
// provides one. They are guesses by names.
func (c *Catalogue) needs(t Tool) (lines []string) {
	for _, p := range t.Params {
		if !p.Required || len(p.Enum) > 0 || written[p.Name] {
			continue
		}
		if from, ok := c.provides(t, p.Name); ok && len(lines) < maxNeeds {
			lines = append(lines, fmt.Sprintf("    needs %s from: %s.%s", p.Name, from.Server, from.Name))
		}
	}
	return lines
}

// provides finds the tool that most likely gives an argument; ties keep the
// catalogue's order.
func (c *Catalogue) provides(t Tool, param string) (best Tool, ok bool) {
	subject := slices.DeleteFunc(split(param), func(w string) bool { return nothingMore[w] || !says(w) })
	most := 0
	for _, p := range c.providers() {
		if p.tool.Server == t.Server && p.tool.Name == t.Name || p.tool.requires(param) {
			continue
		}
		if s := p.gives(t.Server, param, subject); s > most {
			best, most = p.tool, s
		}
	}
	return best, most > 0
}

// gives is 0 where the tool does not seem to provide the argument.
func (p *provider) gives(server, param string, subject []string) int {
	score := 0
	if p.outputs[string(fold(param))] {
		score = 8
	} else if p.about(subject) {
		score = 4
	}
	if score > 0 && p.tool.Server == server {
		score += 8 // an id of one server says nothing to another
	}
	if score > 0 && p.finds() {
		score++
	}
	return score
}

// about says whether the tool's name holds every word or a synonym of it.
func (p *provider) about(subject []string) bool {
	for _, w := range subject {
		w = stem(w)
		known := slices.Contains(p.name, w) ||
			slices.ContainsFunc(synonyms()[w], func(s string) bool { return slices.Contains(p.name, s) })
		if !known {
			return false
		}
	}
	return len(subject) > 0
}

// finds says whether the tool is made to find things rather than to make them.
func (p *provider) finds() bool {
	return len(p.name) > 0 && slices.Contains([]string{"list", "search", "find", "queri", "resolv"}, p.name[0])
}

func (t Tool) requires(param string) bool {
	p, ok := t.param(param)
	return ok && p.Required
}

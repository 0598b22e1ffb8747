package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// DefaultLimit and MaxLimit bound the hits of a search.
	DefaultLimit, MaxLimit = 8, 50
	// maxTerms bounds how many words of a query are looked for.
	maxTerms = 32
	// maxQuery bounds, in bytes, what of a query is read.
	maxQuery = 4 << 10
)

const (
	// answered is the part of a query, by the weight of its words, that a tool
	// has to answer to be a hit.
	answered = 0.42
	// besideBest is the part of the best score that a hit has to reach.
	besideBest = 0.3
	// wholeName is added for a query that is the tool's name.
	wholeName = 1000.0
)

type hit struct {
	tool  Tool
	score float64
}

// rank finds the tools that answer a query, the best first; ties keep the
// order of configuration and backend.
func (c *Catalogue) rank(query, server string) []hit {
	query = strings.TrimSpace(query[:min(len(query), maxQuery)])
	x := c.index()
	terms := x.terms(query)
	name := string(fold(query))
	var hits []hit
	for i := range x.docs {
		d := &x.docs[i]
		if server != "" && d.tool.Server != server {
			continue
		}
		if s := x.score(d, terms, name, query); s > 0 {
			hits = append(hits, hit{d.tool, s})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	return near(hits)
}

// near leaves out what is far behind the best.
func near(hits []hit) []hit {
	for i, h := range hits {
		if h.score < besideBest*(hits[0].score-wholeNames(hits[0].score)) {
			return hits[:i]
		}
	}
	return hits
}

// wholeNames is the part of a score that a whole name gave.
func wholeNames(score float64) float64 {
	if score >= wholeName {
		return wholeName
	}
	return 0
}

// score is 0 for a tool that does not answer the query.
func (x *index) score(d *document, terms []term, name, query string) float64 {
	var total, sure, weight float64
	for _, t := range terms {
		s, certain := x.match(d, t)
		total += s
		sure += certain * t.rarity
		weight += t.rarity
	}
	if name != "" && d.folded == name || query == d.tool.Name || query == d.tool.Server+"."+d.tool.Name {
		return total + wholeName
	}
	if weight == 0 || sure < answered*weight {
		return 0
	}
	return total * sure / weight
}

// Search ranks the visible tools of one server, or of all where server is "".
// A limit outside 1…MaxLimit is clamped, 0 is DefaultLimit.
func (c *Catalogue) Search(query, server string, limit int) (text, next string, err error) {
	if server != "" {
		if err := c.Find(server); err != nil {
			return "", "", err
		}
	}
	hits := c.rank(query, server)
	if len(hits) == 0 {
		return c.nothing(query), "try another word, or list_capabilities with one server name.", nil
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	shown := hits[:min(max(limit, 1), MaxLimit, len(hits))]
	lines := make([]string, 0, len(shown)+1)
	for _, h := range shown {
		lines = append(lines, c.line(h.tool))
		if c.o.Needs {
			lines = append(lines, c.needs(h.tool)...)
		}
	}
	if more := len(hits) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("[+%d more tools not shown; raise limit or narrow the query]", more))
	}
	return strings.Join(lines, "\n"),
		"you have not answered the user yet. Use call_tool with the server and tool of the best line above (server.tool) and its args.", nil
}

// Hits are the tools that Search shows, the best first.
func (c *Catalogue) Hits(query string, limit int) []Tool {
	hits := c.rank(query, "")
	out := make([]Tool, min(limit, len(hits)))
	for i := range out {
		out[i] = hits[i].tool
	}
	return out
}

// nothing says what was looked through, and what could not be.
func (c *Catalogue) nothing(query string) string {
	text := fmt.Sprintf("no tools match %q. Servers: %s.", query, c.serverNames())
	for i := range c.servers {
		if l := &c.servers[i]; l.State != Up {
			text += "\nnot searched: " + l.trouble()
		}
	}
	return text
}

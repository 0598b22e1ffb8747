package catalogue

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

const (
	// scoredWords of a description count in the ranking, whatever is shown.
	scoredWords = 12
	// DefaultLimit and MaxLimit bound the hits of a search.
	DefaultLimit, MaxLimit = 8, 50
	// maxTerms bounds how many words of a query are looked for.
	maxTerms = 32
)

// Weights of where a word stands.
const (
	inName, inServer, inDescription, inParams = 4.0, 1.5, 1.5, 0.5
	wholeName                                 = 6.0
	partOfWord                                = 0.5 // of the weight, for a common beginning
)

// index is the words of every visible tool, built once for a catalogue.
type index struct {
	docs []document
	df   map[string]int // documents that hold a word
}

type document struct {
	tool  Tool
	words map[string]float64 // word → weight
}

func (c *Catalogue) buildIndex() *index {
	x := &index{df: map[string]int{}}
	for _, l := range c.servers {
		for _, t := range l.tools {
			d := document{t, map[string]float64{}}
			d.add(t.Name, inName)
			d.add(t.Server, inServer)
			d.add(words(t.Description, scoredWords), inDescription)
			for _, p := range t.Params {
				d.add(p.Name, inParams)
			}
			for w := range d.words {
				x.df[w]++
			}
			x.docs = append(x.docs, d)
		}
	}
	return x
}

func (d document) add(text string, weight float64) {
	for _, w := range split(text) {
		d.words[w] = max(d.words[w], weight)
	}
}

// split cuts a name or a sentence into lower-case words, at separators and at
// changes of case. Words that stand everywhere are left out.
func split(s string) []string {
	var out []string
	var word []rune
	end := func() {
		if w := stem(strings.ToLower(string(word))); w != "" && !tooCommon[w] {
			out = append(out, w)
		}
		word = word[:0]
	}
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case unicode.IsUpper(r) && len(word) > 0 && unicode.IsLower(word[len(word)-1]):
			end()
		}
		word = append(word, r)
	}
	end()
	return out
}

// tooCommon are words that say nothing about a tool.
var tooCommon = map[string]bool{"a": true, "an": true, "and": true, "at": true, "by": true, "for": true, "from": true, "i": true,
	"in": true, "is": true, "it": true, "my": true, "of": true, "on": true, "or": true, "the": true, "to": true, "with": true}

// stem takes a plural for its singular.
func stem(w string) string {
	if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		return w[:len(w)-1]
	}
	return w
}

// score sums, over the query's words, the best place a word stands at times
// how rare it is. Words are added in the query's order, so the sum is the same
// on every run.
func (x *index) score(d document, terms []string, query string) float64 {
	total := 0.0
	for _, t := range terms {
		if w, ok := d.words[t]; ok {
			total += w * x.rarity(t)
			continue
		}
		total += partOfWord * d.beginning(t) * x.rarity(t)
	}
	if total > 0 && strings.EqualFold(d.tool.Name, query) {
		total += wholeName
	}
	return total
}

func (x *index) rarity(term string) float64 {
	n, df := float64(len(x.docs)), float64(x.df[term])
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// beginning is the best weight of a word that begins with the term, or whose
// beginning the term continues.
func (d document) beginning(term string) (best float64) {
	if len(term) < 3 {
		return 0
	}
	for w, weight := range d.words {
		if strings.HasPrefix(w, term) || len(w) >= 4 && strings.HasPrefix(term, w) {
			best = max(best, weight)
		}
	}
	return best
}

type hit struct {
	tool  Tool
	score float64
}

// Search ranks the visible tools of one server, or of all where server is "".
// A limit outside 1…MaxLimit is clamped, 0 is DefaultLimit.
func (c *Catalogue) Search(query, server string, limit int) (text, next string, err error) {
	if server != "" {
		if err := c.Find(server); err != nil {
			return "", "", err
		}
	}
	terms := split(query)
	terms = terms[:min(len(terms), maxTerms)]
	hits := c.rank(terms, strings.TrimSpace(query), server)
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
	}
	if more := len(hits) - len(shown); more > 0 {
		lines = append(lines, fmt.Sprintf("[+%d more tools not shown; raise limit or narrow the query]", more))
	}
	return strings.Join(lines, "\n"),
		"you have not answered the user yet. Use call_tool with the server and tool of the best line above (server.tool) and its args.", nil
}

// rank sorts by score; ties keep the order of configuration and backend.
func (c *Catalogue) rank(terms []string, query, server string) (hits []hit) {
	x := c.index()
	for _, d := range x.docs {
		if server != "" && d.tool.Server != server {
			continue
		}
		if s := x.score(d, terms, query); s > 0 {
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
	return hits
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

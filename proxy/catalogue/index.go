package catalogue

import (
	"math"
	"slices"
	"strings"
)

// field is where in a definition a word stands.
type field int

const (
	inName field = iota
	inServer
	inSummary // the first words of the description
	inRest    // the words after them
	inParams
	fields
)

const (
	// summaryWords of a description are its summary, whatever is shown.
	summaryWords = 12
	// restWords after them are read, so that a manual does not bury its tool.
	restWords = 60
)

// weights are those of BM25F: how much a word counts in each field.
var weights = [fields]float64{inName: 4, inServer: 1.5, inSummary: 2, inRest: 0.5, inParams: 0.7}

// Constants of BM25: how soon repeating a word stops to count, and how much a
// long field weakens its words.
const (
	saturation = 1.2
	lengthBias = 0.5
)

// smallest is the number of tools from which on rarity is taken as it is. In a
// smaller catalogue every word would seem common.
const smallest = 100

// index is the words of every visible tool, built once for a catalogue.
type index struct {
	docs    []document
	df      map[string]int // documents that hold a stem
	average [fields]float64
}

type document struct {
	tool   Tool
	folded string // the name without case and separators
	length [fields]float64
	words  map[string]*[fields]float64 // stem → how often it stands in each field
}

func (c *Catalogue) buildIndex() *index {
	x := &index{df: map[string]int{}}
	for _, l := range c.servers {
		for _, t := range l.tools {
			x.add(t)
		}
	}
	for f := range x.average {
		x.average[f] = max(x.average[f]/float64(max(len(x.docs), 1)), 1)
	}
	return x
}

func (x *index) add(t Tool) {
	d := document{tool: t, folded: string(fold(t.Name)), words: map[string]*[fields]float64{}}
	all := split(firstBytes(t.Description))
	summary := all[:min(len(all), summaryWords)]
	d.add(inName, split(t.Name))
	d.add(inServer, split(t.Server))
	d.add(inSummary, summary)
	d.add(inRest, all[len(summary):min(len(all), summaryWords+restWords)])
	for _, p := range t.Params {
		d.add(inParams, split(p.Name))
	}
	for w := range d.words {
		x.df[w]++
	}
	for f := range d.length {
		x.average[f] += d.length[f]
	}
	x.docs = append(x.docs, d)
}

// firstBytes is as much of a description as its indexed words can fill.
func firstBytes(s string) string { return s[:min(len(s), 64*(summaryWords+restWords))] }

func (d *document) add(f field, words []string) {
	for _, w := range words {
		if !says(w) {
			continue
		}
		w = stem(w)
		if d.words[w] == nil {
			d.words[w] = &[fields]float64{}
		}
		d.words[w][f]++
		d.length[f]++
	}
}

// rarity is the inverse document frequency, as BM25 has it.
func (x *index) rarity(df int) float64 {
	n := float64(max(len(x.docs), smallest))
	return math.Log(1 + (n-float64(df)+0.5)/(float64(df)+0.5))
}

// strength is a stem's BM25F score in a document without its rarity, from 0
// where it is absent to just below saturation+1.
func (x *index) strength(d *document, w string) float64 {
	counts := d.words[w]
	if counts == nil {
		return 0
	}
	sum := 0.0
	for f, n := range counts {
		if n > 0 {
			sum += weights[f] * n / (1 - lengthBias + lengthBias*d.length[f]/x.average[f])
		}
	}
	return sum * (saturation + 1) / (sum + saturation)
}

// term is one word of a query.
type term struct {
	word   string // stemmed
	rarity float64
	near   []string // synonyms that some document holds
	longer []string // words of which it is the beginning
}

// What a match that is not the word itself counts.
const (
	bySynonym     = 0.6
	sureBySynonym = 0.8 // that it is meant is surer than that it is best
	byBeginning   = 0.5
	// shortestBeginning is how many letters say which word is begun.
	shortestBeginning = 4
)

// terms reads a query. Neighbours that a tool writes as one word are one.
func (x *index) terms(query string) []term {
	words := stems(query)
	if len(words) == 0 {
		words = split(query) // nothing but common words: then they are meant
	}
	words = x.joined(words[:min(len(words), maxTerms)])
	var out []term
	for i, w := range words {
		if !slices.Contains(words[:i], w) {
			out = append(out, x.term(w))
		}
	}
	return out
}

func (x *index) joined(words []string) (out []string) {
	for i := 0; i < len(words); i++ {
		if i+1 < len(words) {
			if both := stem(words[i] + words[i+1]); x.df[both] > 0 {
				out = append(out, both)
				i++
				continue
			}
		}
		out = append(out, words[i])
	}
	return out
}

func (x *index) term(w string) term {
	t := term{word: w, rarity: x.rarity(x.df[w])}
	for _, s := range synonyms()[w] {
		if x.df[s] > 0 {
			t.near = append(t.near, s)
		}
	}
	if x.df[w] > 0 || len(w) < shortestBeginning {
		return t
	}
	for long := range x.df {
		if strings.HasPrefix(long, w) {
			t.longer = append(t.longer, long)
		}
	}
	slices.Sort(t.longer)
	return t
}

// match is how well a document answers a term: its score, and from 0 to 1 how
// surely the term is meant by it.
func (x *index) match(d *document, t term) (score, sure float64) {
	consider := func(w string, factor, certainty float64) {
		s := x.strength(d, w)
		if s == 0 {
			return
		}
		score = max(score, factor*s*x.rarity(x.df[w]))
		sure = max(sure, certainty*d.certainty(w))
	}
	consider(t.word, 1, 1)
	for _, w := range t.near {
		consider(w, bySynonym, sureBySynonym)
	}
	for _, w := range t.longer {
		if at := d.words[w]; at != nil && at[inName]+at[inSummary] > 0 {
			consider(w, byBeginning, byBeginning)
		}
	}
	return score, sure
}

// certainty is less for a word that only stands deep in a description or
// names a parameter.
func (d *document) certainty(w string) float64 {
	if at := d.words[w]; at[inName]+at[inServer]+at[inSummary] > 0 {
		return 1
	}
	return 0.5
}

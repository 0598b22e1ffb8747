package catalogue

import (
	"slices"
	"strings"
	"unicode"
)

// maxCompared bounds the length, in characters, of names that are compared.
const maxCompared = 64

// Nearest returns up to n of names that a writer of word may have meant, the
// best first; ties keep their order.
func Nearest(word string, names []string, n int) []string {
	type scored struct {
		name string
		cost int
	}
	var close []scored
	for _, name := range names {
		if cost, ok := similar(fold(word), fold(name)); ok {
			close = append(close, scored{name, cost})
		}
	}
	slices.SortStableFunc(close, func(a, b scored) int { return a.cost - b.cost })
	var out []string
	for _, s := range close[:min(n, len(close))] {
		out = append(out, s.name)
	}
	return out
}

// Nearest returns up to n of the tool's parameters that a writer of word may
// have meant.
func (t Tool) Nearest(word string, n int) []string {
	names := make([]string, len(t.Params))
	for i, p := range t.Params {
		names[i] = p.Name
	}
	return Nearest(word, names, n)
}

// fold drops what models confuse: case and separators.
func fold(s string) []rune {
	out := make([]rune, 0, len(s))
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			out = append(out, unicode.ToLower(r))
		}
	}
	return out[:min(len(out), maxCompared)]
}

// similar is the cost of taking b for a: edits, or 1 for a part of the other.
func similar(a, b []rune) (cost int, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		return 0, false
	}
	cost = edits(a, b)
	if cost*3 <= max(len(a), len(b)) {
		return cost, true
	}
	short, long := min(len(a), len(b)), max(len(a), len(b))
	if short >= 3 && long <= 4*short && (strings.Contains(string(a), string(b)) || strings.Contains(string(b), string(a))) {
		return cost, true
	}
	return 0, false
}

// edits is the Levenshtein distance.
func edits(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, ra := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, rb := range b {
			keep := diagonal
			if ra != rb {
				keep++
			}
			diagonal = row[j+1]
			row[j+1] = min(keep, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

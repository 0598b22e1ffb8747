package catalogue

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Hint is what a server seems to be for, by the words that its tools' names
// are made of: the most frequent first, in at most so many characters.
func Hint(server string, tools iter.Seq[Tool], chars int) string {
	own := map[string]bool{}
	for _, w := range split(server) {
		own[stem(w)] = true
	}
	count := map[string]int{} // stem → how often
	var order []string        // the stems as they first came
	word := map[string]string{}
	for t := range tools {
		for _, w := range split(t.Name) {
			s := stem(w)
			if !says(w) || own[s] {
				continue
			}
			if count[s]++; count[s] == 1 {
				order, word[s] = append(order, s), w
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return count[b] - count[a] })
	for i, s := range order {
		order[i] = word[s]
	}
	return Fit(order, chars)
}

// Fit joins as many of the words, from the first on, as fit.
func Fit(words []string, chars int) string {
	text := ""
	for i, w := range words {
		next := w
		if i > 0 {
			next = text + ", " + w
		}
		if utf8.RuneCountInString(next) > chars {
			return text
		}
		text = next
	}
	return strings.TrimSpace(text)
}

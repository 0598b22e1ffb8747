package catalogue

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed synonyms.txt
var synonymText string

// synonyms gives, for a stem, the stems that mean nearly the same, sorted.
var synonyms = sync.OnceValue(func() map[string][]string { return readSynonyms(synonymText) })

func readSynonyms(text string) map[string][]string {
	near := map[string][]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		set := strings.Fields(line)
		for i, w := range set {
			set[i] = stem(w)
		}
		for _, w := range set {
			for _, other := range set {
				if other != w && !slices.Contains(near[w], other) {
					near[w] = append(near[w], other)
				}
			}
		}
	}
	for _, list := range near {
		slices.Sort(list)
	}
	return near
}

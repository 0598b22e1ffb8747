package shape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// MaxIntent is how many characters of an intent are read.
const MaxIntent = 200

// Bounds of what an intent shows, in characters.
const (
	chunkChars  = 1_500
	intentChars = 6_000
	searchTerms = 12
)

// intent shows the chunks of a text that match what the model looks for, in
// their order, and words to search the archive by. Where nothing matches, or
// that would be no shorter than the text, what the ladder made stays.
func (l *Ladder) intent(text, intent string, r Result) Result {
	wanted := terms(first(intent, MaxIntent))
	list := chunks(strings.ToValidUTF8(text, "\uFFFD"))
	found := best(list, wanted)
	if len(found) == 0 {
		return r
	}
	var b strings.Builder
	for _, i := range found {
		fmt.Fprintf(&b, "[chunk %d/%d]\n%s\n", i+1, len(list), strings.TrimSuffix(list[i], "\n"))
	}
	fmt.Fprintf(&b, "searchable terms: %s", strings.Join(common(list, wanted), ", "))
	out := b.String()
	if n := chars(out); n < r.Of {
		r.Text, r.Rule, r.Shown = out, RuleIntent, n
	}
	return r
}

// chunks cuts a text at line ends into parts of about chunkChars characters,
// and a longer line within.
func chunks(text string) []string {
	var list []string
	start, n := 0, 0
	flush := func(end int) {
		if end > start {
			list = append(list, text[start:end])
		}
		start, n = end, 0
	}
	at := 0
	for line := range strings.Lines(text) {
		size := chars(line)
		if n > 0 && n+size > chunkChars {
			flush(at)
		}
		for size > chunkChars {
			piece := first(line, chunkChars)
			at += len(piece)
			line, size = line[len(piece):], size-chunkChars
			flush(at)
		}
		at, n = at+len(line), n+size
	}
	flush(len(text))
	return list
}

// best picks the chunks that match, the best ones first until enough is
// shown, and gives them in the text's order.
func best(list []string, wanted []string) []int {
	type scored struct {
		chunk int
		score float64
	}
	var found []scored
	for i, s := range scores(list, wanted) {
		if s > 0 {
			found = append(found, scored{i, s})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var picked []int
	left := intentChars
	for _, f := range found {
		if left -= chars(list[f.chunk]); left < 0 && len(picked) > 0 {
			break
		}
		picked = append(picked, f.chunk)
	}
	slices.Sort(picked)
	return picked
}

// scores weighs each chunk by the wanted terms it holds: a rare one counts more.
func scores(list []string, wanted []string) []float64 {
	has := make([][]int, len(list))
	in := make([]int, len(wanted))
	for i, chunk := range list {
		has[i] = make([]int, len(wanted))
		for word := range words(chunk) {
			for t, term := range wanted {
				if has[i][t] < 3 && matches(word, term) {
					if has[i][t]++; has[i][t] == 1 {
						in[t]++
					}
				}
			}
		}
	}
	out := make([]float64, len(list))
	for i := range list {
		for t, n := range has[i] {
			if n > 0 {
				out[i] += (1 + math.Log(float64(n))) * math.Log(1+float64(len(list))/float64(in[t]))
			}
		}
	}
	return out
}

// matches compares a text's word with a term: one begins with the other.
func matches(word, term string) bool {
	if len(word) < len(term) {
		return len(word) >= 4 && foldPrefix(term, word)
	}
	return foldPrefix(word, term)
}

func foldPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// words goes through the words of a text, of two characters and more.
func words(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if len(w) >= 2 && !yield(w) {
				return
			}
		}
	}
}

// fillers are words that say nothing of what is looked for.
var fillers = strings.Fields("the and for with from that this what which where when who how why are was were is in on of to at by an it as be do does did " +
	"has have had can all any not find get show look see tell me my want need only about into there their its if or")

// terms are an intent's words in lower case, cut to their stems, each once.
func terms(intent string) []string {
	var list []string
	for w := range words(intent) {
		w = strings.ToLower(w)
		if slices.Contains(fillers, w) {
			continue
		}
		if w = stem(w); !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

func stem(w string) string {
	for _, end := range []string{"ings", "ing", "ies", "ed", "es", "s"} {
		if s, ok := strings.CutSuffix(w, end); ok && len(s) >= 4 {
			return s
		}
	}
	return w
}

// maxTerms bounds how many words are told apart when the common ones are sought.
const maxTerms = 10_000

// common are words to search by: those that many chunks hold, yet not all, and
// that were not asked for.
func common(list []string, wanted []string) []string {
	in := map[string]int{}
	for _, chunk := range list {
		once := map[string]bool{}
		for w := range words(chunk) {
			w = strings.ToLower(w)
			if len(w) < 4 || len(w) > 40 || once[w] || slices.Contains(fillers, w) || unicode.IsDigit(rune(w[0])) {
				continue
			}
			once[w] = true
			if _, known := in[w]; known || len(in) < maxTerms {
				in[w]++
			}
		}
	}
	all := make([]string, 0, len(in))
	for w, n := range in {
		asked := slices.ContainsFunc(wanted, func(t string) bool { return matches(w, t) })
		if !asked && (n < len(list) || len(list) < 3) {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(in[b], in[a]), strings.Compare(a, b))
	})
	return all[:min(len(all), searchTerms)]
}

package catalogue

import "strings"

// stem is the Porter stem of a lower-case English word (M. F. Porter, "An
// algorithm for suffix stripping", 1980). Other words pass nearly as they are.
func stem(w string) string {
	if len(w) < 3 || !ascii(w) {
		return w
	}
	w = plural(w)
	w = participle(w)
	if y, ok := strings.CutSuffix(w, "y"); ok && hasVowel(y) {
		w = y + "i"
	}
	for _, rules := range [][]rule{derived, derivedFurther, ending} {
		w = applyFirst(w, rules)
	}
	return finish(w)
}

func ascii(w string) bool {
	for i := range len(w) {
		if w[i] < 'a' || w[i] > 'z' {
			return false
		}
	}
	return true
}

// rule replaces a suffix where what stands before it has at least a measure.
type rule struct {
	suffix, with string
	measure      int
}

// The tables of steps 2, 3 and 4. Of each, the first suffix that fits counts,
// so that longer ones stand before those they end in.
var (
	derived = []rule{
		{"ational", "ate", 1}, {"tional", "tion", 1}, {"enci", "ence", 1}, {"anci", "ance", 1}, {"izer", "ize", 1},
		{"bli", "ble", 1}, {"alli", "al", 1}, {"entli", "ent", 1}, {"eli", "e", 1}, {"ousli", "ous", 1},
		{"ization", "ize", 1}, {"ation", "ate", 1}, {"ator", "ate", 1}, {"alism", "al", 1}, {"iveness", "ive", 1},
		{"fulness", "ful", 1}, {"ousness", "ous", 1}, {"aliti", "al", 1}, {"iviti", "ive", 1}, {"biliti", "ble", 1},
	}
	derivedFurther = []rule{
		{"icate", "ic", 1}, {"ative", "", 1}, {"alize", "al", 1}, {"iciti", "ic", 1}, {"ical", "ic", 1}, {"ful", "", 1}, {"ness", "", 1},
	}
	ending = []rule{
		{"al", "", 2}, {"ance", "", 2}, {"ence", "", 2}, {"er", "", 2}, {"ic", "", 2}, {"able", "", 2}, {"ible", "", 2},
		{"ant", "", 2}, {"ement", "", 2}, {"ment", "", 2}, {"ent", "", 2}, {"ion", "", 2}, {"ou", "", 2},
		{"ism", "", 2}, {"ate", "", 2}, {"iti", "", 2}, {"ous", "", 2}, {"ive", "", 2}, {"ize", "", 2},
	}
)

func applyFirst(w string, rules []rule) string {
	for _, r := range rules {
		head, ok := strings.CutSuffix(w, r.suffix)
		if !ok || r.suffix == "ion" && !strings.HasSuffix(head, "s") && !strings.HasSuffix(head, "t") {
			continue
		}
		if measure(head) >= r.measure {
			return head + r.with
		}
		return w
	}
	return w
}

// plural is step 1a.
func plural(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"):
		return w
	}
	return strings.TrimSuffix(w, "s")
}

// participle is step 1b.
func participle(w string) string {
	if head, ok := strings.CutSuffix(w, "eed"); ok {
		if measure(head) > 0 {
			return head + "ee"
		}
		return w
	}
	head, ok := strings.CutSuffix(w, "ed")
	if !ok {
		head, ok = strings.CutSuffix(w, "ing")
	}
	if !ok || !hasVowel(head) {
		return w
	}
	switch {
	case strings.HasSuffix(head, "at"), strings.HasSuffix(head, "bl"), strings.HasSuffix(head, "iz"):
		return head + "e"
	case doubled(head) && !strings.ContainsAny(head[len(head)-1:], "lsz"):
		return head[:len(head)-1]
	case measure(head) == 1 && short(head):
		return head + "e"
	}
	return head
}

// finish is step 5.
func finish(w string) string {
	if head, ok := strings.CutSuffix(w, "e"); ok {
		if m := measure(head); m > 1 || m == 1 && !short(head) {
			w = head
		}
	}
	if measure(w) > 1 && strings.HasSuffix(w, "ll") {
		w = w[:len(w)-1]
	}
	return w
}

// vowel says whether the letter at i is one; y is, after a consonant.
func vowel(w string, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return true
	case 'y':
		return i > 0 && !vowel(w, i-1)
	}
	return false
}

func hasVowel(w string) bool {
	for i := range len(w) {
		if vowel(w, i) {
			return true
		}
	}
	return false
}

// measure counts the vowels that a consonant follows: the m of [C](VC)^m[V].
func measure(w string) (m int) {
	for i := 1; i < len(w); i++ {
		if vowel(w, i-1) && !vowel(w, i) {
			m++
		}
	}
	return m
}

func doubled(w string) bool {
	n := len(w)
	return n >= 2 && w[n-1] == w[n-2] && !vowel(w, n-1)
}

// short says whether w ends as hop or fil do: consonant, vowel, and a
// consonant that is no w, x or y.
func short(w string) bool {
	n := len(w)
	return n >= 3 && !vowel(w, n-3) && vowel(w, n-2) && !vowel(w, n-1) && !strings.ContainsAny(w[n-1:], "wxy")
}

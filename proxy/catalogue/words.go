package catalogue

import (
	"strings"
	"unicode"
)

// split cuts a name or a sentence into lower-case words: at everything that is
// neither letter nor digit, at changes of case (camelCase, HTTPServer), and
// around every character of a script that is written without spaces.
func split(s string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	text := []rune(s)
	for i, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			word = append(word, r)
			end()
			continue
		case len(word) > 0 && newWord(text, i):
			end()
		}
		word = append(word, r)
	}
	end()
	return out
}

// newWord says whether a word begins at i by its case.
func newWord(text []rune, i int) bool {
	if !unicode.IsUpper(text[i]) {
		return false
	}
	return unicode.IsLower(text[i-1]) ||
		unicode.IsUpper(text[i-1]) && i+1 < len(text) && unicode.IsLower(text[i+1]) && !(text[i+1] == 's' && last(text, i+1))
}

// last says whether a word ends at i: the s of URLs begins no word.
func last(text []rune, i int) bool { return i+1 == len(text) || !unicode.IsLetter(text[i+1]) }

// stems are the words of s that say something, stemmed.
func stems(s string) []string {
	var out []string
	for _, w := range split(s) {
		if !says(w) {
			continue
		}
		out = append(out, stem(w))
	}
	return out
}

func says(w string) bool { return !tooCommon[w] && (len(w) > 1 || w[0] >= 0x80) }

// tooCommon are words that say nothing about what a tool does. In a query they
// stand around what is asked for.
var tooCommon = wordSet(`
a about after again all already also am an and any anybody anyone anything are around as at away be because been before being but by
can cannot could did do does doing done down during each either else every everything for from had has have having he her here hers him
his how i if in into is it its itself just kind let lets like may maybe me might mine more most much must my need needs no not now of off
often on one onto or other others our ours out over please quickly quite rather really s same shall she should simply since so some
somebody someone something sort still such t than that the their theirs them then there these they thing things this those through to
too tool tools under until up upon us use used useful using very today tomorrow tonight yesterday via want wants was way we well were what whatever when where
whether which while who whom whose why will with within without would you your yours
`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

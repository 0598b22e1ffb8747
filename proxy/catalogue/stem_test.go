package catalogue

import (
	"slices"
	"strings"
	"testing"
)

func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		// Examples of the paper's own steps.
		"caresses": "caress", "ponies": "poni", "cats": "cat", "agreed": "agre", "plastered": "plaster", "motoring": "motor", "sing": "sing",
		"conflated": "conflat", "hopping": "hop", "falling": "fall", "filing": "file", "happy": "happi", "sky": "sky",
		"relational": "relat", "rational": "ration", "digitizer": "digit", "operator": "oper", "hopefulness": "hope",
		"triplicate": "triplic", "electrical": "electr", "revival": "reviv", "replacement": "replac", "adoption": "adopt", "irritant": "irrit",
		"probate": "probat", "rate": "rate", "controll": "control", "roll": "roll",
		// Other scripts, digits and the shortest words pass.
		"läuft": "läuft", "n8n": "n8n", "as": "as", "": "",
	} {
		if got := stem(word); got != want {
			t.Errorf("stem(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestWordFamiliesMeet(t *testing.T) {
	for _, family := range []string{"create creates created creating", "list lists listed listing", "file files",
		"navigate navigates navigation", "directory directories", "query queries querying", "delete deleted deletion deleting",
		"validate validation validates", "repository repositories", "observe observed observes"} {
		words := strings.Fields(family)
		for _, w := range words[1:] {
			if stem(w) != stem(words[0]) {
				t.Errorf("%s is %s, %s is %s", words[0], stem(words[0]), w, stem(w))
			}
		}
	}
}

func TestSplit(t *testing.T) {
	for name, want := range map[string]string{
		"read_text_file": "read text file", "get-sum": "get sum", "listDirectories": "list directories", "HTTPServer.getURLs": "http server get urls",
		"a.b/c:d": "a b c d", "query2": "query2", "検索ファイル": "検 索 フ ァ イ ル", "": "", "__": "", "X": "x", "Über_maß": "über maß", "\xff\xfe": "",
	} {
		if got := strings.Join(split(name), " "); got != want {
			t.Errorf("split(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSynonymsAreMutual(t *testing.T) {
	for w, list := range synonyms() {
		if !slices.IsSorted(list) || slices.Contains(list, w) {
			t.Errorf("%s: %v", w, list)
		}
		for _, other := range list {
			if !slices.Contains(synonyms()[other], w) {
				t.Errorf("%s names %s, but not the other way", w, other)
			}
		}
	}
	if !slices.Contains(synonyms()[stem("persist")], stem("save")) {
		t.Error("persist does not lead to save")
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("HTTPServers_list-9")
	f.Add("日本語\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, w := range split(s) {
			if w == "" || strings.ContainsAny(w, " _-.") {
				t.Fatalf("word %q of %q", w, s)
			}
			stem(w)
		}
	})
}

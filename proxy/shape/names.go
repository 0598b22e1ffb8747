package shape

import (
	"slices"
	"strings"
	"unicode"
)

// Words by which a tool's name says that it answers with a file's text.
var (
	fileVerbs = []string{"read", "get", "view", "open", "show", "cat", "fetch", "load", "download"}
	fileNouns = []string{"file", "files"}
	// With one of these it answers with something about a file.
	aboutWords = []string{"info", "infos", "information", "list", "listing", "tree", "size", "sizes", "status", "stat", "stats", "search",
		"history", "metadata", "meta", "type", "types", "name", "names", "path", "paths", "diff", "diffs", "changes", "commits",
		"permissions", "url", "link", "links", "count", "hash", "symbols", "references", "outline", "problems", "diagnostics", "dependencies"}
)

// fileText says that a tool is named as if it answered with the text of files:
// read_file, read_text_file, get_file_contents, viewFile.
func fileText(tool string) bool {
	words := nameWords(tool)
	has := func(list []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	return has(fileVerbs) && has(fileNouns) && !has(aboutWords)
}

// nameWords splits a tool's name at what is no letter or digit and where
// camelCase begins a word; the words are in lower case.
func nameWords(name string) []string {
	var words []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			lower = false
			continue
		case unicode.IsUpper(r) && lower:
			flush()
		}
		lower = unicode.IsLower(r)
		word.WriteRune(unicode.ToLower(r))
	}
	flush()
	return words
}

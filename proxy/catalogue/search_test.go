package catalogue

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// shop is a catalogue of a server's tools, each "name: description".
func shop(server string, tools ...string) Server {
	var defs []json.RawMessage
	for _, t := range tools {
		name, description, _ := strings.Cut(t, ": ")
		defs = append(defs, json.RawMessage(fmt.Sprintf(`{"name":%q,"description":%q}`, name, description)))
	}
	return Server{Name: server, State: Up, Tools: ReadTools(server, defs)}
}

func found(c *Catalogue, query string) string {
	var names []string
	for _, t := range c.Hits(query, 3) {
		names = append(names, t.Server+"."+t.Name)
	}
	return strings.Join(names, " ")
}

func TestSearchFinds(t *testing.T) {
	c := New([]Server{
		shop("notes", "add_note: Append a note to the notebook", "drop_note: Remove a note for good", "notebookExport: Write the notebook to disk"),
		shop("web.one", "goto: Navigate the browser to a URL", "take_screenshot: Capture the current page as an image", "检索: 全文检索"),
	}, Options{})
	for query, want := range map[string]string{
		"add_note":        "notes.add_note",                                  // its name
		"addNote":         "notes.add_note",                                  // written otherwise
		"notes.add_note":  "notes.add_note",                                  // with the server
		"persist a memo":  "notes.add_note",                                  // by synonyms alone
		"deleting notes":  "notes.drop_note",                                 // by a stem and a synonym
		"screen shot":     "web.one.take_screenshot",                         // two words for one
		"screensh":        "web.one.take_screenshot",                         // a beginning
		"notebook export": "notes.notebookExport",                            // camelCase
		"检索":              "web.one.检索",                                      // no Latin letters
		"the":             "",                                                // nothing that says anything
		"":                "",                                                //
		"???":             "",                                                //
		"order a pizza":   "",                                                //
		"web.one":         "web.one.goto web.one.take_screenshot web.one.检索", // a server with a dot
	} {
		got := found(c, query)
		if first, _, _ := strings.Cut(got, " "); got != want && first != want {
			t.Errorf("%q finds %q, want %q first", query, got, want)
		}
	}
}

func TestNothingMatches(t *testing.T) {
	c := New([]Server{files(), odd()}, Options{})
	text, next, err := c.Search("feed the cat", "", 0)
	if err != nil || !strings.HasPrefix(text, `no tools match "feed the cat". Servers: files, odd.one.`) || next == "" {
		t.Errorf("answered %q, %q, %v", text, next, err)
	}
}

// Which word comes first in a definition's maps must not show.
func TestSameRankingEachTime(t *testing.T) {
	servers := []Server{files(), odd(), shop("n", "add_note: Append a note", "add_tag: Append a tag", "add_link: Append a link")}
	first := found(New(servers, Options{}), "append something to a text file")
	for range 50 {
		if again := found(New(servers, Options{}), "append something to a text file"); again != first {
			t.Fatalf("%q, then %q", first, again)
		}
	}
}

// A query as long as a book costs no more than its beginning.
func TestLongQuery(t *testing.T) {
	c := New([]Server{files()}, Options{})
	if got := found(c, "read file "+strings.Repeat("read file ", 1<<18)); !strings.HasPrefix(got, "files.read_text_file") {
		t.Errorf("found %q", got)
	}
}

func FuzzSearch(f *testing.F) {
	c := New([]Server{files(), odd()}, Options{})
	for _, q := range []string{"read file", "...", "läuft", "\xff", "检", "a.b/c:d"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		first := found(c, q)
		if again := found(c, q); again != first {
			t.Fatalf("%q finds %s, then %s", q, first, again)
		}
	})
}

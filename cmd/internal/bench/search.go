package bench

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toolguardian/proxy/catalogue"
)

//go:embed queries
var queries embed.FS

// SearchOptions of Search.
type SearchOptions struct {
	Catalogs string // folder with the recorded catalogues; those below reference/ are the seven
	Queries  string // a file of queries over all of them; empty: the built-in ones
}

// SearchReport tells which queries a search answers.
type SearchReport struct {
	Sets []QuerySet `json:"sets"`
	Aims []Aim      `json:"aims"`
}

// QuerySet is one file of queries over some catalogues.
type QuerySet struct {
	Name    string       `json:"name"`
	Servers int          `json:"servers"`
	Tools   int          `json:"tools"`
	Kinds   []QueryCount `json:"kinds"`
	Recall  float64      `json:"recallAt3"` // percent of the queries answered, as the reference counts
	Missed  []MissedOne  `json:"missed"`
}

// QueryCount is how many queries of a kind were answered.
type QueryCount struct {
	Kind string `json:"kind"`
	Hits int    `json:"hits"`
	Of   int    `json:"of"`
}

// MissedOne is a query whose tool is not in the first three lines, or one that
// should list nothing and does.
type MissedOne struct {
	Kind  string   `json:"kind"`
	Query string   `json:"query"`
	Want  []string `json:"want"` // empty: nothing
	Got   []string `json:"got"`  // the first three
}

const firstLines = 3

// Search counts how many queries are answered by keyword search alone. A query
// counts when an expected tool is in the first three lines or, where nothing
// is expected, when nothing is listed.
func Search(o SearchOptions) (r SearchReport, err error) {
	if o.Queries != "" {
		text, err := os.ReadFile(o.Queries)
		if err != nil {
			return r, err
		}
		s, err := querySet(filepath.Base(o.Queries), string(text), o.Catalogs)
		r.Sets = []QuerySet{s}
		return r, err
	}
	for _, b := range []struct{ name, file, dir string }{
		{"the seven reference catalogues", "queries/seven.txt", filepath.Join(o.Catalogs, "reference")},
		{"all recorded catalogues", "queries/all.txt", o.Catalogs},
	} {
		text, err := queries.ReadFile(b.file)
		if err != nil {
			return r, err
		}
		s, err := querySet(b.name, string(text), b.dir)
		if err != nil {
			return r, err
		}
		r.Sets = append(r.Sets, s)
		r.Aims = append(r.Aims, atLeast("recall@3 without a model, "+b.name, s.Recall, 75, "%"))
	}
	return r, nil
}

func querySet(name, text, dir string) (s QuerySet, err error) {
	all, err := readCatalogs(dir)
	if err != nil {
		return s, err
	}
	list, err := parseQueries(text)
	if err != nil {
		return s, fmt.Errorf("%s: %w", name, err)
	}
	s = QuerySet{Name: name, Servers: len(all), Missed: []MissedOne{}}
	var servers []catalogue.Server
	known := map[string]bool{}
	for _, r := range all {
		tools := catalogue.ReadTools(r.name, r.list)
		servers = append(servers, catalogue.Server{Name: r.name, State: catalogue.Up, Tools: tools})
		for t := range tools.All() {
			known[t.Server+"."+t.Name] = true
			s.Tools++
		}
	}
	for _, q := range list {
		for _, w := range q.want {
			if !known[w] {
				return s, fmt.Errorf("%s: query %q expects %s, which is in no catalogue", name, q.text, w)
			}
		}
	}
	s.ask(catalogue.New(servers, catalogue.Options{}), list)
	return s, nil
}

func (s *QuerySet) ask(c *catalogue.Catalogue, list []query) {
	hits := 0
	for _, q := range list {
		got := []string{}
		for _, t := range c.Hits(q.text, firstLines) {
			got = append(got, t.Server+"."+t.Name)
		}
		at := slices.IndexFunc(s.Kinds, func(k QueryCount) bool { return k.Kind == q.kind })
		if at < 0 {
			at, s.Kinds = len(s.Kinds), append(s.Kinds, QueryCount{Kind: q.kind})
		}
		s.Kinds[at].Of++
		if q.answeredBy(got) {
			s.Kinds[at].Hits++
			hits++
			continue
		}
		s.Missed = append(s.Missed, MissedOne{q.kind, q.text, q.want, got})
	}
	s.Recall = 100 * ratio(float64(hits), float64(len(list)))
}

type query struct {
	kind, text string
	want       []string // empty: nothing
}

func (q query) answeredBy(got []string) bool {
	if len(q.want) == 0 {
		return len(got) == 0
	}
	return slices.ContainsFunc(got, func(g string) bool { return slices.Contains(q.want, g) })
}

// parseQueries reads lines `QUERY => server.tool, server.tool`; without => it
// should list nothing. `[kind]` begins a kind, # a comment.
func parseQueries(text string) (list []query, err error) {
	kind := "queries"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && strings.HasSuffix(line, "]"):
			kind = line[1 : len(line)-1]
		default:
			q := query{kind: kind, want: []string{}}
			text, want, expects := strings.Cut(line, "=>")
			q.text = strings.TrimSpace(text)
			for _, w := range strings.Split(want, ",") {
				if w = strings.TrimSpace(w); w != "" {
					q.want = append(q.want, w)
				}
			}
			if q.text == "" || expects && len(q.want) == 0 {
				return nil, fmt.Errorf("line %q: write QUERY => server.tool, or QUERY alone where nothing should be listed", line)
			}
			list = append(list, q)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("there are no queries in it")
	}
	return list, nil
}

// WriteText renders the report for people.
func (r SearchReport) WriteText(w io.Writer) error {
	p := newPage(w, thisMachine(), "search: queries answered by words alone, expected tool in the first three lines")
	for _, s := range r.Sets {
		p.line("%s: servers %d, tools %d", s.Name, s.Servers, s.Tools)
		for _, k := range s.Kinds {
			p.line("%s\t%d of %d", k.Kind, k.Hits, k.Of)
		}
		p.line("recall@3\t%.1f %%", s.Recall)
		for _, m := range s.Missed {
			want := strings.Join(m.Want, ", ")
			if want == "" {
				want = "nothing"
			}
			p.line("missed: %q wants %s; got %s", m.Query, want, strings.Join(m.Got, ", "))
		}
		p.line("")
	}
	return p.aims(r.Aims)
}

package witness

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

//go:embed page
var pageFiles embed.FS

const typeHTML = "text/html; charset=utf-8"

// page is what one web page shows, read from one snapshot. One of the parts
// below is there.
type page struct {
	Title  string
	Root   string // from the page to /
	Style  template.CSS
	Origin string // of the log
	Size   uint64 // of the checkpoint that everything is as of
	Now    time.Time
	Query  string // in the search field

	Overview *overview
	Chain    *chainPage
	Leaf     *leafPage
	Search   *searchPage
}

// pages are the parsed templates. Everything is inline, so that a saved page is
// whole, and the policy names the one style sheet by its hash.
type pages struct {
	layout *template.Template
	style  template.CSS
	policy string // Content-Security-Policy
}

func loadPages() (pages, error) {
	css, err := pageFiles.ReadFile("page/style.css")
	if err != nil {
		return pages{}, err
	}
	layout, err := template.New("layout.html").Funcs(pageWords()).ParseFS(pageFiles, "page/*.html")
	sum := sha256.Sum256(css)
	return pages{layout, template.CSS(css), "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"}, err
}

// pageRoutes are the pages for people.
func (s *Server) pageRoutes(mux *http.ServeMux) {
	load := sync.OnceValues(loadPages)
	handle := func(pattern string, fill func(*page, published, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ps, err := load()
			if err != nil {
				s.refuse(w, r, err)
				return
			}
			s.servePage(w, r, ps, fill)
		})
	}
	handle("GET /{$}", s.fillOverview)
	handle("GET /chain/{hash}", s.fillChain)
	handle("GET /leaf/{index}", s.fillLeaf)
	handle("GET /search", s.fillSearch)
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request, ps pages, fill func(*page, published, *http.Request) error) {
	doc := page{Style: ps.style, Origin: s.origin, Now: s.o.Now().UTC(), Root: strings.Repeat("../", strings.Count(r.URL.Path, "/")-1)}
	if doc.Root == "" {
		doc.Root = "./"
	}
	err := s.read(func(p published) error {
		doc.Size = p.size
		return fill(&doc, p, r)
	})
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	var body bytes.Buffer
	if err == nil {
		err = ps.layout.Execute(&body, doc)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Security-Policy", ps.policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	send(w, typeHTML, cacheNever, body.Bytes())
}

// pageWords are how the templates write values.
func pageWords() template.FuncMap {
	return template.FuncMap{
		"when":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"span":    spanWords,
		"number":  numberWords,
		"visible": visible,
		"label":   func(origin string) string { return visible(splitOrigin(origin).label) },
		"id":      func(origin string) string { return visible(splitOrigin(origin).id) },
		"hash":    func(origin string) string { return fmt.Sprintf("%x", originKey(origin)) },
		"plural":  plural,
	}
}

// spanWords writes a duration with its two largest units: 3 d 4 h.
func spanWords(d time.Duration) string {
	if d < time.Second {
		return "0 s"
	}
	units := []struct {
		name string
		of   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}, {"s", time.Second}}
	for i, u := range units {
		n, rest := d/u.of, d%u.of
		if n == 0 {
			continue
		}
		words := fmt.Sprintf("%d\u00a0%s", n, u.name)
		if i+1 < len(units) && n < 10 && rest/units[i+1].of > 0 {
			words += fmt.Sprintf(" %d\u00a0%s", rest/units[i+1].of, units[i+1].name)
		}
		return words
	}
	return "0 s"
}

// numberWords groups the digits: 1,234,567.
func numberWords(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return numberWords(uint64(n)) + " " + many
}

// visible writes out the characters of a name that nobody sees, or that turn
// the text around them.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "⟨%U⟩", r)
		}
	}
	return b.String()
}

type originParts struct{ label, id string }

// splitOrigin parts `<label>/c/<32 hex>`.
func splitOrigin(origin string) originParts {
	if i := strings.LastIndex(origin, "/c/"); i >= 0 && api.IsChainOrigin(origin) {
		return originParts{origin[:i], origin[i+len("/c/"):]}
	}
	return originParts{label: origin}
}

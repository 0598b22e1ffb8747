package witness

import (
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"
	"strings"
)

// guarded asks readers for the token where one is set. Writes bring their own
// proof of who sends them, and a probe knows no token.
func (s *Server) guarded(next http.Handler) http.Handler {
	if s.o.ReadToken == "" {
		return next
	}
	want := sha256.Sum256([]byte("Bearer " + s.o.ReadToken))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := r.Method == http.MethodPost || r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if !open && subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			askForToken(w)
			return
		}
		if !open {
			w = private{w}
		}
		next.ServeHTTP(w, r)
	})
}

func askForToken(w http.ResponseWriter) {
	h := w.Header()
	h.Set("WWW-Authenticate", `Bearer realm="witness"`)
	h.Set("Content-Type", typeText)
	h.Set("Cache-Control", cacheNever)
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(http.StatusUnauthorized)
	io.WriteString(w, "reading this witness needs its read token: send Authorization: Bearer TOKEN\n")
}

// private keeps shared caches from handing to strangers what only the holder
// of the token may read.
type private struct{ http.ResponseWriter }

func (p private) WriteHeader(status int) {
	p.mark()
	p.ResponseWriter.WriteHeader(status)
}

func (p private) Write(b []byte) (int, error) {
	p.mark()
	return p.ResponseWriter.Write(b)
}

func (p private) mark() {
	h := p.Header()
	h.Set("Cache-Control", strings.Replace(h.Get("Cache-Control"), "public", "private", 1))
}

package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/witness/api"
)

// A witness that accepts and never answers, answers a byte at a time, or points
// elsewhere ends the call in bounded time.
func TestWitnessThatNeverAnswers(t *testing.T) {
	ended := make(chan struct{})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer elsewhere.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"silence": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-ended:
			case <-r.Context().Done():
			}
		},
		"drip": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100000")
			for r.Context().Err() == nil {
				w.Write([]byte("x"))
				w.(http.Flusher).Flush()
				select {
				case <-ended:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(answer)
			defer web.Close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err := anchor.Fetch(ctx, api.New(web.URL, witnessClient(200*time.Millisecond)), web.URL, "agents.invalid/c/x", 0)
			if err == nil || ctx.Err() != nil {
				t.Errorf("error %v, context %v", err, ctx.Err())
			}
			if name == "elsewhere" && !strings.Contains(err.Error(), "points elsewhere") {
				t.Error(err)
			}
		})
	}
	close(ended)
}

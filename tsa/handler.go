package tsa

import (
	"errors"
	"io"
	"mime"
	"net/http"
)

// Media types of RFC 3161 section 3.4.
const (
	queryType = "application/timestamp-query"
	replyType = "application/timestamp-reply"
)

// Handler answers POSTed requests on every path. A request that was understood
// as one is answered with status 200 and DER, refusals included; anything else
// with 405, 413 or 415 and a line of text.
func (a *Authority) Handler() http.Handler { return http.HandlerFunc(a.serve) }

func (a *Authority) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send a timestamp request by POST", http.StatusMethodNotAllowed)
		return
	}
	if !isMedia(r.Header.Get("Content-Type"), queryType) {
		http.Error(w, "send content type "+queryType, http.StatusUnsupportedMediaType)
		return
	}
	request, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		refuseBody(w, err)
		return
	}
	response, err := a.Issue(r.Context(), request)
	if err != nil {
		return // the requester is gone
	}
	w.Header().Set("Content-Type", replyType)
	w.Header().Set("Cache-Control", "no-store")
	w.Write(response)
}

func refuseBody(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		http.Error(w, "a timestamp request is smaller", http.StatusRequestEntityTooLarge)
		return
	}
	http.Error(w, "the request ended early", http.StatusBadRequest)
}

// isMedia compares without parameters.
func isMedia(header, want string) bool {
	got, _, err := mime.ParseMediaType(header)
	return (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) && got == want
}

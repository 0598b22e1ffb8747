package witness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"toolguardian/witness/api"
)

// Content types of what is served.
const (
	typeText  = "text/plain; charset=utf-8"
	typeBytes = "application/octet-stream"
	typeToken = "application/timestamp-reply" // RFC 3161, 3.4
)

// Handler is the HTTP interface: C2SP tlog-witness and tlog-tiles, and what
// else the witness serves. It may be used before Run; writes wait for it.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", s.postAdd)
	mux.HandleFunc("POST /enroll", s.postIndex(s.Enroll))
	mux.HandleFunc("POST /event", s.postIndex(s.Event))
	mux.HandleFunc("POST /key", s.postIndex(s.Key))
	mux.HandleFunc("POST /stamp", s.postIndex(s.StampCommitments))
	mux.HandleFunc("POST /misbehaviour", s.postMisbehaviour)
	mux.HandleFunc("GET /vkey", s.getVkey)
	mux.HandleFunc("GET /healthz", s.getHealth)
	mux.HandleFunc("GET /readyz", s.getReady)
	mux.Handle("GET /metrics", s.metricsHandler())
	s.readRoutes(mux)
	s.pageRoutes(mux)
	s.formerRoutes(mux)
	return s.guarded(mux)
}

// readRoutes are the resources of one log, of a closed shard too.
func (s *Server) readRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /checkpoint", s.getCosigned)
	mux.HandleFunc("GET /checkpoint/latest", s.getCheckpoint)
	mux.HandleFunc("GET /proof", s.getProof)
	mux.HandleFunc("GET /consistency", s.getConsistency)
	mux.HandleFunc("GET /timestamp", s.getTimestampFrom)
	mux.HandleFunc("GET /timestamp/{size}", s.getTimestamp)
	mux.HandleFunc("GET /timestamp/{size}/{file}", s.getToken)
	mux.HandleFunc("GET /blob/{hash}", s.getBlob)
	mux.HandleFunc("GET /fork/{index}", s.getFork)
	mux.HandleFunc("GET /rollback/{index}", s.getRollback)
	mux.HandleFunc("GET /tile/", s.getTile)
	mux.HandleFunc("GET /", s.getHead) // /<hex>/checkpoint, which no pattern of ServeMux can say beside /tile/
}

// readBody takes at most api.MaxBody bytes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, api.MaxBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, fmt.Errorf("%w: more than %d bytes", api.ErrTooLarge, api.MaxBody)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the body was cut off: %w", api.ErrBadRequest, err)
	}
	return b, nil
}

func (s *Server) postAdd(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	began := time.Now()
	added, err := s.AddCheckpoint(r.Context(), body)
	s.metrics.appended(err, time.Since(began))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if !added.Unlogged {
		w.Header().Set(api.HeaderIndex, strconv.FormatUint(added.Index, 10))
		w.Header().Set(api.HeaderSize, strconv.FormatUint(added.Size, 10))
	}
	send(w, typeText, cacheNever, []byte(added.Line.Line()))
}

// postIndex serves a write that answers with the index of a leaf.
func (s *Server) postIndex(write func(context.Context, []byte) (uint64, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		index, err := write(r.Context(), body)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		w.Header().Set(api.HeaderIndex, strconv.FormatUint(index, 10))
		send(w, typeText, cacheNever, fmt.Appendf(nil, "%d\n", index))
	}
}

// refuse answers with the status that stands for err. A conflict's body is the
// size line of C2SP tlog-witness; what failed inside is told to the log, not
// to strangers.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := api.Status(err)
	var conflict api.ErrConflict
	var limited api.ErrRateLimited
	text := err.Error() + "\n"
	w.Header().Set("Content-Type", typeText)
	switch {
	case errors.As(err, &conflict):
		w.Header().Set("Content-Type", api.ContentTypeSize)
		text = fmt.Sprintf("%d\n", conflict.Size)
	case errors.As(err, &limited):
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(limited.RetryAfter.Seconds()))))
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "5")
	case status == http.StatusInternalServerError:
		s.o.Logger.Error("a request failed", "path", r.URL.Path, "err", err)
		text = api.ErrInternal.Error() + "\n"
	}
	w.Header().Set("Cache-Control", cacheNever)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	io.WriteString(w, text)
}

// What may be kept by caches. Only what can never change is immutable: a full
// tile, a token. A partial tile is right but soon of no use.
const (
	cacheNever   = "no-store"
	cacheForever = "public, max-age=31536000, immutable"
)

func send(w http.ResponseWriter, contentType, cache string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Cache-Control", cache)
	h.Set("X-Content-Type-Options", "nosniff")
	w.Write(b)
}

func (s *Server) getVkey(w http.ResponseWriter, _ *http.Request) {
	send(w, typeText, cacheNever, api.KeyLines(s.Vkeys()))
}

// getHealth says that the process answers; a health probe must not kill a
// server that can still read because its disk is full.
func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	send(w, typeText, cacheNever, []byte("ok\n"))
}

func (s *Server) getReady(w http.ResponseWriter, r *http.Request) {
	if err := s.Ready(); err != nil {
		s.refuse(w, r, err)
		return
	}
	send(w, typeText, cacheNever, []byte("ready\n"))
}

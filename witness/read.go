package witness

import (
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// published is a durable snapshot with its checkpoint: what a reader is told
// comes from one of them, so proof and checkpoint always fit.
type published struct {
	store.Reader
	size       uint64
	checkpoint []byte
	nodes      *tlog.NodeCache // of this log; nil: proofs are made from the tiles alone
}

func (s *Server) read(fn func(published) error) error {
	return s.view(func(r store.Reader) error {
		state, err := r.State()
		if err != nil {
			return err
		}
		return fn(published{Reader: r, size: state.Size, checkpoint: state.Checkpoint, nodes: s.nodes})
	})
}

// serve answers with what fn reads from one snapshot.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, contentType, cache string, fn func(published) ([]byte, error)) {
	var body []byte
	err := s.read(func(p published) (err error) { body, err = fn(p); return err })
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	send(w, contentType, cache, body)
}

// getCheckpoint serves the newest durable checkpoint.
func (s *Server) getCheckpoint(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, typeText, cacheNever, func(p published) ([]byte, error) { return p.checkpoint, nil })
}

func (s *Server) getHead(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/checkpoint")
	hash, err := api.ParseHex(name)
	if !ok || err != nil {
		s.refuse(w, r, api.ErrNotFound)
		return
	}
	s.serve(w, r, typeText, cacheNever, func(p published) ([]byte, error) {
		rec, err := readRecord(p, hash[:])
		if errors.Is(err, store.ErrNotFound) {
			rec, err := readForeign(p.Get, hash[:])
			if err != nil {
				return nil, err
			}
			return rec.Note, nil
		}
		if err != nil {
			return nil, err
		}
		if rec.Head == nil {
			return nil, fmt.Errorf("%w: no head of this origin yet", api.ErrNotFound)
		}
		rec.hints(w.Header())
		return rec.Head.served(p)
	})
}

// getTile serves tiles and entry bundles. Tiles are kept in their widest form
// only; a width is served if some size of the log up to now has it, and only
// the full path is immutable: a short tile never stands under it.
func (s *Server) getTile(w http.ResponseWriter, r *http.Request) {
	id, width, err := tlog.ParseTilePath(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		s.refuse(w, r, fmt.Errorf("%w: %w", api.ErrNotFound, err))
		return
	}
	cache := cacheNever
	if width == tlog.TileWidth {
		cache = cacheForever
	}
	s.serve(w, r, typeBytes, cache, func(p published) ([]byte, error) {
		if have := tlog.WidthAt(id, p.size); width > have {
			return nil, fmt.Errorf("%w: the log of size %d has %d of %d there", api.ErrNotFound, p.size, have, width)
		}
		if id.Level == tlog.EntriesLevel {
			return bundle(p, id.Index, width)
		}
		return p.ReadTile(id, width)
	})
}

func bundle(r store.Reader, index uint64, width int) (b []byte, err error) {
	entries, err := r.Entries(index*tlog.TileWidth, width)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if b, err = tlog.AppendBundle(b, e); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (s *Server) getProof(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	index, size := q.uint("index"), q.uintOr("size", 0)
	if q.err != nil {
		s.refuse(w, r, q.err)
		return
	}
	s.serve(w, r, typeText, cacheNever, func(p published) ([]byte, error) { return prove(p, index, size) })
}

// prove gives a tlog-proof in the checkpoint of that size, of the newest for
// size 0. Only sizes that were committed have a checkpoint.
func prove(p published, index, size uint64) ([]byte, error) {
	checkpoint := p.checkpoint
	if size == 0 {
		size = p.size
	}
	if size != p.size {
		var err error
		if checkpoint, err = p.Get(store.Checkpoints, store.Key64(size)); err != nil {
			return nil, fmt.Errorf("checkpoint of size %d: %w", size, err)
		}
	}
	if index >= size {
		return nil, fmt.Errorf("%w: index %d in a log of size %d", api.ErrNotFound, index, size)
	}
	hashes, err := p.nodes.ProveInclusion(index, size, p)
	if err != nil {
		return nil, err
	}
	return tlog.Proof{Index: index, Hashes: hashes, Checkpoint: checkpoint}.Bytes(), nil
}

func (s *Server) getConsistency(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	from, to := q.uint("from"), q.uint("to")
	if q.err == nil && from > to {
		q.err = fmt.Errorf("%w: from %d is above to %d", api.ErrBadRequest, from, to)
	}
	if q.err != nil {
		s.refuse(w, r, q.err)
		return
	}
	s.serve(w, r, typeText, cacheNever, func(p published) (b []byte, err error) {
		if to > p.size {
			return nil, fmt.Errorf("%w: the log has size %d", api.ErrNotFound, p.size)
		}
		hashes, err := p.nodes.ProveConsistency(from, to, p)
		for _, h := range hashes {
			b = append(b, h.Base64()+"\n"...)
		}
		return b, err
	})
}

// getTimestampFrom names the first stamped checkpoint of at least that size.
func (s *Server) getTimestampFrom(w http.ResponseWriter, r *http.Request) {
	q := query{values: r.URL.Query()}
	from := q.uint("from")
	if q.err != nil {
		s.refuse(w, r, q.err)
		return
	}
	s.serve(w, r, typeText, cacheNever, func(p published) (b []byte, err error) {
		err = p.Scan(store.Stamps, store.Key64(from), func(key, _ []byte) bool {
			b = fmt.Appendf(nil, "%d\n", sizeOf(key))
			return false
		})
		if err == nil && b == nil {
			err = fmt.Errorf("%w: no checkpoint of size %d or more is stamped yet", api.ErrNotFound, from)
		}
		return b, err
	})
}

// getTimestamp serves /timestamp/<size>.note, the bytes whose SHA-256 the
// tokens stamp, and /timestamp/<size>, the labels of their authorities.
func (s *Server) getTimestamp(w http.ResponseWriter, r *http.Request) {
	name, isNote := strings.CutSuffix(r.PathValue("size"), ".note")
	size, err := parsePathSize(name)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	cache := cacheNever // an authority may stamp it later than the others
	if isNote {
		cache = cacheForever
	}
	s.serve(w, r, typeText, cache, func(p published) (b []byte, err error) {
		records, err := readStamps(p, size)
		if err != nil {
			return nil, err
		}
		if isNote {
			return p.Get(store.Checkpoints, store.Key64(size))
		}
		for _, rec := range records {
			b = append(b, rec.Authority+"\n"...)
		}
		return b, nil
	})
}

func (s *Server) getToken(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(r.PathValue("file"), ".tsr")
	size, err := parsePathSize(r.PathValue("size"))
	if !ok || err != nil {
		s.refuse(w, r, api.ErrNotFound)
		return
	}
	s.serve(w, r, typeToken, cacheForever, func(p published) ([]byte, error) {
		records, err := readStamps(p, size)
		if err != nil {
			return nil, err
		}
		for _, rec := range records {
			if rec.Authority == name {
				return granted(p, rec.Token)
			}
		}
		return nil, fmt.Errorf("%w: no token of this authority", api.ErrNotFound)
	})
}

// granted wraps a token in a TimeStampResp with PKIStatus 0 (RFC 3161, 2.4.2).
func granted(r store.Reader, token tlog.Hash) ([]byte, error) {
	der, err := r.Get(store.Blobs, token[:])
	if err != nil {
		return nil, err
	}
	type statusInfo struct{ Status int }
	return asn1.Marshal(struct {
		Status statusInfo
		Token  asn1.RawValue
	}{Token: asn1.RawValue{FullBytes: der}})
}

func (s *Server) getBlob(w http.ResponseWriter, r *http.Request) {
	hash, err := api.ParseHex(r.PathValue("hash"))
	if err != nil {
		s.refuse(w, r, api.ErrNotFound)
		return
	}
	s.serve(w, r, typeBytes, cacheForever, func(p published) ([]byte, error) { return p.Get(store.Blobs, hash[:]) })
}

func parsePathSize(name string) (uint64, error) {
	n, err := strconv.ParseUint(name, 10, 63)
	if err != nil || strconv.FormatUint(n, 10) != name {
		return 0, fmt.Errorf("%w: want /timestamp/SIZE.note or /timestamp/SIZE/AUTHORITY.tsr", api.ErrNotFound)
	}
	return n, nil
}

// sizeOf reads a key of a table that is kept by size.
func sizeOf(key []byte) uint64 {
	n, _ := strconv.ParseUint(hex.EncodeToString(key), 16, 64)
	return n
}

// query reads decimal parameters; the first failure stays.
type query struct {
	values url.Values
	err    error
}

func (q *query) uint(name string) uint64 {
	if !q.values.Has(name) && q.err == nil {
		q.err = fmt.Errorf("%w: the parameter %s is missing", api.ErrBadRequest, name)
	}
	return q.uintOr(name, 0)
}

func (q *query) uintOr(name string, absent uint64) uint64 {
	if q.err != nil || !q.values.Has(name) {
		return absent
	}
	n, err := strconv.ParseUint(q.values.Get(name), 10, 63)
	if err != nil {
		q.err = fmt.Errorf("%w: the parameter %s is not a decimal number", api.ErrBadRequest, name)
	}
	return n
}

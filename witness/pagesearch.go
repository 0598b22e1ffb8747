package witness

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// How much of the log one search reads. Hashes of leaves are read from tiles,
// what leaves speak of from the leaves.
const (
	searchTiles   = 1024 // of 256 hashes
	searchLeaves  = 8192
	searchResults = 50
)

// searchPage is what a hash was found to be.
type searchPage struct {
	Asked   bool
	Problem string // why nothing was looked for
	Found   []found
	Hashes  uint64 // leaves whose hash was compared
	Texts   uint64 // leaves that were read
	Before  uint64 // an older part of the log begins below this leaf; 0: none
}

// found is one place where a hash stands.
type found struct {
	What  string
	Chain string // origin; empty: none
	Leaf  api.Ref
	Path  string // of the resource, from /
}

func (s *Server) fillSearch(doc *page, p published, r *http.Request) error {
	q := query{values: r.URL.Query()}
	before := min(q.uintOr("before", p.size), p.size)
	if q.err != nil {
		return q.err
	}
	doc.Query = strings.TrimSpace(q.values.Get("q"))
	v := &searchPage{Asked: doc.Query != ""}
	doc.Title, doc.Search = "Search", v
	if !v.Asked {
		return nil
	}
	if n, err := strconv.ParseUint(doc.Query, 10, 63); err == nil && len(doc.Query) < 20 {
		if n < p.size {
			v.add(found{What: "leaf of the log", Leaf: api.At(n)})
		}
		return nil
	}
	if api.IsChainOrigin(doc.Query) {
		return v.record(p, originKey(doc.Query))
	}
	hash, err := parseAnyHash(doc.Query)
	if err != nil {
		v.Problem = err.Error()
		return nil
	}
	return v.find(p, hash, before)
}

// parseAnyHash reads a SHA-256 in hex or in base64.
func parseAnyHash(text string) (h tlog.Hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		b, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || len(b) != len(h) {
		return h, errors.New("want a SHA-256, as 64 hex digits or in base64; the origin of a chain; or the index of a leaf")
	}
	return tlog.Hash(b), nil
}

func (v *searchPage) add(f found) {
	if len(v.Found) < searchResults {
		v.Found = append(v.Found, f)
	}
}

// find looks a hash up, then through the newest leaves below before.
func (v *searchPage) find(p published, hash tlog.Hash, before uint64) error {
	if err := v.record(p, hash[:]); err != nil {
		return err
	}
	if _, err := p.Get(store.Blobs, hash[:]); err == nil {
		v.add(found{What: "timestamp token, or data that validates one", Path: "blob/" + hash.Hex()})
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err := v.leafHashes(p, hash, before); err != nil {
		return err
	}
	return v.leafTexts(p, hash, before)
}

func (v *searchPage) record(p published, key []byte) error {
	rec, err := readRecord(p, key)
	if errors.Is(err, store.ErrNotFound) || err == nil && rec.Key == "" {
		return nil
	}
	if err == nil {
		v.add(found{What: "origin of a chain", Chain: rec.Origin})
	}
	return err
}

// leafHashes compares the hashes in the newest tiles.
func (v *searchPage) leafHashes(p published, hash tlog.Hash, before uint64) error {
	for n, end := 0, before; n < searchTiles && end > 0; n++ {
		id := tlog.TileID{Index: (end - 1) / tlog.TileWidth}
		first := id.Index * tlog.TileWidth
		tile, err := p.ReadTile(id, tlog.WidthAt(id, p.size))
		if err != nil {
			return err
		}
		for i := range end - first {
			if [32]byte(tile[i*32:][:32]) == hash {
				v.add(found{What: "hash of a leaf", Leaf: api.At(first + i)})
			}
		}
		v.Hashes += end - first
		end = first
	}
	return nil
}

// leafTexts looks for the hash in what leaves say: the root of a head, a
// commitment, a token.
func (v *searchPage) leafTexts(p published, hash tlog.Hash, before uint64) error {
	inHex, inBase64 := []byte(hash.Hex()), []byte(hash.Base64())
	const part = 256
	end := before
	for end > 0 && before-end < searchLeaves {
		first := end - min(end, part)
		entries, err := p.Entries(first, int(end-first))
		if err != nil {
			return err
		}
		for i := len(entries) - 1; i >= 0; i-- {
			if bytes.Contains(entries[i], inHex) || bytes.Contains(entries[i], inBase64) {
				v.add(spokenOf(first+uint64(i), entries[i], hash))
			}
		}
		end = first
	}
	v.Texts, v.Before = before-end, end
	return nil
}

func spokenOf(index uint64, entry []byte, hash tlog.Hash) found {
	f := found{What: "named in a leaf", Leaf: api.At(index)}
	l, err := api.ParseLeaf(entry)
	if err != nil {
		return f
	}
	f.What = fmt.Sprintf("named in a %s leaf", l.Type)
	if h, err := api.ParseHeadLeaf(index, l); l.Type == api.LeafHead && err == nil && h.Head.Root == hash {
		f.What = fmt.Sprintf("root of a chain at size %d", h.Head.Size)
	}
	if l.Type == api.LeafStamp {
		f.What = "commitment, in a stamp leaf"
	}
	if api.IsChainOrigin(l.Origin) {
		f.Chain = l.Origin
	}
	return f
}

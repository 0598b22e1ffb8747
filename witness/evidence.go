package witness

import (
	"fmt"
	"net/http"
	"strconv"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// hints are the headers beside an origin's head: where its newest leaves are,
// for an auditor who walks back from them. Nothing rests on them.
func (r *originRecord) hints(h http.Header) {
	h.Set(api.HeaderIndex, strconv.FormatUint(r.Head.Index, 10))
	h.Set(api.HeaderLast, strconv.FormatUint(r.Prev, 10))
	for _, index := range r.Forks {
		h.Add(api.HeaderFork, strconv.FormatUint(index, 10))
	}
}

// getFork serves the fork file of a fork leaf, with the key leaves of the
// accused as of the newest checkpoint.
func (s *Server) getFork(w http.ResponseWriter, r *http.Request) {
	s.serveEvidence(w, r, api.LeafFork, func(p published, l api.Leaf) ([]byte, error) {
		f, err := api.ParseForkFile(l.Body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
		if f.Keys, err = p.keyProofs(l.Origin); err != nil {
			return nil, err
		}
		return f.Bytes(), nil
	})
}

// getRollback serves the body of a rollback leaf, which is the file.
func (s *Server) getRollback(w http.ResponseWriter, r *http.Request) {
	s.serveEvidence(w, r, api.LeafRollback, func(_ published, l api.Leaf) ([]byte, error) { return l.Body, nil })
}

func (s *Server) serveEvidence(w http.ResponseWriter, r *http.Request, want api.LeafType, file func(published, api.Leaf) ([]byte, error)) {
	index, err := strconv.ParseUint(r.PathValue("index"), 10, 63)
	if err != nil {
		s.refuse(w, r, fmt.Errorf("%w: want /%s/INDEX", api.ErrNotFound, want))
		return
	}
	s.serve(w, r, typeBytes, cacheNever, func(p published) ([]byte, error) {
		entries, err := p.Entries(index, 1)
		if err != nil {
			return nil, err
		}
		l, err := api.ParseLeaf(entries[0])
		if err != nil {
			return nil, fmt.Errorf("%w: leaf %d: %w", store.ErrDamaged, index, err)
		}
		if l.Type != want {
			return nil, fmt.Errorf("%w: leaf %d is a %s leaf", api.ErrNotFound, index, l.Type)
		}
		return file(p, l)
	})
}

// keyProofs are the key leaves of an origin in order, each proved in the newest
// checkpoint.
func (p published) keyProofs(origin string) ([]api.KeyProof, error) {
	rec, err := readOrigin(p, origin)
	if err != nil {
		return nil, err
	}
	var proofs []api.KeyProof
	for at := api.At(rec.Keys); at.Present && len(proofs) < maxKeyLeaves; {
		entries, err := p.Entries(at.Index, 1)
		if err != nil {
			return nil, err
		}
		l, err := api.ParseLeaf(entries[0])
		if err != nil {
			return nil, fmt.Errorf("%w: key leaf %d: %w", store.ErrDamaged, at.Index, err)
		}
		hashes, err := p.nodes.ProveInclusion(at.Index, p.size, p)
		if err != nil {
			return nil, err
		}
		proof := tlog.Proof{Index: at.Index, Hashes: hashes, Checkpoint: p.checkpoint}
		proofs = append(proofs, api.KeyProof{Bytes: entries[0], Proof: proof})
		at = l.Keys
	}
	for i, j := 0, len(proofs)-1; i < j; i, j = i+1, j-1 {
		proofs[i], proofs[j] = proofs[j], proofs[i]
	}
	return proofs, nil
}

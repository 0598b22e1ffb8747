package witness

import (
	"sync"
	"time"
)

// timeState remembers what each authority answered last.
type timeState struct {
	mu     sync.Mutex
	failed map[string]string // by authority; guarded by mu
}

func (t *timeState) told(asked []Authority, errs map[string]error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = map[string]string{}
	}
	for _, a := range asked {
		delete(t.failed, a.Name)
		if err := errs[a.Name]; err != nil {
			t.failed[a.Name] = err.Error()
		}
	}
}

func (t *timeState) lastError(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed[name]
}

// TimeStatus is how well the log's time is attested.
type TimeStatus struct {
	Size        uint64            `json:"size"`      // newest checkpoint with a token
	At          time.Time         `json:"at"`        // its newest token; zero: never
	Operators   int               `json:"operators"` // distinct, that stamped it
	Quorum      int               `json:"quorum"`    // distinct operators asked for
	Full        uint64            `json:"full"`      // newest size that met the quorum
	Unstamped   uint64            `json:"unstamped"` // leaves that wait for a token
	SelfIssued  bool              `json:"self_issued"`
	Authorities []AuthorityStatus `json:"authorities"`
}

// AuthorityStatus is one authority's part.
type AuthorityStatus struct {
	Name    string    `json:"name"`
	Stamped bool      `json:"stamped"` // the newest stamped checkpoint
	At      time.Time `json:"at,omitzero"`
	Error   string    `json:"error,omitempty"` // of its last answer
}

// timeStatus says how well time is attested in one snapshot.
func (s *Server) timeStatus(p published) (st TimeStatus, err error) {
	st.Quorum = s.o.TimeQuorum
	place, err := stampedPlace(p, s.origin)
	if err != nil {
		return st, err
	}
	st.Size, st.Full = place.Size, place.Full
	var have stampRecords
	if place.Size > 0 {
		if have, err = readStamps(p, place.Size); err != nil {
			return st, err
		}
	}
	if active, err := lastActive(p.size, p); err != nil {
		return st, err
	} else if active > place.Size {
		st.Unstamped = active - place.Size
	}
	st.At, st.Operators = have.newest(), have.operators()
	by := map[string]stampRecord{}
	st.SelfIssued = len(have) > 0
	for _, r := range have {
		by[r.Authority] = r
		st.SelfIssued = st.SelfIssued && r.SelfIssued
	}
	for _, a := range s.o.Authorities {
		r, ok := by[a.Name]
		st.Authorities = append(st.Authorities, AuthorityStatus{Name: a.Name, Stamped: ok, At: r.Time, Error: s.stamps.lastError(a.Name)})
	}
	return st, nil
}

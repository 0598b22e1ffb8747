package witness

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// overview is the first page: the log, its time, every chain.
type overview struct {
	Root        tlog.Hash
	Checkpoint  string
	Log, Cosign string // vkeys
	Unready     string // why nothing is signed now; empty: all is well
	Time        timeView
	Former      []formerLink
	Logs        []ForeignLog // of others: cosigned, not logged

	Forked, Rolled, Silent []chainRow // for the alarms, at most alarmNames of each
	Counts                 map[string]int
	Filter                 string // one of filters
	Chains                 []chainRow
	Pager                  pager
}

const (
	rowsPerPage = 100
	alarmNames  = 8 // chains that an alarm names; the filter shows the rest
)

type formerLink struct {
	Number int
	Origin string
}

// chainRow is what the overview says of one chain.
type chainRow struct {
	Origin    string
	Hash      string // hex SHA-256 of the origin
	State     string // open, closed, suspended, not told
	Size      uint64
	HeadIndex uint64
	HeadAt    time.Time     // newest cosignature; zero: no head yet
	Age       time.Duration // since then
	Interval  time.Duration // longest silence its owner promised; zero: none
	Lag       time.Duration // how far an open chain is behind that
	Silent    bool          // open, and quiet for more than twice that
	Stamped   bool          // its newest head lies under a timestamp
	Forks     []uint64
	Rollbacks []uint64
	Conflicts uint64
	Revoked   *revocation
}

// Trouble ranks what a reader must see first.
func (c chainRow) Trouble() int {
	switch {
	case len(c.Forks) > 0:
		return 4
	case len(c.Rollbacks) > 0:
		return 3
	case c.Silent:
		return 2
	case c.Revoked != nil:
		return 1
	}
	return 0
}

const stateUntold = "not told"

// chainRow judges a chain at a time. A chain that was never reported closed
// counts as open, but its silence is judged only by the interval it promised.
func (s *Server) chainRow(rec *originRecord, now time.Time, stamped uint64) chainRow {
	c := chainRow{Origin: rec.Origin, Hash: hex.EncodeToString(originKey(rec.Origin)), State: stateUntold,
		Forks: rec.Forks, Rollbacks: rec.Rollbacks, Revoked: rec.Revoked, Conflicts: rec.Conflicts + s.conflicts.pending(rec.Origin)}
	if rec.Event != nil {
		c.State, c.Interval = string(rec.Event.State), heartbeatOf(rec.Event.Heartbeat)
	}
	if rec.Head == nil {
		return c
	}
	c.Size, c.HeadIndex, c.HeadAt = rec.Head.Size, rec.Head.Index, time.Unix(rec.Head.Time, 0).UTC()
	c.Stamped = rec.Head.Index < stamped
	c.Age = max(0, now.Sub(c.HeadAt))
	if c.State == string(api.StateOpen) && c.Interval > 0 {
		c.Lag = max(0, c.Age-c.Interval)
		c.Silent = c.Age > 2*c.Interval
	}
	return c
}

// heartbeatOf bounds what an owner may claim, so that twice of it is still a
// duration.
func heartbeatOf(seconds uint64) time.Duration {
	const longest = 100 * 365 * 24 * 3600
	return time.Duration(min(seconds, longest)) * time.Second
}

// filters are the parts of the list, and whether a chain is in one.
func filters() map[string]func(chainRow) bool {
	in := func(state string) func(chainRow) bool { return func(c chainRow) bool { return c.State == state } }
	return map[string]func(chainRow) bool{
		"all":       func(chainRow) bool { return true },
		"attention": func(c chainRow) bool { return c.Trouble() > 0 },
		"open":      in(string(api.StateOpen)), "closed": in(string(api.StateClosed)),
		"suspended": in(string(api.StateSuspended)), "untold": in(stateUntold),
	}
}

func (s *Server) fillOverview(doc *page, p published, r *http.Request) error {
	cp, _, err := tlog.ParseSignedCheckpoint(p.checkpoint)
	if err != nil {
		return fmt.Errorf("%w: the newest checkpoint: %w", store.ErrDamaged, err)
	}
	log, cosigner := s.Vkeys()
	o := &overview{Root: cp.Root, Checkpoint: string(p.checkpoint), Log: log.String(), Cosign: cosigner.String()}
	if err := s.Ready(); err != nil {
		o.Unready = err.Error()
	}
	for _, f := range s.former {
		o.Former = append(o.Former, formerLink{f.number, f.origin})
	}
	if o.Time, err = s.timeView(p, doc.Now); err != nil {
		return err
	}
	if o.Logs, err = s.foreignStatus(p); err != nil {
		return err
	}
	rows, err := s.chainRows(p, doc.Now, o.Time.Size)
	if err != nil {
		return err
	}
	doc.Title, doc.Overview = "Witness "+s.origin, o
	return o.list(rows, r.URL.Query())
}

// chainRows is every chain, those in trouble first, then the newest heads.
func (s *Server) chainRows(p published, now time.Time, stamped uint64) (rows []chainRow, err error) {
	err = scanAgents(p, func(rec *originRecord) { rows = append(rows, s.chainRow(rec, now, stamped)) })
	slices.SortFunc(rows, func(a, b chainRow) int {
		return cmp.Or(cmp.Compare(b.Trouble(), a.Trouble()), b.HeadAt.Compare(a.HeadAt), cmp.Compare(a.Origin, b.Origin))
	})
	return rows, err
}

func (o *overview) list(rows []chainRow, q url.Values) (err error) {
	o.Filter = cmp.Or(q.Get("show"), "all")
	parts := filters()
	keep, ok := parts[o.Filter]
	if !ok {
		return fmt.Errorf("%w: no such part of the list", api.ErrNotFound)
	}
	o.Counts = map[string]int{}
	var shown []chainRow
	for _, c := range rows {
		o.count(c, parts)
		if keep(c) {
			shown = append(shown, c)
		}
	}
	o.Pager, err = newPager(len(shown), q)
	if err == nil {
		o.Chains = shown[o.Pager.From:o.Pager.To]
	}
	return err
}

func (o *overview) count(c chainRow, parts map[string]func(chainRow) bool) {
	for name, in := range parts {
		if in(c) {
			o.Counts[name]++
		}
	}
	alarm := func(name string, raised bool, list *[]chainRow) {
		if !raised {
			return
		}
		if o.Counts[name]++; len(*list) < alarmNames {
			*list = append(*list, c)
		}
	}
	alarm("forked", len(c.Forks) > 0, &o.Forked)
	alarm("rolled", len(c.Rollbacks) > 0, &o.Rolled)
	alarm("silent", c.Silent, &o.Silent)
}

// Calm says that there is no alarm on the page.
func (o *overview) Calm() bool {
	return o.Unready == "" && !o.Time.Missing && len(o.Forked)+len(o.Rolled)+len(o.Silent) == 0
}

// part is a link to a part of the list.
type part struct {
	Name, Text string
	Count      uint64
	Here       bool
}

// Parts are the parts of the list that are not empty, and the whole.
func (o *overview) Parts() (parts []part) {
	for _, p := range []part{{Name: "all", Text: "All"}, {Name: "attention", Text: "Need attention"}, {Name: "open", Text: "Open"},
		{Name: "suspended", Text: "Suspended"}, {Name: "closed", Text: "Closed"}, {Name: "untold", Text: "State not told"}} {
		p.Count, p.Here = uint64(o.Counts[p.Name]), p.Name == o.Filter
		if p.Count > 0 || p.Here || p.Name == "all" {
			parts = append(parts, p)
		}
	}
	return parts
}

// pager is one page of a list: its rows are [From, To) of All.
type pager struct{ Page, Pages, From, To, All int }

func newPager(all int, q url.Values) (p pager, err error) {
	p = pager{Page: 1, Pages: max(1, (all+rowsPerPage-1)/rowsPerPage), All: all}
	if q.Has("page") {
		if p.Page, err = strconv.Atoi(q.Get("page")); err != nil || p.Page < 1 || p.Page > p.Pages {
			return p, fmt.Errorf("%w: the list has the pages 1 to %d", api.ErrNotFound, p.Pages)
		}
	}
	p.From = (p.Page - 1) * rowsPerPage
	p.To = min(all, p.From+rowsPerPage)
	return p, nil
}

// FirstN is the first row shown, from 1.
func (p pager) FirstN() uint64 { return uint64(min(p.From+1, p.All)) }

// ToN is the last row shown.
func (p pager) ToN() uint64 { return uint64(p.To) }

// AllN is how many rows there are.
func (p pager) AllN() uint64 { return uint64(p.All) }

// Newer and Older are the pages beside this one; 0: none.
func (p pager) Newer() int { return p.Page - 1 }

// Older is the next page; 0: none.
func (p pager) Older() int {
	if p.Page == p.Pages {
		return 0
	}
	return p.Page + 1
}

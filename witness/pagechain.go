package witness

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// chainPage is one chain: its state, its heads over time, its keys and leaves.
type chainPage struct {
	chainRow
	Root    tlog.Hash
	Keys    []keyRow
	Plot    *plot // nil: no head yet
	Leaves  []leafRow
	Newest  bool   // the list begins with the newest leaf
	Before  uint64 // where the next part of the list begins
	HasMore bool
}

// leavesPerPage is how far one page walks along the back links.
const leavesPerPage = 50

// keyRow is one head key, with its status as of the checkpoint.
type keyRow struct {
	api.KeyEntry
	Status string
	Bad    bool
}

// leafRow is one leaf of a chain.
type leafRow struct {
	Index  uint64
	Type   string
	At     time.Time // head leaves only
	Size   uint64
	Grown  uint64        // receipts since the head before
	Quiet  time.Duration // time since the head before
	Text   string
	Silent bool // Quiet is more than twice the interval, and the chain was open
	rest   bool // an event: from here on the chain was not open
	Bad    bool // a fork, a rollback, a revocation or a doubtful head
}

func (s *Server) fillChain(doc *page, p published, r *http.Request) error {
	hash, err := api.ParseHex(r.PathValue("hash"))
	if err != nil {
		return fmt.Errorf("%w: want /chain/ and the SHA-256 of an origin", api.ErrNotFound)
	}
	rec, err := readRecord(p, hash[:])
	if err != nil {
		return err
	}
	if rec.Key == "" {
		return fmt.Errorf("%w: this is the log, not a chain", api.ErrNotFound)
	}
	stamped, err := lastStamped(p, s.origin)
	if err != nil {
		return err
	}
	c := &chainPage{chainRow: s.chainRow(rec, doc.Now, stamped), Newest: !r.URL.Query().Has("before")}
	if rec.Head != nil {
		c.Root = rec.Head.Root
		if c.Plot, err = p.plot(rec, c.chainRow, doc.Now); err != nil {
			return err
		}
	}
	doc.Title, doc.Chain = rec.Origin, c
	return s.fillLeaves(c, p, rec, r)
}

func (s *Server) fillLeaves(c *chainPage, p published, rec *originRecord, r *http.Request) error {
	b := batch{view: p, base: store.State{Size: p.size}}
	history, err := b.keyHistory(rec, s.keys.log.Vkey())
	if err != nil {
		return err
	}
	for _, e := range history.Entries {
		c.Keys = append(c.Keys, keyRowOf(e))
	}
	q := query{values: r.URL.Query()}
	from := q.uintOr("before", rec.Prev)
	if q.err != nil {
		return q.err
	}
	return c.walk(p, history, from)
}

func keyRowOf(e api.KeyEntry) keyRow {
	row := keyRow{KeyEntry: e, Status: string(api.KeyInForce)}
	switch {
	case e.Doubtful():
		row.Status, row.Bad = fmt.Sprintf("revoked by leaf %d; heads from leaf %d on are doubtful", e.Closed.Index, e.Since.Index), true
	case e.Since.Present:
		row.Status, row.Bad = fmt.Sprintf("revoked by leaf %d; no head before it is doubtful", e.Closed.Index), true
	case e.Closed.Present:
		row.Status = fmt.Sprintf("rotated by leaf %d", e.Closed.Index)
	}
	return row
}

// walk lists leaves from one back along prev. What a head grew by is known once
// the head before it is read, so it reads on to that one.
func (c *chainPage) walk(p published, history api.KeyHistory, from uint64) error {
	waits, told := -1, false // the row whose head before is not read yet, and whether an event between explains it
	for at := api.At(from); at.Present; {
		l, err := p.leaf(at.Index)
		if err != nil {
			return err
		}
		if l.Origin != c.Origin {
			return fmt.Errorf("%w: leaf %d is not of this chain", api.ErrNotFound, at.Index)
		}
		if len(c.Leaves) >= leavesPerPage && !c.HasMore {
			c.Before, c.HasMore = at.Index, true
		}
		row := leafRowOf(at.Index, l, history)
		if l.Type == api.LeafHead && waits >= 0 {
			c.Leaves[waits].after(row, c.Interval, told)
			waits = -1
		}
		if c.HasMore {
			break
		}
		if c.Leaves = append(c.Leaves, row); l.Type == api.LeafHead {
			waits, told = len(c.Leaves)-1, false
		}
		told = told || row.rest
		at = l.Prev
	}
	return nil
}

// after says what came between two heads.
func (r *leafRow) after(before leafRow, interval time.Duration, told bool) {
	if r.Size > before.Size {
		r.Grown = r.Size - before.Size
	}
	r.Quiet = max(0, r.At.Sub(before.At))
	r.Silent = interval > 0 && r.Quiet > 2*interval && !told
}

func leafRowOf(index uint64, l api.Leaf, history api.KeyHistory) leafRow {
	row := leafRow{Index: index, Type: string(l.Type)}
	switch l.Type {
	case api.LeafHead:
		row.head(l, history)
	case api.LeafEvent:
		if e, _, err := api.ParseEvent(l.Body); err == nil {
			row.rest = e.State != api.StateOpen
			row.Text = fmt.Sprintf("%s, interval %s", e.State, spanWords(heartbeatOf(e.Heartbeat)))
		}
	case api.LeafKey:
		if k, _, err := api.ParseKeyNote(l.Body); err == nil {
			row.Text, row.Bad = string(k.Act), k.Act == api.KeyRevoke
		}
	case api.LeafFork:
		row.Text, row.Bad = "two histories under one key", true
	case api.LeafRollback:
		row.Text, row.Bad = "a smaller head was cosigned after a larger one", true
	case api.LeafStamp:
		row.stamp(l.Body)
	}
	return row
}

func (r *leafRow) head(l api.Leaf, history api.KeyHistory) {
	h, err := api.ParseHeadLeaf(r.Index, l)
	if err != nil {
		return
	}
	r.Size = h.Head.Size
	r.At, _ = headTime(r.Index, l)
	for _, e := range history.Entries {
		if l.Keys == api.At(e.Index) && history.Status(e.Key, r.Index) == api.KeyDoubtful {
			r.Text, r.Bad = string(api.KeyDoubtful), true
		}
	}
}

func (r *leafRow) stamp(body []byte) {
	st, _, err := api.ParseStamp(body)
	switch {
	case err != nil:
	case st.Root != nil:
		r.Text = "a batch of " + plural(int(min(st.Root.Size, 1<<30)), "commitment", "commitments")
	default:
		r.Text = plural(len(st.Commitments), "commitment", "commitments")
	}
}

// leafPage is one leaf of the log.
type leafPage struct {
	Index      uint64
	Hash       tlog.Hash
	Type       string
	Chain      string // origin; empty for a leaf of the log itself
	At         time.Time
	Prev, Keys api.Ref
	Path       []tlog.Hash
	Body       string
	Tile       string // of its hash
	Bundle     string // of its bytes
	Unreadable string // why it is shown as it lies
}

func (s *Server) fillLeaf(doc *page, p published, r *http.Request) error {
	index, err := strconv.ParseUint(r.PathValue("index"), 10, 63)
	if err != nil {
		return fmt.Errorf("%w: want /leaf/INDEX", api.ErrNotFound)
	}
	entries, err := p.Entries(index, 1)
	if err != nil {
		return err
	}
	v := &leafPage{Index: index, Hash: tlog.LeafHash(entries[0]), Body: string(entries[0])}
	for level, path := range map[int]*string{0: &v.Tile, tlog.EntriesLevel: &v.Bundle} {
		id := tlog.TileID{Level: level, Index: index / tlog.TileWidth}
		*path = id.Path(tlog.WidthAt(id, p.size))
	}
	doc.Title, doc.Leaf = fmt.Sprintf("Leaf %d", index), v
	l, err := api.ParseLeaf(entries[0])
	if err != nil {
		v.Unreadable = err.Error() // of a newer format: shown, never a failure
		return nil
	}
	v.Type, v.Prev, v.Keys, v.Path, v.Body = string(l.Type), l.Prev, l.Keys, l.Proof, string(l.Body)
	v.At, _ = headTime(index, l)
	if l.Origin != s.origin {
		v.Chain = l.Origin
	}
	return nil
}

package witness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// Fault is one thing that is not what the signed checkpoint says.
type Fault struct {
	Where  string `json:"where"` // "entry 17", "tile 0/3 hash 200", "checkpoint 4"
	Detail string `json:"detail"`
}

// FsckReport is what a walk over the whole store found.
type FsckReport struct {
	Size        uint64    `json:"size"`
	Root        tlog.Hash `json:"root"` // rebuilt from the entries
	Checkpoints uint64    `json:"checkpoints"`
	Faults      []Fault   `json:"faults"`
	More        int       `json:"more,omitempty"` // faults beyond those listed
}

// OK says that nothing was found.
func (r FsckReport) OK() bool { return len(r.Faults) == 0 }

// Fsck rebuilds every hash of the newest snapshot from the entries and compares
// it with the tiles, with every checkpoint ever signed, and with the records
// kept beside the log. An error means that the walk did not end; what is wrong
// in the log is in the report.
func (s *Server) Fsck(ctx context.Context) (report FsckReport, err error) {
	err = s.read(func(p published) error {
		f := newFsck(p, s.identity())
		if err := f.walk(ctx); err != nil {
			return err
		}
		report = f.report
		return nil
	})
	return report, err
}

// fsck holds one walk. Its memory grows with the origins, not with the log.
type fsck struct {
	p      published
	id     identity
	report FsckReport

	tree    tlog.Frontier
	levels  []level // by tile level
	records map[string]*originRecord
	history map[string]*api.KeyHistory
	heads   int  // head leaves
	shard   bool // the log begins with a shard leaf
	cps     checkpoints
}

// level is the tile of one level that is being rebuilt.
type level struct {
	index uint64
	data  []byte
}

func newFsck(p published, id identity) *fsck {
	return &fsck{p: p, id: id, report: FsckReport{Faults: []Fault{}}, records: map[string]*originRecord{}, history: map[string]*api.KeyHistory{}, cps: checkpoints{r: p}}
}

func (f *fsck) fault(where, format string, args ...any) {
	const most = 100
	if len(f.report.Faults) == most {
		f.report.More++
		return
	}
	f.report.Faults = append(f.report.Faults, Fault{Where: where, Detail: fmt.Sprintf(format, args...)})
}

func (f *fsck) walk(ctx context.Context) error {
	f.checkpointAt(0)
	for i := uint64(0); i < f.p.size; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		f.entry(i)
		f.checkpointAt(i + 1)
	}
	for n := range f.levels {
		f.tile(n)
	}
	f.report.Size, f.report.Root = f.tree.Size(), f.tree.Root()
	f.newest()
	f.kept()
	f.headIndex()
	f.stamps()
	return nil
}

// entry adds one entry to the tree. One that cannot be read counts by the hash
// its tile keeps, so that the walk locates every other fault as well.
func (f *fsck) entry(i uint64) {
	where := fmt.Sprintf("entry %d", i)
	entries, err := f.p.Entries(i, 1)
	if err != nil {
		f.fault(where, "cannot be read: %v", err)
		f.add(f.tileHash(i))
		return
	}
	f.add(tlog.LeafHash(entries[0]))
	l, err := api.ParseLeaf(entries[0])
	if err != nil {
		f.fault(where, "%v", err)
		return
	}
	f.leaf(i, where, l)
	if l.Type != api.LeafHead {
		return
	}
	if err := f.indexed(i, l); err != nil {
		f.fault(where, "%v", err)
	}
}

func (f *fsck) tileHash(i uint64) (h tlog.Hash) {
	width := int(i%tlog.TileWidth) + 1
	if b, err := f.p.ReadTile(tlog.TileID{Index: i / tlog.TileWidth}, width); err == nil {
		copy(h[:], b[(width-1)*tlog.HashSize:])
	}
	return h
}

// add grows the tree and the tiles over it: a full tile's root is the next
// hash one level up (C2SP tlog-tiles).
func (f *fsck) add(h tlog.Hash) {
	f.tree.Append(h)
	for n := 0; ; n++ {
		if n == len(f.levels) {
			f.levels = append(f.levels, level{})
		}
		l := &f.levels[n]
		l.data = append(l.data, h[:]...)
		if len(l.data) < tlog.TileWidth*tlog.HashSize {
			return
		}
		h = rootOf(l.data)
		f.tile(n)
		l.index, l.data = l.index+1, l.data[:0]
	}
}

func rootOf(tile []byte) tlog.Hash {
	var t tlog.Frontier
	for h := range bytesChunks(tile) {
		t.Append(h)
	}
	return t.Root()
}

func bytesChunks(tile []byte) func(func(tlog.Hash) bool) {
	return func(yield func(tlog.Hash) bool) {
		for len(tile) > 0 && yield(tlog.Hash(tile[:tlog.HashSize])) {
			tile = tile[tlog.HashSize:]
		}
	}
}

// tile compares the rebuilt tile of a level with the one kept.
func (f *fsck) tile(n int) {
	l := f.levels[n]
	if len(l.data) == 0 {
		return
	}
	id := tlog.TileID{Level: n, Index: l.index}
	where := fmt.Sprintf("tile %d/%d", id.Level, id.Index)
	got, err := f.p.ReadTile(id, len(l.data)/tlog.HashSize)
	if err != nil {
		f.fault(where, "cannot be read: %v", err)
		return
	}
	for i := 0; i < len(l.data); i += tlog.HashSize {
		want, have := tlog.Hash(l.data[i:i+tlog.HashSize]), tlog.Hash(got[i:i+tlog.HashSize])
		if want != have {
			f.fault(f.place(id, i/tlog.HashSize), "the tile has %s, below it %s was rebuilt", have, want)
		}
	}
}

// place names a hash of a tile by what it stands for; a hash of level 0 is an
// entry's, and either of the two may be the damaged one.
func (f *fsck) place(id tlog.TileID, i int) string {
	where := fmt.Sprintf("tile %d/%d hash %d", id.Level, id.Index, i)
	if id.Level == 0 {
		where += fmt.Sprintf(" or entry %d", id.Index*tlog.TileWidth+uint64(i))
	}
	return where
}

// leaf follows the back links, as an auditor would.
func (f *fsck) leaf(i uint64, where string, l api.Leaf) {
	rec, known := f.records[l.Origin]
	prev, inForce := api.Ref{}, api.Ref{}
	if known {
		prev = api.At(rec.Prev)
		if l.Type != api.LeafTime {
			inForce = api.At(rec.Keys)
		}
	}
	if l.Prev != prev {
		f.fault(where, "prev is %s, this origin's leaf before it is %s", l.Prev, prev)
	}
	if l.Keys != inForce {
		f.fault(where, "keys is %s, in force was %s", l.Keys, inForce)
	}
	next := &originRecord{Origin: l.Origin}
	if known {
		next = rec
	}
	next.Prev = i
	f.records[l.Origin] = next
	if err := f.body(i, l, next); err != nil {
		f.fault(where, "%v", err)
	}
}

// checkpointAt compares the root with the checkpoint signed at this size, if
// one was.
func (f *fsck) checkpointAt(size uint64) {
	signed, ok, err := f.cps.at(size)
	where := fmt.Sprintf("checkpoint %d", size)
	if err != nil {
		f.fault(where, "cannot be read: %v", err)
		return
	}
	if ok {
		f.report.Checkpoints++
		f.checkpoint(where, signed)
	}
}

func (f *fsck) checkpoint(where string, signed []byte) {
	cp, note, err := tlog.ParseSignedCheckpoint(signed)
	if err != nil {
		f.fault(where, "%v", err)
		return
	}
	if _, err := note.Verify(f.id.log); err != nil {
		f.fault(where, "%v", err)
	}
	if cp.Origin != f.id.origin || cp.Size != f.tree.Size() || cp.Root != f.tree.Root() {
		f.fault(where, "it says %s, size %d, root %s; the entries give size %d, root %s",
			cp.Origin, cp.Size, cp.Root, f.tree.Size(), f.tree.Root())
	}
}

func (f *fsck) newest() { f.checkpoint("newest checkpoint", f.p.checkpoint) }

// kept compares the origin records with what the leaves say.
func (f *fsck) kept() {
	seen := 0
	err := f.p.Scan(store.Origins, nil, func(key, value []byte) bool {
		have, err := decodeRecord(value)
		if err != nil {
			f.fault(fmt.Sprintf("origin record %x", key), "%v", err)
			return true
		}
		seen++
		f.record(have)
		return true
	})
	if err != nil {
		f.fault("origin records", "cannot be read: %v", err)
	} else if seen != len(f.records) {
		f.fault("origin records", "there are %d, the leaves tell of %d", seen, len(f.records))
	}
}

func (f *fsck) record(have *originRecord) {
	where := "origin record of " + have.Origin
	want := f.records[have.Origin]
	switch {
	case want == nil:
		f.fault(where, "no leaf tells of it")
	case have.Key != want.Key || have.From != want.From || have.Keys != want.Keys || have.Prev != want.Prev || !sameJSON(have.Revoked, want.Revoked):
		f.fault(where, "key leaf %d and newest leaf %d, the leaves say %d and %d", have.Keys, have.Prev, want.Keys, want.Prev)
	case !sameHead(have.Head, want.Head):
		f.fault(where, "its head is not that of the newest head leaf")
	case !sameJSON(have.Event, want.Event) || !sameStamp(have.Stamp, want.Stamp) || !sameJSON(have.Sealed, want.Sealed):
		f.fault(where, "its event or stamp is not that of the leaves")
	case !slices.Equal(have.Forks, want.Forks) || !slices.Equal(have.Rollbacks, want.Rollbacks):
		f.fault(where, "its forks %v and rollbacks %v are not those of the leaves, %v and %v", have.Forks, have.Rollbacks, want.Forks, want.Rollbacks)
	}
}

// sameHead leaves out the time, which is refreshed without a leaf.
func sameHead(a, b *headRecord) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Index == b.Index && a.Size == b.Size && a.Root == b.Root && a.Time >= b.Time
}

// sameStamp leaves out the quorum, which the leaves do not tell.
func sameStamp(a, b *stampPlace) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Size == b.Size
}

func sameJSON[T any](a, b *T) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// stamps looks for every token and the checkpoint it stamps.
func (f *fsck) stamps() {
	err := f.p.Scan(store.Stamps, nil, func(key, value []byte) bool {
		where := fmt.Sprintf("timestamp %d", sizeOf(key))
		var records stampRecords
		if err := json.Unmarshal(value, &records); err != nil {
			f.fault(where, "%v", err)
		}
		for _, rec := range records {
			f.blob(where, rec.Token)
		}
		return true
	})
	if err != nil {
		f.fault("timestamps", "cannot be read: %v", err)
	}
}

func (f *fsck) blob(where string, hash tlog.Hash) {
	b, err := f.p.Get(store.Blobs, hash[:])
	if err == nil && tlog.Hash(sha256.Sum256(b)) != hash {
		err = errors.New("its bytes have another hash")
	}
	if err != nil {
		f.fault(where, "token %s: %v", hash, err)
	}
}

// checkpoints reads the table of signed checkpoints in step with the tree, a
// page at a time.
type checkpoints struct {
	r    store.Reader
	page []signedAt
	next uint64 // first size beyond the page
	end  bool
}

type signedAt struct {
	size uint64
	note []byte
}

func (c *checkpoints) at(size uint64) (note []byte, ok bool, err error) {
	if len(c.page) == 0 && !c.end {
		if err := c.fill(); err != nil {
			c.end = true
			return nil, false, err
		}
	}
	if len(c.page) == 0 || c.page[0].size != size {
		return nil, false, nil
	}
	note, c.page = c.page[0].note, c.page[1:]
	return note, true, nil
}

func (c *checkpoints) fill() error {
	const pageLength = 512
	err := c.r.Scan(store.Checkpoints, store.Key64(c.next), func(key, value []byte) bool {
		c.page = append(c.page, signedAt{sizeOf(key), bytes.Clone(value)})
		return len(c.page) < pageLength
	})
	if c.end = len(c.page) < pageLength; len(c.page) > 0 {
		c.next = c.page[len(c.page)-1].size + 1
	}
	return err
}

package witness

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// body reads a leaf's body as an auditor would, and rebuilds the record of its
// origin. A type that this release does not know is hashed and linked only.
func (f *fsck) body(i uint64, l api.Leaf, rec *originRecord) error {
	switch l.Type {
	case api.LeafKey:
		return f.rebuildKey(i, l, rec)
	case api.LeafHead:
		return f.rebuildHead(i, l, rec)
	case api.LeafEvent:
		return f.rebuildEvent(i, l, rec)
	case api.LeafStamp:
		return f.rebuildSeal(i, l, rec)
	case api.LeafFork:
		return f.rebuildFork(i, l, rec)
	case api.LeafRollback:
		return f.rebuildRollback(i, l, rec)
	case api.LeafShard:
		if i != 0 || l.Origin != f.id.origin {
			return errors.New("a shard leaf is the log's own and its first")
		}
		f.shard = true
		_, err := api.ParseShardBody(l.Body)
		return err
	case api.LeafTime:
		t, err := api.ParseTimeBody(l.Body)
		if err != nil {
			return err
		}
		rec.Stamp = &stampPlace{Size: t.Size}
	}
	return nil
}

func (f *fsck) rebuildKey(i uint64, l api.Leaf, rec *originRecord) error {
	k, note, err := api.ParseKeyNote(l.Body)
	if err != nil {
		return err
	}
	if k.Origin != l.Origin {
		return fmt.Errorf("its note is of %s", k.Origin)
	}
	history := f.history[l.Origin]
	if history == nil {
		history = &api.KeyHistory{}
		f.history[l.Origin] = history
	}
	operator, err := k.SignedBy(note, f.id.log)
	if err != nil && !f.carried(l, rec) {
		return err
	}
	operator = operator || err != nil
	if err := history.Apply(i, k, operator); err != nil {
		return err
	}
	rec.applyKey(i, k)
	return nil
}

// carried says whether a leaf may have been copied from the shard before: in a
// shard, as long as its origin has key leaves only. What a former operator
// signed is not judged anew.
func (f *fsck) carried(l api.Leaf, rec *originRecord) bool {
	return f.shard && l.Prev == l.Keys && rec.Head == nil
}

// byAnyKey verifies the line of the last head of a former shard, whose key may
// be closed by now.
func (f *fsck) byAnyKey(rec *originRecord, note tlog.Note) error {
	for _, e := range f.history[rec.Origin].Entries {
		if _, err := note.Verify(e.Key); err == nil {
			return nil
		}
	}
	return errors.New("no line by a key of the origin")
}

// byKey verifies the line of the key in force on a note of the origin's.
func (f *fsck) byKey(rec *originRecord, note tlog.Note) error {
	history := f.history[rec.Origin]
	if history == nil {
		return errors.New("no key leaf came before it")
	}
	e, ok := history.InForce()
	if !ok {
		return errors.New("no key was in force")
	}
	if _, err := note.Verify(e.Key); err != nil {
		return fmt.Errorf("the origin's line: %w", err)
	}
	return nil
}

// rebuildHead checks a head leaf as evidence against ourselves: the key in
// force signed it, the proof in it leads from the head before it, and it can
// be found by its size.
func (f *fsck) rebuildHead(i uint64, l api.Leaf, rec *originRecord) error {
	h, err := api.ParseHeadLeaf(i, l)
	if err != nil {
		return err
	}
	line, err := h.Note.Verify(f.id.cosigner)
	if err != nil {
		return fmt.Errorf("our cosignature: %w", err)
	}
	by := f.byKey
	if f.carried(l, rec) && f.history[l.Origin] != nil {
		by = f.byAnyKey
	}
	if err := by(rec, h.Note); err != nil {
		return err
	}
	cp := h.Head
	size, root := rec.latest()
	if size > 0 {
		if err := tlog.VerifyConsistency(size, cp.Size, l.Proof, root, cp.Root); err != nil {
			return fmt.Errorf("not consistent with the head before it, size %d: %w", size, err)
		}
	}
	at, _ := line.Time()
	rec.Head = &headRecord{Index: i, Size: cp.Size, Root: cp.Root, Time: at.Unix()}
	return nil
}

// indexed looks a head leaf up by its size.
func (f *fsck) indexed(i uint64, l api.Leaf) error {
	f.heads++
	h, err := api.ParseHeadLeaf(i, l)
	if err != nil {
		return err
	}
	value, err := f.p.Get(store.Heads, headKey(l.Origin, h.Head.Size))
	if err != nil {
		return fmt.Errorf("the index of heads, size %d: %w", h.Head.Size, err)
	}
	if sizeOf(value) != i {
		return fmt.Errorf("the index of heads finds leaf %x by its size %d", value, h.Head.Size)
	}
	return nil
}

func (f *fsck) rebuildEvent(i uint64, l api.Leaf, rec *originRecord) error {
	e, note, err := api.ParseEvent(l.Body)
	if err != nil {
		return err
	}
	rec.Event = &eventRecord{Index: i, State: e.State, Heartbeat: e.Heartbeat}
	return f.byKey(rec, note)
}

func (f *fsck) rebuildSeal(i uint64, l api.Leaf, rec *originRecord) error {
	_, note, err := api.ParseStamp(l.Body)
	if err != nil {
		return err
	}
	rec.Sealed = &sealRecord{Index: i, Text: sha256.Sum256(note.Text)}
	return f.byKey(rec, note)
}

func (f *fsck) rebuildFork(i uint64, l api.Leaf, rec *originRecord) error {
	file, err := api.ParseForkFile(l.Body)
	if err != nil {
		return err
	}
	a, b, err := file.Heads()
	if err != nil {
		return err
	}
	if a.Origin != l.Origin || b.Origin != l.Origin {
		return fmt.Errorf("its heads are of %s", a.Origin)
	}
	rec.Forks = append(rec.Forks, i)
	return f.byKey(rec, b.Note)
}

func (f *fsck) rebuildRollback(i uint64, l api.Leaf, rec *originRecord) error {
	file, err := api.ParseRollbackFile(l.Body)
	if err != nil {
		return err
	}
	a, b, err := file.Heads()
	if err != nil {
		return err
	}
	for _, h := range []api.Head{a, b} {
		if _, err := h.Note.Verify(f.id.cosigner); err != nil {
			return fmt.Errorf("our cosignature: %w", err)
		}
	}
	rec.Rollbacks = append(rec.Rollbacks, i)
	return nil
}

// headIndex looks for heads in the index that no leaf tells of.
func (f *fsck) headIndex() {
	seen := 0
	if err := f.p.Scan(store.Heads, nil, func(_, _ []byte) bool { seen++; return true }); err != nil {
		f.fault("index of heads", "cannot be read: %v", err)
	} else if seen != f.heads {
		f.fault("index of heads", "there are %d, the leaves tell of %d", seen, f.heads)
	}
}

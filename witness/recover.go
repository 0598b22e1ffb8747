package witness

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// Recovered is what Recover made.
type Recovered struct {
	Shard    int    `json:"shard"`
	Origin   string `json:"origin"`
	Log      string `json:"log"`      // vkey: auditors pin it anew
	Cosigner string `json:"cosigner"` // vkey

	Former     string `json:"former"`
	FormerSize uint64 `json:"former_size"` // of the log in the folder
	KnownSize  uint64 `json:"known_size"`  // the highest that was reported
	Agents     int    `json:"agents"`      // carried over
}

// Recover opens the next shard of the log in o.Dir, with new keys; the server
// must be stopped. Into it go the former shard's last known checkpoints, and of
// each origin its key leaves and its last head with a fresh cosignature. known
// are checkpoints of the former shard that others hold; they must be signed by
// its log key. The former shard stays as it lies: proofs against it stay valid,
// and auditors pin the new keys.
//
// The shard is built beside and renamed: a crash leaves the former one in force.
func Recover(o Options, why api.ShardReason, known ...[]byte) (out Recovered, err error) {
	if !slices.Contains(api.ShardReasons(), why) {
		return out, fmt.Errorf("witness recover: the reason %q is none of %v", why, api.ShardReasons())
	}
	o = o.withDefaults()
	from, err := inForce(o.Dir)
	if err != nil {
		return out, fmt.Errorf("witness recover: %w", err)
	}
	id, err := readIdentity(from.dir)
	if err != nil {
		return out, fmt.Errorf("witness recover: %w", err)
	}
	st, err := o.Engine(from.dir)
	if err != nil {
		return out, fmt.Errorf("witness recover: %w", err)
	}
	err = st.View(func(r store.Reader) error {
		c := carrier{o: o, from: from.dir, old: r, former: id, why: why, known: known, origin: from.nextName(id.origin)}
		out, err = c.open(from.number + 1)
		return err
	})
	if err := errors.Join(err, st.Close()); err != nil {
		return out, fmt.Errorf("witness recover: %w", err)
	}
	return out, nil
}

// carrier builds one shard from the one before it.
type carrier struct {
	o      Options
	from   string // folder of the former shard
	old    store.Reader
	former identity
	why    api.ShardReason
	known  [][]byte
	origin string // of the new shard

	keys  keys
	batch *batch
	check *fsck // rebuilds the records from the leaves, as every later check will
}

func (c *carrier) open(number int) (out Recovered, err error) {
	body, size, err := c.body()
	if err != nil {
		return out, err
	}
	parent := filepath.Join(c.o.Dir, dirShards)
	if err := makeFolder(parent); err != nil {
		return out, err
	}
	temp, err := os.MkdirTemp(parent, ".new-")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(temp)
	agents, err := c.fill(temp, body)
	if err != nil {
		return out, err
	}
	if err := os.Rename(temp, filepath.Join(parent, strconv.Itoa(number))); err != nil {
		return out, err
	}
	return Recovered{Shard: number, Origin: c.origin, Log: c.keys.log.Vkey().String(), Cosigner: c.keys.cosigner.Vkey().String(),
		Former: c.former.origin, FormerSize: size, KnownSize: body.Size, Agents: agents}, syncFolder(parent)
}

func makeFolder(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return errors.Join(err, syncFolder(filepath.Dir(path)))
}

// body collects the last known checkpoints: the store's, the head file's and
// those that were given.
func (c *carrier) body() (body api.ShardBody, size uint64, err error) {
	state, err := c.old.State()
	if err != nil {
		return body, 0, err
	}
	known := append([][]byte{state.Checkpoint}, c.known...)
	if b, ok := c.convicted(); ok {
		known = append(known, b)
	}
	head, err := os.ReadFile(c.o.HeadFile)
	if err == nil {
		known = append(known, head)
	} else if c.o.HeadFile != "" && !errors.Is(err, fs.ErrNotExist) {
		return body, 0, fmt.Errorf("head file: %w", err)
	}
	body = api.ShardBody{Former: c.former.origin, Log: c.former.log, Cosigner: c.former.cosigner, Reason: c.why}
	byRoot := map[tlog.Checkpoint][]byte{}
	for _, b := range known {
		cp, note, err := c.checkpoint(b)
		if err != nil {
			return body, 0, err
		}
		byRoot[cp] = note
		body.Size = max(body.Size, cp.Size)
	}
	body.Checkpoints = newestOf(byRoot)
	return body, state.Size, c.matches(state)
}

// convicted gives the checkpoint for which the former shard was stopped, if it
// was over one of its own.
func (c *carrier) convicted() ([]byte, bool) {
	b, err := os.ReadFile(filepath.Join(c.from, fileMark))
	if err != nil {
		return nil, false
	}
	sections, err := tlog.ParseSections(markHeader, b)
	if err != nil || len(sections) != 1 {
		return nil, false
	}
	_, _, err = c.checkpoint(sections[0].Data)
	return sections[0].Data, err == nil
}

// checkpoint gives a checkpoint of the former shard with its one line by the
// log's key.
func (c *carrier) checkpoint(b []byte) (cp tlog.Checkpoint, signed []byte, err error) {
	cp, note, err := tlog.ParseSignedCheckpoint(b)
	if err != nil {
		return cp, nil, fmt.Errorf("a known checkpoint: %w", err)
	}
	line, err := note.Verify(c.former.log)
	if err != nil || cp.Origin != c.former.origin {
		return cp, nil, fmt.Errorf("a known checkpoint of %.100q, size %d: it is not signed by the log %s", cp.Origin, cp.Size, c.former.origin)
	}
	return cp, tlog.Note{Text: note.Text, Signatures: []tlog.Signature{line}}.Bytes(), nil
}

// newestOf orders checkpoints by size and root, and keeps what a leaf has room
// for.
func newestOf(all map[tlog.Checkpoint][]byte) (notes [][]byte) {
	const most = 64
	var cps []tlog.Checkpoint
	for cp := range all {
		cps = append(cps, cp)
	}
	slices.SortFunc(cps, func(a, b tlog.Checkpoint) int {
		if a.Size != b.Size {
			return int(min(max(int64(a.Size)-int64(b.Size), -1), 1))
		}
		return bytes.Compare(a.Root[:], b.Root[:])
	})
	for _, cp := range cps[max(0, len(cps)-most):] {
		notes = append(notes, all[cp])
	}
	return notes
}

// matches refuses to carry over from a log whose tiles are not what it signed.
func (c *carrier) matches(state store.State) error {
	cp, _, err := tlog.ParseSignedCheckpoint(state.Checkpoint)
	if err != nil {
		return fmt.Errorf("%w: the newest checkpoint: %w", store.ErrDamaged, err)
	}
	root, err := tlog.TreeRoot(state.Size, c.old)
	if err != nil {
		return err
	}
	if cp.Size != state.Size || cp.Root != root {
		return fmt.Errorf("%w: the tiles at size %d give the root %s, the checkpoint has %s; restore a backup first, then recover",
			store.ErrDamaged, state.Size, root, cp.Root)
	}
	return nil
}

// fill makes the new shard's folder.
func (c *carrier) fill(dir string, body api.ShardBody) (agents int, err error) {
	for _, name := range []string{fileLogKey, fileCosigner} {
		if _, err := tlog.CreateKeyFile(filepath.Join(dir, name)); err != nil {
			return 0, err
		}
	}
	if c.keys, err = loadKeys(dir, c.origin); err != nil {
		return 0, err
	}
	if err := firstCommit(dir, c.origin, c.keys, c.o.Engine); err != nil {
		return 0, err
	}
	st, err := c.o.Engine(dir)
	if err != nil {
		return 0, err
	}
	agents, err = c.write(st, body)
	if err := errors.Join(err, st.Close()); err != nil {
		return 0, err
	}
	return agents, writeDurably(filepath.Join(dir, fileFormat), formatText(c.origin, c.keys))
}

// write commits everything that is carried over at once.
func (c *carrier) write(st store.Store, body api.ShardBody) (agents int, err error) {
	var sealed store.Batch
	err = st.View(func(r store.Reader) error {
		state, err := r.State()
		if err != nil {
			return err
		}
		c.batch = &batch{view: r, cache: newRecordCache(), base: state, origin: c.origin, now: c.o.Now(), records: map[string]*originRecord{}}
		c.check = newFsck(published{Reader: r}, identity{c.origin, c.keys.log.Vkey(), c.keys.cosigner.Vkey()})
		if err := c.add(api.Leaf{Type: api.LeafShard, Origin: c.origin, Body: body.Bytes()}); err != nil {
			return err
		}
		c.batch.keep(c.check.records[c.origin])
		if agents, err = c.origins(); err != nil {
			return err
		}
		sealed, _, err = c.batch.sealed(new(tlog.Edge), c.keys.log)
		return err
	})
	if err != nil {
		return 0, err
	}
	return agents, st.Commit(sealed)
}

// origins carries every origin over.
func (c *carrier) origins() (n int, err error) {
	var all []*originRecord
	err = scanAgents(c.old, func(rec *originRecord) { all = append(all, rec) })
	for _, rec := range all {
		if err == nil {
			err = c.agent(rec)
		}
	}
	return len(all), err
}

func (c *carrier) agent(rec *originRecord) error {
	keys, err := c.keyLeaves(rec)
	if err != nil {
		return fmt.Errorf("keys of %s: %w", rec.Origin, err)
	}
	for _, body := range keys {
		if err := c.add(api.Leaf{Type: api.LeafKey, Origin: rec.Origin, Body: body}); err != nil {
			return err
		}
	}
	if rec.Head == nil {
		c.batch.keep(c.check.records[rec.Origin])
		return nil
	}
	cosig, err := c.head(rec)
	if err != nil {
		return fmt.Errorf("head of %s: %w", rec.Origin, err)
	}
	carried := c.check.records[rec.Origin]
	carried.Head.Cosig, carried.Head.Others = cosig.Line(), rec.Head.Others
	c.batch.keep(carried)
	return nil
}

// keyLeaves walks the former shard's key leaves of an origin back to its
// enrolment, and gives their bodies in order.
func (c *carrier) keyLeaves(rec *originRecord) (bodies [][]byte, err error) {
	for at := api.At(rec.Keys); at.Present; {
		l, err := c.leaf(at.Index)
		if err != nil {
			return nil, err
		}
		if l.Type != api.LeafKey || l.Origin != rec.Origin || l.Keys.Present && l.Keys.Index >= at.Index {
			return nil, fmt.Errorf("%w: leaf %d is no key leaf of this origin", store.ErrDamaged, at.Index)
		}
		bodies = append(bodies, l.Body)
		at = l.Keys
	}
	slices.Reverse(bodies)
	return bodies, nil
}

func (c *carrier) leaf(index uint64) (api.Leaf, error) {
	entries, err := c.old.Entries(index, 1)
	if err != nil {
		return api.Leaf{}, err
	}
	l, err := api.ParseLeaf(entries[0])
	if err != nil {
		return l, fmt.Errorf("%w: leaf %d: %w", store.ErrDamaged, index, err)
	}
	return l, nil
}

// head writes the last head with a fresh cosignature by the new key. It has no
// proof lines: there is no head before it in this shard.
func (c *carrier) head(rec *originRecord) (cosig tlog.Signature, err error) {
	l, err := c.leaf(rec.Head.Index)
	if err != nil {
		return cosig, err
	}
	note, err := tlog.ParseNote(l.Body)
	if err != nil {
		return cosig, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	at := time.Unix(max(c.batch.now.Unix(), rec.Head.Time), 0)
	if cosig, err = c.keys.cosigner.Cosign(note.Text, at); err != nil {
		return cosig, err
	}
	body := tlog.Note{Text: note.Text, Signatures: []tlog.Signature{note.Signatures[0], cosig}}.Bytes()
	return cosig, c.add(api.Leaf{Type: api.LeafHead, Origin: rec.Origin, Body: body})
}

// add appends a leaf with the back links that it has in this shard.
func (c *carrier) add(l api.Leaf) error {
	if rec := c.check.records[l.Origin]; rec != nil {
		l.Prev, l.Keys = api.At(rec.Prev), api.At(rec.Keys)
	}
	index, err := c.batch.append(l)
	if err != nil {
		return err
	}
	if l.Type == api.LeafHead {
		head, err := api.ParseHeadLeaf(index, l)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
		c.batch.put(store.Heads, headKey(l.Origin, head.Head.Size), store.Key64(index))
	}
	c.check.leaf(index, fmt.Sprintf("leaf %d of the new shard", index), l)
	if faults := c.check.report.Faults; len(faults) > 0 {
		return fmt.Errorf("%w: %s: %s", store.ErrDamaged, faults[0].Where, faults[0].Detail)
	}
	return nil
}

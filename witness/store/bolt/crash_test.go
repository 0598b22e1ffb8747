package bolt_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/store"
	"toolguardian/witness/store/bolt"
)

// A commit writes new pages, waits for the disk, writes one meta page, and
// waits again. A power cut before the first wait ends leaves any of the new
// pages written, lost or torn, under the old meta page; between the two waits
// all of them, under a meta page that is old, torn or new. The images of the
// file before and after each commit give every such state.

const sector = 512

// commitImages are the file before and after one commit.
type commitImages struct {
	before, after []byte
	epoch         uint64 // before
}

// crashState is one file that a power cut may leave.
type crashState struct {
	name   string
	file   []byte
	epochs [2]uint64 // the first and last that it may show
}

func TestPowerCutStates(t *testing.T) {
	for _, c := range recordCommits(t, 12) {
		t.Run(fmt.Sprintf("commit %d", c.epoch), func(t *testing.T) {
			t.Parallel()
			for _, s := range c.states(rand.New(rand.NewPCG(1, c.epoch))) {
				checkState(t, c, s)
			}
		})
	}
}

// recordCommits runs commits like a witness's and keeps the file around each.
func recordCommits(t *testing.T, n int) (images []commitImages) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	s := mustOpen(t, path)
	defer s.Close()
	for epoch := range uint64(n) {
		before := image(t, path)
		if err := s.Commit(crashBatch(epoch)); err != nil {
			t.Fatal(err)
		}
		images = append(images, commitImages{before: before, after: image(t, path), epoch: epoch})
	}
	return images
}

// entriesPer is uneven, so that pages split and overflow in some commits.
func entriesPer(epoch uint64) int { return 1 + int(epoch*7%23) }

func sizeAt(epoch uint64) (size uint64) {
	for e := range epoch {
		size += uint64(entriesPer(e))
	}
	return size
}

func crashEntry(i uint64) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "entry %d ", i), 20+int(i%90))
}

func crashBatch(epoch uint64) store.Batch {
	size := sizeAt(epoch)
	b := store.Batch{Size: size, Epoch: epoch, Checkpoint: fmt.Append(nil, epoch+1), Tiles: map[tlog.TileID][]byte{}}
	for i := range uint64(entriesPer(epoch)) {
		b.Entries = append(b.Entries, crashEntry(size+i))
	}
	b.Tiles[tlog.TileID{}] = bytes.Repeat([]byte{byte(epoch)}, min(256, int(size)+len(b.Entries))*tlog.HashSize)
	b.Puts = []store.Put{
		{Table: store.Checkpoints, Key: store.Key64(size), Value: b.Checkpoint},
		{Table: store.Origins, Key: []byte("origin"), Value: fmt.Append(nil, epoch+1)},
	}
	return b
}

// image is the file up to what it uses or has used.
func image(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimRight(b, "\x00")
}

// states makes the states of one commit: all subsets cannot be tried, so the
// extremes are, and random ones between.
func (c commitImages) states(rng *rand.Rand) (states []crashState) {
	page := os.Getpagesize()
	length := (max(len(c.before), len(c.after)) + page - 1) / page * page
	before, after := padded(c.before, length), padded(c.after, length)
	var data []int
	meta := -1
	for at := 0; at < length; at += page {
		switch same := bytes.Equal(before[at:at+page], after[at:at+page]); {
		case same:
		case at < 2*page:
			meta = at
		default:
			data = append(data, at)
		}
	}
	old := [2]uint64{c.epoch, c.epoch}
	add := func(name string, file []byte, epochs [2]uint64) {
		states = append(states, crashState{name, file, epochs})
	}
	for i := range 12 {
		add(fmt.Sprintf("some pages, round %d", i), someOf(rng, before, after, data, page, false), old)
		add(fmt.Sprintf("some pages torn, round %d", i), someOf(rng, before, after, data, page, true), old)
	}
	add("no page", before, old)
	all := bytes.Clone(before)
	for _, at := range data {
		copy(all[at:at+page], after[at:at+page])
	}
	add("all pages, old meta page", all, old)
	for _, n := range []int{8, 16, 40, 64, 72} { // bytes of the new meta page, torn within its checksummed part
		torn := bytes.Clone(all)
		copy(torn[meta:meta+n], after[meta:meta+n])
		add(fmt.Sprintf("all pages, %d bytes of the meta page", n), torn, [2]uint64{c.epoch, c.epoch + 1})
	}
	add("all of it", after, [2]uint64{c.epoch + 1, c.epoch + 1})
	return states
}

func padded(b []byte, n int) []byte { return append(bytes.Clone(b), make([]byte, n-len(b))...) }

// someOf writes each page or not, or some sectors of it.
func someOf(rng *rand.Rand, before, after []byte, data []int, page int, torn bool) []byte {
	file := bytes.Clone(before)
	for _, at := range data {
		step := page
		if torn {
			step = sector
		}
		for s := at; s < at+page; s += step {
			if rng.IntN(2) == 0 {
				copy(file[s:s+step], after[s:s+step])
			}
		}
	}
	return file
}

// checkState opens a state: it is that of a whole commit, all of its data are
// there, and it goes on.
func checkState(t *testing.T, c commitImages, s crashState) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	if err := os.WriteFile(path, s.file, 0o600); err != nil {
		t.Fatal(err)
	}
	// bbolt grows and syncs the file before it writes into it.
	if err := os.Truncate(path, int64(len(s.file)+64*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(bolt.Options{Path: path})
	if err != nil {
		t.Errorf("commit %d, %s: %v", c.epoch, s.name, err)
		return
	}
	defer db.Close()
	epoch := checkWhole(t, db, s)
	if epoch < s.epochs[0] || epoch > s.epochs[1] {
		t.Errorf("commit %d, %s: epoch %d, want %v", c.epoch, s.name, epoch, s.epochs)
		return
	}
	if err := db.Commit(crashBatch(epoch)); err != nil {
		t.Errorf("commit %d, %s: going on: %v", c.epoch, s.name, err)
	}
	if next := checkWhole(t, db, s); next != epoch+1 {
		t.Errorf("commit %d, %s: after going on epoch %d, want %d", c.epoch, s.name, next, epoch+1)
	}
}

// checkWhole compares everything with what the commits up to the epoch wrote.
func checkWhole(t *testing.T, db *bolt.Store, s crashState) (epoch uint64) {
	t.Helper()
	err := db.View(func(r store.Reader) error {
		st, err := r.State()
		if err != nil {
			return err
		}
		epoch = st.Epoch
		if st.Size != sizeAt(epoch) {
			return fmt.Errorf("epoch %d has size %d, want %d", epoch, st.Size, sizeAt(epoch))
		}
		entries, err := r.Entries(0, int(st.Size))
		if err != nil {
			return err
		}
		for i, e := range entries {
			if !bytes.Equal(e, crashEntry(uint64(i))) {
				return fmt.Errorf("entry %d has other bytes", i)
			}
		}
		if epoch == 0 {
			return nil
		}
		origin, err := r.Get(store.Origins, []byte("origin"))
		if err != nil || string(origin) != fmt.Sprint(epoch) || string(st.Checkpoint) != fmt.Sprint(epoch) {
			return fmt.Errorf("epoch %d: origin %q, checkpoint %q, %v", epoch, origin, st.Checkpoint, err)
		}
		last := crashBatch(epoch - 1).Tiles[tlog.TileID{}]
		tile, err := r.ReadTile(tlog.TileID{}, len(last)/tlog.HashSize)
		if err != nil || !bytes.Equal(tile, last) {
			return fmt.Errorf("epoch %d: the tile has other bytes, %v", epoch, err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", s.name, err)
	}
	return epoch
}

// The free list must not hand out a page that is in use: bbolt's own check of
// every page after the commits above.
func TestPagesStayConsistent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := mustOpen(t, path)
	for epoch := range uint64(40) {
		if err := s.Commit(crashBatch(epoch)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

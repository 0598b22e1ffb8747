// Package storetest is the suite that every engine of witness/store passes. It
// guarantees that an engine keeps the contract while the process lives and over
// a clean reopening; what a crash leaves is for the engine's own tests.
package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/witness/store"
)

// Open opens the same store again after it was closed; the first call gives an
// empty one.
type Open func(t *testing.T) store.Store

// Run checks an engine. fresh gives an Open for a new, empty store.
func Run(t *testing.T, fresh func(t *testing.T) Open) {
	tests := []struct {
		name string
		run  func(*testing.T, Open)
	}{
		{"empty", testEmpty},
		{"commit and read", testCommit},
		{"compare and swap", testSwap},
		{"all or nothing", testAtomic},
		{"racing writers", testRace},
		{"snapshots", testSnapshot},
		{"tiles are sliced", testTiles},
		{"scan", testScan},
		{"reopen", testReopen},
		{"values are copies", testCopies},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, fresh(t)) })
	}
}

func open(t *testing.T, o Open) store.Store {
	t.Helper()
	s := o(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func commit(t *testing.T, s store.Store, b store.Batch) {
	t.Helper()
	if err := s.Commit(b); err != nil {
		t.Fatalf("commit at %d, %d: %v", b.Size, b.Epoch, err)
	}
}

func state(t *testing.T, s store.Store) (st store.State) {
	t.Helper()
	view(t, s, func(r store.Reader) (err error) { st, err = r.State(); return err })
	return st
}

func view(t *testing.T, s store.Store, fn func(store.Reader) error) {
	t.Helper()
	if err := s.View(fn); err != nil {
		t.Fatalf("view: %v", err)
	}
}

func testEmpty(t *testing.T, o Open) {
	s := open(t, o)
	if st := state(t, s); st.Size != 0 || st.Epoch != 0 || len(st.Checkpoint) != 0 {
		t.Errorf("an empty store has the state %+v", st)
	}
	view(t, s, func(r store.Reader) error {
		_, tile := r.ReadTile(tlog.TileID{}, 1)
		_, entries := r.Entries(0, 1)
		_, get := r.Get(store.Origins, []byte("k"))
		for what, err := range map[string]error{"tile": tile, "entries": entries, "get": get} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s of an empty store: %v, want ErrNotFound", what, err)
			}
		}
		return nil
	})
}

func testCommit(t *testing.T, o Open) {
	s := open(t, o)
	commit(t, s, store.Batch{
		Entries:    [][]byte{[]byte("a"), []byte("b")},
		Tiles:      map[tlog.TileID][]byte{{}: hashes(2)},
		Checkpoint: []byte("two"),
		Puts:       []store.Put{{Table: store.Blobs, Key: []byte("k"), Value: []byte("v")}},
	})
	if st := state(t, s); st.Size != 2 || st.Epoch != 1 || string(st.Checkpoint) != "two" {
		t.Errorf("state %+v, want size 2, epoch 1, the checkpoint", st)
	}
	view(t, s, func(r store.Reader) error {
		entries, err := r.Entries(0, 2)
		if err != nil || string(bytes.Join(entries, []byte("|"))) != "a|b" {
			t.Errorf("entries %q, %v", entries, err)
		}
		if v, err := r.Get(store.Blobs, []byte("k")); err != nil || string(v) != "v" {
			t.Errorf("get %q, %v", v, err)
		}
		return nil
	})
}

func testSwap(t *testing.T, o Open) {
	s := open(t, o)
	commit(t, s, store.Batch{Entries: [][]byte{[]byte("a")}})
	for _, at := range []store.State{{Size: 0, Epoch: 0}, {Size: 0, Epoch: 1}, {Size: 1, Epoch: 0}, {Size: 2, Epoch: 1}} {
		err := s.Commit(store.Batch{Size: at.Size, Epoch: at.Epoch, Entries: [][]byte{[]byte("x")}})
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("commit at %d, %d: %v, want ErrConflict", at.Size, at.Epoch, err)
		}
	}
	commit(t, s, store.Batch{Size: 1, Epoch: 1})
	if st := state(t, s); st.Size != 1 || st.Epoch != 2 {
		t.Errorf("after a commit without entries: %+v, want size 1, epoch 2", st)
	}
}

// testAtomic fails a batch by its last part and looks for its first.
func testAtomic(t *testing.T, o Open) {
	s := open(t, o)
	bad := store.Batch{
		Entries: [][]byte{[]byte("a")},
		Tiles:   map[tlog.TileID][]byte{{}: hashes(1)},
		Puts:    []store.Put{{Table: store.Blobs, Key: []byte("k"), Value: []byte("v")}, {Table: "no such table", Key: []byte("k")}},
	}
	if err := s.Commit(bad); err == nil {
		t.Fatal("a batch with an unknown table was committed")
	}
	if st := state(t, s); st.Size != 0 || st.Epoch != 0 {
		t.Errorf("a failed batch left the state %+v", st)
	}
	view(t, s, func(r store.Reader) error {
		if _, err := r.Get(store.Blobs, []byte("k")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a failed batch left a key: %v", err)
		}
		if _, err := r.Entries(0, 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a failed batch left an entry: %v", err)
		}
		return nil
	})
	commit(t, s, store.Batch{Entries: [][]byte{[]byte("a")}})
}

func testRace(t *testing.T, o Open) {
	const writers, rounds = 4, 10
	s := open(t, o)
	var won atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range rounds {
				st := state(t, s)
				err := s.Commit(store.Batch{Size: st.Size, Epoch: st.Epoch, Entries: [][]byte{fmt.Appendf(nil, "writer %d", w)}})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("racing commit: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if st := state(t, s); int64(st.Size) != won.Load() || int64(st.Epoch) != won.Load() {
		t.Errorf("%d commits were acknowledged, the state is %+v", won.Load(), st)
	}
}

// testSnapshot commits while a view is open: the view must not move.
func testSnapshot(t *testing.T, o Open) {
	s := open(t, o)
	commit(t, s, store.Batch{Entries: [][]byte{[]byte("a")}, Checkpoint: []byte("one")})
	view(t, s, func(r store.Reader) error {
		done := make(chan error, 1)
		go func() {
			done <- s.Commit(store.Batch{Size: 1, Epoch: 1, Entries: [][]byte{[]byte("b")}, Checkpoint: []byte("two")})
		}()
		if err := <-done; err != nil {
			t.Errorf("commit under an open view: %v", err)
		}
		st, err := r.State()
		if err != nil || st.Size != 1 || string(st.Checkpoint) != "one" {
			t.Errorf("an open view moved to %+v, %v", st, err)
		}
		if _, err := r.Entries(1, 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an open view shows a later entry: %v", err)
		}
		return nil
	})
	if st := state(t, s); st.Size != 2 {
		t.Errorf("a new view shows size %d, want 2", st.Size)
	}
}

func testTiles(t *testing.T, o Open) {
	s := open(t, o)
	wide := hashes(5)
	id := tlog.TileID{Level: 1, Index: 300}
	commit(t, s, store.Batch{Tiles: map[tlog.TileID][]byte{id: wide}})
	view(t, s, func(r store.Reader) error {
		for width := 1; width <= 5; width++ {
			got, err := r.ReadTile(id, width)
			if err != nil || !bytes.Equal(got, wide[:width*tlog.HashSize]) {
				t.Errorf("width %d: %d bytes, %v", width, len(got), err)
			}
		}
		for _, width := range []int{0, 6, -1} {
			if _, err := r.ReadTile(id, width); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("width %d of 5: %v, want ErrNotFound", width, err)
			}
		}
		if _, err := r.ReadTile(tlog.TileID{Level: 0, Index: 300}, 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("another level: %v, want ErrNotFound", err)
		}
		return nil
	})
	for _, bad := range [][]byte{{}, make([]byte, 31), hashes(257)} {
		if s.Commit(store.Batch{Epoch: 1, Tiles: map[tlog.TileID][]byte{id: bad}}) == nil {
			t.Errorf("a tile of %d bytes was taken", len(bad))
		}
	}
}

func testScan(t *testing.T, o Open) {
	s := open(t, o)
	var puts []store.Put
	for _, n := range []uint64{1, 2, 255, 256, 70000} {
		puts = append(puts, store.Put{Table: store.Stamps, Key: store.Key64(n), Value: fmt.Append(nil, n)})
	}
	commit(t, s, store.Batch{Puts: puts})
	for from, want := range map[uint64]string{0: "1 2 255 256 70000 ", 3: "255 256 70000 ", 256: "256 70000 ", 70001: ""} {
		var got string
		view(t, s, func(r store.Reader) error {
			return r.Scan(store.Stamps, store.Key64(from), func(_, v []byte) bool { got += string(v) + " "; return true })
		})
		if got != want {
			t.Errorf("scan from %d: %q, want %q", from, got, want)
		}
	}
	n := 0
	view(t, s, func(r store.Reader) error {
		return r.Scan(store.Stamps, nil, func(_, _ []byte) bool { n++; return n < 2 })
	})
	if n != 2 {
		t.Errorf("a scan that was told to stop at 2 went to %d", n)
	}
}

func testReopen(t *testing.T, o Open) {
	s := o(t)
	for i := range uint64(300) {
		commit(t, s, store.Batch{Size: i, Epoch: i, Entries: [][]byte{fmt.Append(nil, i)}, Checkpoint: fmt.Append(nil, i+1)})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, o)
	if st := state(t, s); st.Size != 300 || st.Epoch != 300 || string(st.Checkpoint) != "300" {
		t.Errorf("reopened at %+v", st)
	}
	view(t, s, func(r store.Reader) error {
		entries, err := r.Entries(0, 300)
		if err != nil || len(entries) != 300 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		for i, e := range entries {
			if string(e) != fmt.Sprint(i) {
				t.Errorf("entry %d is %q", i, e)
			}
		}
		return nil
	})
}

// testCopies keeps values beyond their view, over commits that reuse pages.
func testCopies(t *testing.T, o Open) {
	s := open(t, o)
	key := []byte("k")
	commit(t, s, store.Batch{Puts: []store.Put{{Table: store.Origins, Key: key, Value: []byte("first")}}})
	var kept []byte
	view(t, s, func(r store.Reader) (err error) { kept, err = r.Get(store.Origins, key); return err })
	for i := range uint64(20) {
		commit(t, s, store.Batch{Epoch: i + 1, Puts: []store.Put{{Table: store.Origins, Key: key, Value: []byte("other")}}})
	}
	if string(kept) != "first" {
		t.Errorf("a value changed after its view ended: %q", kept)
	}
}

func hashes(n int) []byte {
	b := make([]byte, 0, n*tlog.HashSize)
	for i := range n {
		h := tlog.LeafHash(fmt.Append(nil, i))
		b = append(b, h[:]...)
	}
	return b
}

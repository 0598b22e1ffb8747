package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"toolguardian/witness/store"
	"toolguardian/witness/store/bolt"
	"toolguardian/witness/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Open {
		path := filepath.Join(t.TempDir(), "log.db")
		return func(t *testing.T) store.Store { return mustOpen(t, path) }
	})
}

func mustOpen(t *testing.T, path string) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(bolt.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecondOpenerIsToldThePid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := mustOpen(t, path)
	_, err := bolt.Open(bolt.Options{Path: path, LockTimeout: 50 * time.Millisecond})
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("second open: %v, want ErrLocked with our pid", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, path).Close(); err != nil {
		t.Errorf("open after close: %v", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	defer mustOpen(t, path).Close()
	for _, name := range []string{path, path + ".lock"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", name, info.Mode(), err)
		}
	}
}

func TestNoSpaceKeepsReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s, err := bolt.Open(bolt.Options{Path: path, MaxBytes: 40 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var size uint64
	for err == nil {
		err = s.Commit(store.Batch{Size: size, Epoch: size, Entries: [][]byte{make([]byte, 60000)}})
		if err == nil {
			size++
		}
		if size > 2000 {
			t.Fatal("the bound on the file does not hold")
		}
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("full file: %v, want ErrNoSpace", err)
	}
	err = s.View(func(r store.Reader) error {
		st, err := r.State()
		if err != nil || st.Size != size {
			t.Errorf("after ErrNoSpace the state is %+v, %v; want size %d", st, err, size)
		}
		_, err = r.Entries(size-1, 1)
		return err
	})
	if err != nil {
		t.Errorf("reading after ErrNoSpace: %v", err)
	}
}

// The damages that users of such files reported: a tail cut off by a full
// disk, zeroed pages, text where a store was.
func TestDamageIsAnErrorNotAPanic(t *testing.T) {
	whole := filledFile(t)
	page := os.Getpagesize()
	tests := []struct {
		name   string
		damage func([]byte) []byte
		want   error
	}{
		{"cut in half", func(b []byte) []byte { return b[:len(b)/2] }, store.ErrDamaged},
		{"cut to a page", func(b []byte) []byte { return b[:page] }, store.ErrDamaged},
		{"cut to one byte", func(b []byte) []byte { return b[:1] }, store.ErrDamaged},
		{"both headers zeroed", func(b []byte) []byte { clear(b[:2*page]); return b }, store.ErrDamaged},
		{"everything but the headers zeroed", func(b []byte) []byte { clear(b[2*page:]); return b }, store.ErrDamaged},
		{"everything but the headers 0xff", func(b []byte) []byte { fill(b[2*page:], 0xff); return b }, store.ErrDamaged},
		{"text", func([]byte) []byte { return []byte(strings.Repeat("not a store\n", 10000)) }, store.ErrDamaged},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log.db")
			if err := os.WriteFile(path, test.damage(append([]byte(nil), whole...)), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := bolt.Open(bolt.Options{Path: path, LockTimeout: 200 * time.Millisecond})
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("open: %v, want %v naming the file", err, test.want)
			}
			if errors.Is(err, store.ErrLocked) {
				t.Error("damage was reported as a lock")
			}
		})
	}
}

// Damage inside a page that opening does not touch must show as an error of
// the read that meets it, or as other bytes, which fsck finds.
func TestFlippedBytesNeverPanic(t *testing.T) {
	whole := filledFile(t)
	page := os.Getpagesize()
	for at := 2 * page; at < len(whole); at += page/2 + 7 {
		b := append([]byte(nil), whole...)
		fill(b[at:min(at+16, len(b))], 0xa5)
		path := filepath.Join(t.TempDir(), "log.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := bolt.Open(bolt.Options{Path: path})
		if err != nil {
			continue
		}
		s.View(func(r store.Reader) error {
			for i := range uint64(filled) {
				r.Entries(i, 1)
			}
			return r.Scan(store.Blobs, nil, func(_, _ []byte) bool { return true })
		})
		s.Commit(store.Batch{Size: filled, Epoch: filled, Entries: [][]byte{[]byte("next")}})
		s.Close()
	}
}

// Damage that appears under an open store ends it with an error; even then it
// can be closed.
func TestDamageUnderAnOpenStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	if err := os.WriteFile(path, filledFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	junk := make([]byte, len(filledFile(t))-2*os.Getpagesize())
	fill(junk, 0xff)
	if _, err := f.WriteAt(junk, int64(2*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	err = s.Commit(store.Batch{Size: filled, Epoch: filled, Entries: [][]byte{[]byte("next")}})
	if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("commit: %v, want ErrDamaged", err)
	}
	if err := s.View(func(store.Reader) error { return nil }); !errors.Is(err, store.ErrBroken) {
		t.Errorf("view after it: %v, want ErrBroken", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("close waits for ever")
	}
}

const filled = 50

func filledFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	s := mustOpen(t, path)
	for i := range uint64(filled) {
		err := s.Commit(store.Batch{Size: i, Epoch: i, Entries: [][]byte{make([]byte, 700)},
			Puts: []store.Put{{Table: store.Blobs, Key: store.Key64(i), Value: make([]byte, 100)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return usedPart(t, path, b)
}

// usedPart leaves out what bbolt allocated ahead, where damage means nothing.
func usedPart(t *testing.T, path string, b []byte) []byte {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	return b[:tx.Size()]
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	mustOpen(t, path).Close()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte("tool-guardian/witness-store/2"))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = bolt.Open(bolt.Options{Path: path})
	if !errors.Is(err, store.ErrVersion) || !strings.Contains(err.Error(), bolt.Format) {
		t.Errorf("open: %v, want ErrVersion naming both formats", err)
	}
}

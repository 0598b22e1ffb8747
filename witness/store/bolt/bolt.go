package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"toolguardian/chain/tlog"
	"toolguardian/witness/store"
)

// Format is the value of the file's format key.
const Format = "tool-guardian/witness-store/1"

// The buckets beside the tables. Tiles are keyed level ‖ BE64(index), entries
// BE64(index).
var (
	bucketMeta    = []byte("meta")
	bucketEntries = []byte("entries")
	bucketTiles   = []byte("tiles")
	keyFormat     = []byte("format")
	keyState      = []byte("state")
)

// mapSize is reserved address space, not memory: while the file fits, a long
// read never makes a writer wait for a new map.
const mapSize = 1 << 30

// Options of Open.
type Options struct {
	Path        string        // of the file; its folder must exist
	LockTimeout time.Duration // zero: 2 s
	MaxBytes    int           // bound on the file; zero: none
}

// Store is a store.Store in one file.
type Store struct {
	db   *bbolt.DB
	lock *flock.Flock

	// gate keeps new readers out while a commit is between showing its meta
	// page and having it on disk.
	gate   sync.RWMutex
	broken error // guarded by gate
	stuck  bool  // bbolt's writer lock is lost; guarded by gate

	suspect bool // opened after a commit of unknown outcome, and not trusted yet

	writer sync.Mutex // one commit at a time
}

var _ store.Store = (*Store)(nil)

// Open opens the store at o.Path, creating it when there is none. Errors:
// store.ErrLocked names the holder's pid, store.ErrVersion both formats,
// store.ErrDamaged what was found.
func Open(o Options) (*Store, error) {
	if o.LockTimeout == 0 {
		o.LockTimeout = 2 * time.Second
	}
	lock, err := takeLock(o.Path+".lock", o.LockTimeout)
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock}
	if err := s.open(o); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return s, nil
}

func (s *Store) open(o Options) error {
	fresh, err := isFresh(o.Path)
	if err != nil {
		return err
	}
	if s.suspect, err = rewriteSuspect(o.Path); err != nil {
		return err
	}
	if s.db, err = openFile(o); err != nil {
		return err
	}
	err = guard(func() error { return s.prepare(fresh) })
	if err == nil && s.suspect {
		err = guard(s.checkPages)
	}
	if err == nil && fresh {
		err = syncFolder(filepath.Dir(o.Path))
	}
	if err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// openFile opens bbolt's file and lets go of it again when bbolt panics over
// what is in it.
func openFile(o Options) (db *bbolt.DB, err error) {
	var file *os.File
	options := bbolt.Options{
		Timeout:         o.LockTimeout,
		InitialMmapSize: mapSize,
		MaxSize:         o.MaxBytes,
		FreelistType:    bbolt.FreelistMapType,
		NoStatistics:    true,
		OpenFile: func(path string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			file, err = os.OpenFile(path, flag, mode)
			return file, err
		},
	}
	err = guard(func() error {
		db, err = bbolt.Open(o.Path, 0o600, &options)
		return err
	})
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open %s: %w by a process that does not use our lock", o.Path, store.ErrLocked)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), noSpace(err):
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	if file != nil {
		file.Close() // after a panic inside Open bbolt keeps it; a second close only fails
	}
	return nil, damaged(o.Path, err)
}

func damaged(path string, err error) error {
	return fmt.Errorf("open %s: %w: %w; keep a copy of the file, restore a backup into a new folder and let the agents send their heads again",
		path, store.ErrDamaged, err)
}

func isFresh(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return err == nil && info.Size() == 0, err
}

// prepare checks the file against its header and format, and gives a new file
// its buckets in one transaction: a crash leaves none of them or all.
func (s *Store) prepare(fresh bool) error {
	err := s.db.View(func(tx *bbolt.Tx) error {
		if err := wholeFile(tx, s.db.Path()); err != nil {
			return err
		}
		return checkFormat(tx)
	})
	if !errors.Is(err, errNoFormat) {
		return err
	}
	if !fresh && !s.empty() {
		return damaged(s.db.Path(), err)
	}
	return s.db.Update(create)
}

// wholeFile refuses a file that is shorter than its meta page says, which the
// memory map would answer with a fault much later.
func wholeFile(tx *bbolt.Tx, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return damaged(path, fmt.Errorf("the file has %d bytes, its header wants %d", info.Size(), tx.Size()))
	}
	return nil
}

var errNoFormat = errors.New("no format key")

func checkFormat(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		return errNoFormat
	}
	if got := meta.Get(keyFormat); string(got) != Format {
		return fmt.Errorf("%w: the file is %.80q, this release writes %q: use the release that wrote it",
			store.ErrVersion, got, Format)
	}
	for _, name := range buckets() {
		if tx.Bucket(name) == nil {
			return damaged(tx.DB().Path(), fmt.Errorf("the bucket %q is missing", name))
		}
	}
	return nil
}

// empty says whether the file holds nothing at all: a crash between bbolt's
// first pages and our buckets leaves it so.
func (s *Store) empty() bool {
	none := true
	err := s.db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func([]byte, *bbolt.Bucket) error { none = false; return nil })
	})
	return err == nil && none
}

func create(tx *bbolt.Tx) error {
	for _, name := range buckets() {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketMeta).Put(keyFormat, []byte(Format))
}

func buckets() [][]byte {
	names := [][]byte{bucketMeta, bucketEntries, bucketTiles}
	for _, t := range store.Tables() {
		names = append(names, []byte(t))
	}
	return names
}

// Close waits for open views. A store whose commit ended in a panic is left to
// the end of the process: bbolt's Close would wait for that commit for ever.
func (s *Store) Close() error {
	s.gate.RLock()
	stuck := s.stuck
	s.gate.RUnlock()
	if stuck {
		return s.lock.Unlock()
	}
	err := guard(s.db.Close)
	return errors.Join(err, s.lock.Unlock())
}

// View implements store.Store.
func (s *Store) View(fn func(store.Reader) error) error {
	tx, err := s.beginView()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(reader{tx})
}

func (s *Store) beginView() (tx *bbolt.Tx, err error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.broken != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrBroken, s.broken)
	}
	err = guard(func() error {
		tx, err = s.db.Begin(false)
		return err
	})
	return tx, err
}

// Commit implements store.Store.
func (s *Store) Commit(b store.Batch) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	tx, err := s.beginWrite()
	if err != nil {
		return err
	}
	if err := guard(func() error { return fill(tx, b) }); err != nil {
		return s.abandon(tx, err)
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	err = guard(tx.Commit)
	if err == nil || noSpace(err) && s.stands(b) {
		return asNoSpace(err)
	}
	s.breakDown(tx, err)
	return fmt.Errorf("commit: %w", err)
}

// breakDown ends the store's use; the caller holds the gate. Rolling back sets
// bbolt's writer lock free, unless that fails too.
func (s *Store) breakDown(tx *bbolt.Tx, err error) {
	s.broken = errors.Join(err, markSuspect(s.db.Path(), err))
	if back := guard(tx.Rollback); back != nil && !errors.Is(back, bolterrors.ErrTxClosed) {
		s.stuck = true
	}
}

// stands says whether the file still shows the state that b was made on.
func (s *Store) stands(b store.Batch) bool {
	var now store.State
	err := guard(func() error {
		return s.db.View(func(tx *bbolt.Tx) (err error) {
			now, err = readState(tx)
			return err
		})
	})
	return err == nil && now.Size == b.Size && now.Epoch == b.Epoch
}

func (s *Store) beginWrite() (tx *bbolt.Tx, err error) {
	s.gate.RLock()
	broken := s.broken
	s.gate.RUnlock()
	if broken != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrBroken, broken)
	}
	err = guard(func() error {
		tx, err = s.db.Begin(true)
		return err
	})
	return tx, err
}

// abandon gives up a transaction of which nothing has reached the file.
func (s *Store) abandon(tx *bbolt.Tx, err error) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	if errors.Is(err, store.ErrDamaged) {
		s.breakDown(tx, err)
	} else if back := guard(tx.Rollback); back != nil {
		s.broken, s.stuck = errors.Join(err, back), true
	}
	return asNoSpace(err)
}

// noSpace says whether a failed commit ran out of room before it changed what
// readers see. A write or a growth that fails leaves the old meta page in
// force. A failed sync is never "no space": what it lost is unknown, whatever
// its errno says.
func noSpace(err error) bool {
	if errors.Is(err, bolterrors.ErrMaxSizeReached) {
		return true
	}
	var path *fs.PathError
	return errors.As(err, &path) && path.Op != "sync" &&
		(errors.Is(path.Err, syscall.ENOSPC) || errors.Is(path.Err, syscall.EDQUOT) || errors.Is(path.Err, syscall.EFBIG))
}

func asNoSpace(err error) error {
	if err == nil || !noSpace(err) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
}

// fill puts a batch into a transaction, after the compare of compare-and-swap.
func fill(tx *bbolt.Tx, b store.Batch) error {
	now, err := readState(tx)
	if err != nil {
		return err
	}
	if now.Size != b.Size || now.Epoch != b.Epoch {
		return fmt.Errorf("%w: it is at size %d, epoch %d, the batch was made at %d, %d",
			store.ErrConflict, now.Size, now.Epoch, b.Size, b.Epoch)
	}
	if err := putEntries(tx, b.Size, b.Entries); err != nil {
		return err
	}
	if err := putTiles(tx, b.Tiles); err != nil {
		return err
	}
	for _, p := range b.Puts {
		if err := putTable(tx, p); err != nil {
			return err
		}
	}
	next := store.State{Size: b.Size + uint64(len(b.Entries)), Epoch: b.Epoch + 1, Checkpoint: b.Checkpoint}
	return tx.Bucket(bucketMeta).Put(keyState, encodeState(next))
}

func putEntries(tx *bbolt.Tx, size uint64, entries [][]byte) error {
	bucket := appendOnly(tx.Bucket(bucketEntries))
	for i, e := range entries {
		if err := bucket.Put(store.Key64(size+uint64(i)), e); err != nil {
			return fmt.Errorf("entry %d: %w", size+uint64(i), err)
		}
	}
	return nil
}

func putTiles(tx *bbolt.Tx, tiles map[tlog.TileID][]byte) error {
	bucket := appendOnly(tx.Bucket(bucketTiles))
	for id, data := range tiles {
		if n := len(data); n == 0 || n%tlog.HashSize != 0 || n > tlog.TileWidth*tlog.HashSize {
			return fmt.Errorf("tile %d/%d: %d bytes are not 1 to %d hashes", id.Level, id.Index, n, tlog.TileWidth)
		}
		if err := bucket.Put(tileKey(id), data); err != nil {
			return fmt.Errorf("tile %d/%d: %w", id.Level, id.Index, err)
		}
	}
	return nil
}

func putTable(tx *bbolt.Tx, p store.Put) error {
	bucket := tx.Bucket([]byte(p.Table))
	if bucket == nil {
		return fmt.Errorf("table %q: %w", p.Table, store.ErrNotFound)
	}
	if p.Table == store.Checkpoints || p.Table == store.Stamps {
		bucket = appendOnly(bucket)
	}
	if err := bucket.Put(p.Key, p.Value); err != nil {
		return fmt.Errorf("table %s: %w", p.Table, err)
	}
	return nil
}

// appendOnly fills pages to the brim: with keys in rising order a half-empty
// page is never filled later.
func appendOnly(b *bbolt.Bucket) *bbolt.Bucket {
	b.FillPercent = 1.0
	return b
}

func tileKey(id tlog.TileID) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(id.Level)}, id.Index)
}

// encodeState is size BE64, epoch BE64, then the checkpoint.
func encodeState(s store.State) []byte {
	b := binary.BigEndian.AppendUint64(nil, s.Size)
	b = binary.BigEndian.AppendUint64(b, s.Epoch)
	return append(b, s.Checkpoint...)
}

// fileName is the store's file in a witness's data folder.
const fileName = "log.db"

// OpenDir opens the store of a witness's data folder; it is a witness.Engine.
func OpenDir(dir string) (store.Store, error) {
	return Open(Options{Path: filepath.Join(dir, fileName)})
}

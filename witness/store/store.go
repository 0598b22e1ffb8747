package store

import (
	"errors"

	"toolguardian/chain/tlog"
)

var (
	// ErrConflict: the state is not the one the batch was made on, because
	// another writer was faster. Nothing was applied.
	ErrConflict = errors.New("the log has moved on")
	// ErrNoSpace: no room for the batch. Nothing was applied; reading goes on
	// and a later commit may succeed.
	ErrNoSpace = errors.New("no space for the log")
	// ErrLocked: another process has the store open.
	ErrLocked = errors.New("the store is in use")
	// ErrDamaged: the store's file is not what an honest crash leaves.
	ErrDamaged = errors.New("the store is damaged")
	// ErrVersion: the store is of a format this release does not write.
	ErrVersion = errors.New("unknown store format")
	// ErrNotFound: there is no such entry, tile or key.
	ErrNotFound = errors.New("not found in the store")
	// ErrBroken: an earlier commit failed with its outcome unknown. The store
	// answers nothing more; the process must end and open it again.
	ErrBroken = errors.New("the store failed before and must be opened again")
)

// State is what a log was when it was read. The zero State is the store that
// was never written.
type State struct {
	Size       uint64 // entries
	Epoch      uint64 // commits so far
	Checkpoint []byte // the newest signed checkpoint, of this size
}

// Table names a set of keys and values beside the entries and tiles.
type Table string

// The tables. Keys of append-only tables are written in rising order.
const (
	Origins     Table = "origins"     // by SHA-256 of the origin
	Heads       Table = "heads"       // by SHA-256 of the origin, then size, big endian
	Checkpoints Table = "checkpoints" // append-only, by size, big endian
	Stamps      Table = "stamps"      // append-only, by size, big endian
	Blobs       Table = "blobs"       // by SHA-256 of the blob
	Tokens      Table = "tokens"      // by SHA-256 of the enrolment token
	Logs        Table = "logs"        // by SHA-256 of the origin of another log
)

// Tables is every table, in the order an engine creates them.
func Tables() []Table { return []Table{Origins, Heads, Checkpoints, Stamps, Blobs, Tokens, Logs} }

// Put sets a key. Nothing is ever deleted from a log.
type Put struct {
	Table Table
	Key   []byte
	Value []byte
}

// Batch is one commit: it lands only while the store is at (Size, Epoch), and
// leaves it at (Size + len(Entries), Epoch + 1).
type Batch struct {
	Size, Epoch uint64
	Entries     [][]byte               // appended in order, at most 65,535 bytes each
	Tiles       map[tlog.TileID][]byte // widest form; levels from 0
	Checkpoint  []byte                 // signed, of the new size
	Puts        []Put
}

// Reader is one consistent, durable snapshot. What it returns is the caller's
// to keep.
type Reader interface {
	State() (State, error)
	tlog.TileReader // errors: ErrNotFound where the tile is absent or narrower

	// Entries gives n entries from index on; ErrNotFound when one is missing.
	Entries(index uint64, n int) ([][]byte, error)
	// Get gives the value of a key, or ErrNotFound.
	Get(t Table, key []byte) ([]byte, error)
	// Scan calls fn for the keys from from on in rising order until it returns
	// false. The slices are valid only during the call.
	Scan(t Table, from []byte, fn func(key, value []byte) bool) error
}

// Store keeps one log. Views may run concurrently with each other and with a
// commit.
type Store interface {
	// View runs fn on the newest durable state.
	View(fn func(Reader) error) error
	// Commit applies b. Nil means durable. ErrConflict and ErrNoSpace mean
	// that nothing was applied. After any other error the outcome is unknown
	// and every later call gives ErrBroken.
	Commit(b Batch) error
	Close() error
}

// Key64 is the key of a table that is kept by size.
func Key64(n uint64) []byte {
	return []byte{byte(n >> 56), byte(n >> 48), byte(n >> 40), byte(n >> 32),
		byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

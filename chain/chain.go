package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// Chain is an open chain. Its methods may be called from many goroutines;
// many processes may have the same folder open.
type Chain struct {
	o    Options
	at   layout
	log  *slog.Logger
	lock *lockFile

	turn    chan struct{} // holds one element while a goroutine is inside
	closing chan struct{}
	work    sync.WaitGroup
	rounds  rounds

	// Owned by whoever has the turn; what it says of the files is true while
	// that goroutine holds the lock and the generation is gen.
	gen    atomic.Uint64 // also read without the turn
	stale  bool          // the files must be read anew whatever the generation
	place  place
	keys   keyPair
	signer *tlog.Signer
	seg    openSegment
	born   birth // of seg, once it was asked for
	tail   tail
	people map[[32]byte][32]byte
	head   head

	mu       sync.Mutex
	tree     *tree // replaced as a whole
	written  mark
	synced   mark
	failed   error // a sync failed and its lines are not rewritten yet
	ended    error
	closed   bool
	saving   bool
	retired  []File
	progress chan struct{} // closed when synced moves
	old      *Predecessor
}

// openSegment is the last segment and its salts. Bytes from end on are not
// written yet.
type openSegment struct {
	first         uint64
	lines, salts  File
	end, saltsEnd int64
}

// tail holds the bytes of the last segment behind start, which no sync of
// ours covers yet: they are written again if their sync fails.
type tail struct {
	start        mark
	lines, salts []byte
}

// mark is a state of the files: what was written, or what is durable.
type mark struct {
	seg  openSegment
	size uint64
}

// Predecessor is the chain that Open closed, and why.
type Predecessor struct {
	receipts.Old
	Reason string
}

// Open opens the chain in o.Dir, or creates one. A torn tail is moved to
// quarantine/ and told in a receipt. A chain that may not be continued is
// moved to closed/ and a successor opens; Predecessor tells.
func Open(ctx context.Context, o Options) (*Chain, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	at := layout{fs: o.FS, dir: o.Dir}
	if err := at.prepare(); err != nil {
		return nil, err
	}
	lock, err := openLock(o.FS, at.path(lockName))
	if err != nil {
		return nil, err
	}
	c := &Chain{o: o, at: at, log: o.Logger, lock: lock,
		turn: make(chan struct{}, 1), closing: make(chan struct{}), rounds: newRounds(),
		people: make(map[[32]byte][32]byte), progress: make(chan struct{})}
	gen, err := lock.acquire(ctx, time.Now().Add(o.LockTimeout))
	if err != nil {
		return nil, errors.Join(err, lock.close())
	}
	c.gen.Store(gen)
	err = errors.Join(c.open(), lock.release())
	if err != nil {
		return nil, errors.Join(err, c.closeFiles())
	}
	c.saveTiles()
	return c, nil
}

// open runs with the lock held.
func (c *Chain) open() error {
	f, err := c.settled()
	if err != nil && !errors.Is(err, ErrNoChain) {
		return err
	}
	if f, err = c.continued(f); err != nil {
		return err
	}
	return c.use(f)
}

// use makes what was found the state to go on from: recovered and synced.
func (c *Chain) use(f *found) error {
	seg, err := c.openSegment(f.segment)
	if err != nil {
		return err
	}
	if err := c.settleKeys(seg, f.place); err != nil {
		return errors.Join(err, seg.close())
	}
	seg.end = f.good
	if seg.saltsEnd, err = saltsBefore(seg.salts, f.place.seq); err != nil {
		return err
	}
	c.head = head{}
	c.setTree(f.tree)
	c.swap(seg, f.place)
	clear(c.people)
	if err := c.recover(f); err != nil {
		return err
	}
	if err := c.syncAll(); err != nil {
		return err
	}
	if err := c.finishErase(); err != nil {
		c.log.Error("an erasure is not finished, the next start goes on with it", "err", err)
	}
	return nil
}

func (s openSegment) close() error { return errors.Join(s.lines.Close(), s.salts.Close()) }

// loadKeys reads the keys and holds them against those the chain names.
func (c *Chain) loadKeys(p place) error {
	keys, err := loadKeyPair(c.at.fs, c.at.path(keysName))
	if err != nil {
		return err
	}
	if !publicOf(keys.receipt).Equal(p.pub) || !publicOf(keys.head).Equal(p.head.Public()) {
		return fmt.Errorf("%w: the keys in %s are not those line %d put in force: put the right ones there",
			ErrKey, c.at.path(keysName), p.keySeq)
	}
	signer, err := tlog.NewSigner(p.origin, tlog.KeyEd25519, keys.head)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys, c.signer = keys, signer
	return nil
}

func (c *Chain) openSegment(first uint64) (openSegment, error) {
	lines, err := c.at.fs.OpenFile(c.at.segment(first), os.O_RDWR, 0)
	if err != nil {
		return openSegment{}, err
	}
	salts, err := c.at.fs.OpenFile(c.at.salts(first), os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return openSegment{}, errors.Join(noSpace(err), lines.Close())
	}
	return openSegment{first: first, lines: lines, salts: salts}, nil
}

// Origin names the chain.
func (c *Chain) Origin() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signer.Vkey().Name
}

// HeadKey is the key that signs heads, as a verifier pins it.
func (c *Chain) HeadKey() tlog.Vkey {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signer.Vkey()
}

// Dir is the evidence folder.
func (c *Chain) Dir() string { return c.o.Dir }

// Predecessor tells of the chain that Open had to close; false if none.
func (c *Chain) Predecessor() (Predecessor, bool) {
	if c.old == nil {
		return Predecessor{}, false
	}
	return *c.old, true
}

// Close lets those inside finish, then closes the files. Nothing is lost by
// not calling it.
func (c *Chain) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.closing)
	c.mu.Unlock()
	c.work.Wait()
	return c.closeFiles()
}

func (c *Chain) closeFiles() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.lock.close()
	for _, f := range append(c.retired, c.seg.lines, c.seg.salts) {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	c.retired, c.seg = nil, openSegment{}
	return err
}

func (c *Chain) setTree(t *tree) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tree = t
}

func (c *Chain) currentTree() *tree {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tree
}

// ReadTile is tlog.TileReader.
func (c *Chain) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	return c.currentTree().ReadTile(id, width)
}

// ProveInclusion proves that line i is in the tree of size n.
func (c *Chain) ProveInclusion(i, n uint64) ([]tlog.Hash, error) {
	return tlog.ProveInclusion(i, n, c)
}

// ProveConsistency proves that the tree of size n continues that of size m.
func (c *Chain) ProveConsistency(m, n uint64) ([]tlog.Hash, error) {
	return tlog.ProveConsistency(m, n, c)
}

// Line returns line seq without "\n". A line that is not the one the tree
// knows is an error.
func (c *Chain) Line(seq uint64) ([]byte, error) {
	t := c.currentTree()
	leaf, err := t.leaf(seq)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	at, err := c.at.find(seq)
	if err != nil {
		return nil, err
	}
	if tlog.LeafHash(at.line) != leaf {
		return nil, fmt.Errorf("line %d was altered: %s, byte %d", seq, c.at.segment(at.segment), at.off)
	}
	return at.line, nil
}

// Salt returns the salt of a committed field, ErrErased where it was
// shredded. Salts of persons come from PersonSalt.
func (c *Chain) Salt(seq uint64, f receipts.FieldID) ([32]byte, error) {
	return c.at.saltOf(seq, f)
}

func (l layout) saltOf(seq uint64, f receipts.FieldID) ([32]byte, error) {
	segments, err := l.segments()
	if err != nil {
		return [32]byte{}, err
	}
	first, ok := holding(segments, seq)
	if !ok {
		return [32]byte{}, fmt.Errorf("%w: line %d", ErrNotFound, seq)
	}
	return l.salt(first, saltKey{seq, f})
}

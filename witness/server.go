package witness

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// Server is one witness: its keys, its store and its one sequencer.
type Server struct {
	o      Options
	origin string
	shard  shard // in force
	keys   keys
	store  store.Store
	former []formerShard
	nodes  *tlog.NodeCache // for proofs

	foreign   map[string][]tlog.Vkey // keys of other logs that we cosign, by origin
	cosigners *cosigners
	cosignMu  sync.Mutex // one round at a time
	seq       *sequencer
	limits    *limits

	conflicts conflicts

	workers  *semaphore.Weighted // bounds the judging of heads to the cores
	activity chan struct{}       // holds one signal after the first leaf that is not a time leaf
	newest   chan store.State    // holds the newest durable state for the head file

	stampMu sync.Mutex // one timestamp round at a time
	stamps  timeState
	metrics *metrics
	audit   audit
}

// New opens the witness of o.Dir and checks that the log is what its last
// checkpoint says: the tiles give its root, the signature is ours, and the
// head file's checkpoint is in it. It signs nothing; Run does. A witness that
// was convicted by its own signature gives ErrMisbehaved. Call Close in the end.
func New(o Options) (*Server, error) {
	if sh, err := inForce(o.Dir); err == nil {
		if err := checkMark(sh.dir, o.Dir); err != nil {
			return nil, fmt.Errorf("witness: %w", err)
		}
	}
	return open(o)
}

// open is New also for a witness that may sign nothing more, to be read.
func open(o Options) (*Server, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	all, err := shardsOf(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	sh := all[len(all)-1]
	origin, k, err := openDir(sh.dir)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	if len(o.Authorities) == 0 {
		a, err := builtIn(o)
		if err != nil {
			return nil, fmt.Errorf("witness: %w", err)
		}
		o.Authorities = []Authority{a}
	}
	st, err := o.Engine(sh.dir)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	s := assemble(o, origin, sh, k, st)
	s.former = openFormer(o, all[:len(all)-1])
	if err = s.trustStore(); err == nil {
		err = s.load()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("witness: %w", err), s.Close())
	}
	return s, nil
}

// cachedTiles bounds what proofs keep in memory: 16 MiB, the nodes of a
// quarter million leaves.
const cachedTiles = 1024

func assemble(o Options, origin string, sh shard, k keys, st store.Store) *Server {
	s := &Server{
		o: o, origin: origin, shard: sh, keys: k, store: st,
		nodes:     tlog.NewNodeCache(cachedTiles),
		limits:    newLimits(o.RatePerSecond),
		conflicts: conflicts{of: map[string]*conflictCount{}},
		workers:   semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0))),
		activity:  make(chan struct{}, 1),
		newest:    make(chan store.State, 1),
	}
	s.seq = &sequencer{
		store: st, origin: origin, log: k.log, clock: newClockGuard(o.Now, o.Mono), logger: o.Logger,
		cache: newRecordCache(), queue: make(chan *pending, queueLength), stopped: make(chan struct{}), onCommit: s.landed,
	}
	s.foreign, s.cosigners = foreignLogs(o.CosignLogs), newCosigners(o)
	s.seq.hold = s.cosigners.hold
	s.metrics = newMetrics()
	s.seq.observe = s.metrics.committed
	s.seq.healthy.Store(true)
	s.seq.halted.Store(checkMark(sh.dir, o.Dir) != nil)
	return s
}

// load is the start of a process over a store that another one left.
func (s *Server) load() error {
	return s.store.View(func(r store.Reader) error {
		state, err := r.State()
		if err != nil {
			return err
		}
		if err := s.checkState(state, r); err != nil {
			return err
		}
		active, err := lastActive(state.Size, r)
		if err != nil {
			return err
		}
		s.seq.active.Store(active)
		s.signalActivity(active)
		if err := s.judgeClock(r); err != nil {
			return err
		}
		if err := s.loadCosigned(r); err != nil {
			return err
		}
		s.newest <- state // a crash may have come between commit and head file
		return s.checkHeadFile(state, r)
	})
}

// checkState rebuilds the root from the tiles and compares it with the signed
// checkpoint, before anything is signed on top.
func (s *Server) checkState(state store.State, r store.Reader) error {
	cp, note, err := tlog.ParseSignedCheckpoint(state.Checkpoint)
	if err != nil {
		return fmt.Errorf("%w: the newest checkpoint: %w", store.ErrDamaged, err)
	}
	if _, err := note.Verify(s.keys.log.Vkey()); err != nil {
		return fmt.Errorf("%w: the newest checkpoint is not signed by the key in the folder: %w", store.ErrDamaged, err)
	}
	if cp.Origin != s.origin || cp.Size != state.Size {
		return fmt.Errorf("%w: the newest checkpoint is of %s at size %d, the log is %s at size %d",
			store.ErrDamaged, cp.Origin, cp.Size, s.origin, state.Size)
	}
	return s.seq.follow(state, r)
}

// lastActive finds the newest leaf that is not a time leaf, from the end. Time
// leaves alone are never stamped, so there are only as many at the end as one
// round makes.
func lastActive(size uint64, r store.Reader) (uint64, error) {
	for ; size > 0; size-- {
		entries, err := r.Entries(size-1, 1)
		if err != nil {
			return 0, err
		}
		if l, err := api.ParseLeaf(entries[0]); err != nil || l.Type != api.LeafTime {
			return size, nil
		}
	}
	return 0, nil
}

// landed runs in the sequencer after each commit and never waits.
func (s *Server) landed(state store.State) {
	s.signalActivity(s.seq.active.Load())
	select {
	case <-s.newest:
	default:
	}
	s.newest <- state // the sequencer is the only sender, and has just made room
}

func (s *Server) signalActivity(active uint64) {
	if active == 0 {
		return
	}
	select {
	case s.activity <- struct{}{}:
	default:
	}
}

// Run serves until ctx ends: sequencer, timestamps, head file and the admin
// socket. Then it commits what was queued and returns nil. Any error means
// that the process should end; ErrFatal that nothing was signed any more.
func (s *Server) Run(ctx context.Context) error {
	if s.o.HeadFile == "" && len(s.cosigners.all) == 0 {
		s.o.Logger.Warn("no head file and no cosigners: a folder restored from an old copy would not be noticed")
	}
	admin, err := s.listenAdmin()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.seq.run(ctx) })
	g.Go(func() error { return s.stampLoop(ctx) })
	g.Go(func() error { return s.headFileLoop(ctx) })
	g.Go(func() error { return s.auditLoop(ctx) })
	g.Go(func() error { return s.cosignLoop(ctx) })
	g.Go(func() error { return s.serveAdmin(ctx, admin) })
	return g.Wait()
}

// Close closes the stores; call it after Run has returned.
func (s *Server) Close() error { return errors.Join(s.store.Close(), closeFormer(s.former)) }

// Vkeys are the log's key, type 01, and the cosigner's, type 04.
func (s *Server) Vkeys() (log, cosigner tlog.Vkey) {
	return s.keys.log.Vkey(), s.keys.cosigner.Vkey()
}

// Ready says whether a head sent now could be cosigned.
func (s *Server) Ready() error {
	select {
	case <-s.seq.stopped:
		return errStopped
	default:
	}
	if s.seq.halted.Load() {
		return errHalted
	}
	if !s.seq.healthy.Load() {
		return fmt.Errorf("%w: the last batch was not written; see the log", api.ErrUnavailable)
	}
	if err := s.cosigners.hold(); err != nil {
		return err
	}
	_, err := s.seq.clock.now()
	return err
}

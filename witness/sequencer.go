package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// ErrFatal: the outcome of a commit is unknown or the store contradicts
// itself. Nothing more is signed; end the process and start it again.
var ErrFatal = errors.New("the witness must stop")

// accepted is what a request will have brought about once its batch is
// durable. It never leaves the sequencer.
type accepted[T any] struct{ value T }

// durable is an accepted result whose batch is on disk; submit alone makes it.
type durable[T any] struct{ value T }

// pending is one request on its way through the sequencer.
type pending struct {
	apply   func(*batch) error
	refusal error      // what apply returned; told when the batch is settled
	done    chan error // buffered: settling never waits
}

const (
	queueLength = 4096 // requests that wait for the sequencer
	batchMost   = 4096 // requests in one commit
)

// sequencer is the one writer of a log.
type sequencer struct {
	store  store.Store
	origin string
	log    *tlog.Signer
	clock  *clockGuard
	logger *slog.Logger

	queue   chan *pending
	stopped chan struct{} // closed when nothing is taken any more

	// edge is the right edge of the tree at the newest durable state, and epoch
	// that state's. Only the goroutine of run touches them.
	edge  *tlog.Edge
	epoch uint64
	cache *recordCache

	halted   atomic.Bool       // we are convicted by our own signature: nothing more is signed
	healthy  atomic.Bool       // the last commit landed
	active   atomic.Uint64     // 1 + index of the newest leaf that is not a time leaf
	onCommit func(store.State) // called after each commit, must not wait
	hold     func() error      // why nothing may be signed
	observe  func(requests int, took time.Duration)
	commits  atomic.Uint64 // batches so far
	writes   atomic.Uint64 // requests in them
}

// submit runs apply in the sequencer and gives its result once it is durable.
// It is the only place where accepted becomes durable.
func submit[T any](ctx context.Context, q *sequencer, apply func(*batch) (accepted[T], error)) (durable[T], error) {
	var a accepted[T]
	p := &pending{done: make(chan error, 1)}
	p.apply = func(b *batch) (err error) { a, err = apply(b); return err }
	select {
	case q.queue <- p:
	case <-q.stopped:
		return durable[T]{}, errStopped
	case <-ctx.Done():
		return durable[T]{}, context.Cause(ctx)
	}
	if err := q.wait(ctx, p); err != nil {
		return durable[T]{}, err
	}
	return durable[T](a), nil
}

var errStopped = fmt.Errorf("%w: it is shutting down; try again", api.ErrUnavailable)

// wait prefers an answer over the end of the sequencer: what was promised is
// told.
func (q *sequencer) wait(ctx context.Context, p *pending) error {
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-q.stopped:
	}
	select {
	case err := <-p.done:
		return err
	default:
		return errStopped
	}
}

// run takes the first request, drains what waits, commits, and so on without
// a timer. When ctx ends it commits what was queued and returns nil; an error
// is ErrFatal.
func (q *sequencer) run(ctx context.Context) error {
	defer close(q.stopped)
	for {
		select {
		case p := <-q.queue:
			if err := q.commit(q.drain(p)); err != nil {
				return err
			}
		case <-ctx.Done():
			return q.last()
		}
	}
}

func (q *sequencer) last() error {
	for {
		work := q.drain()
		if len(work) == 0 {
			return nil
		}
		if err := q.commit(work); err != nil {
			return err
		}
	}
}

func (q *sequencer) drain(work ...*pending) []*pending {
	for len(work) < batchMost {
		select {
		case p := <-q.queue:
			work = append(work, p)
		default:
			return work
		}
	}
	return work
}

// commit takes work through build and the store, and settles every request when
// the commit is durable or has failed. Refusals wait too: what refused one may
// be another request of the batch, which nobody may hear of before it is
// durable.
func (q *sequencer) commit(work []*pending) error {
	if q.halted.Load() {
		settle(work, errHalted)
		return nil
	}
	var b *batch
	var sealed store.Batch
	var next *tlog.Edge
	began := time.Now()
	err := q.store.View(func(r store.Reader) (err error) {
		if b, err = q.build(r, work); err != nil || b.empty() {
			return err
		}
		sealed, next, err = b.sealed(q.edge, q.log)
		return err
	})
	if err == nil && !b.empty() {
		err = q.store.Commit(sealed)
	}
	if err != nil {
		return q.failed(work, err)
	}
	if !b.empty() {
		q.landed(b, sealed, next, len(work))
		q.observe(len(work), time.Since(began))
	}
	for _, p := range work {
		p.done <- p.refusal
	}
	return nil
}

// build applies work to a snapshot, in the order it came. A request that is
// refused leaves no trace.
func (q *sequencer) build(r store.Reader, work []*pending) (*batch, error) {
	state, err := r.State()
	if err != nil {
		return nil, err
	}
	if err := q.follow(state, r); err != nil {
		return nil, err
	}
	now, doubt := q.clock.now()
	if doubt == nil {
		doubt = q.hold()
	}
	b := &batch{view: r, cache: q.cache, base: state, origin: q.origin, now: now, records: map[string]*originRecord{}}
	for _, p := range work {
		if p.refusal = doubt; doubt == nil {
			p.refusal = p.apply(b)
		}
	}
	return b, nil
}

// follow makes the edge that of state. It reads tiles only at the first
// batch, or when another writer was faster.
func (q *sequencer) follow(state store.State, r store.Reader) error {
	if q.edge != nil && q.epoch == state.Epoch {
		return nil
	}
	q.cache.clear()
	e, err := tlog.NewEdge(state.Size, r)
	if err != nil {
		return err
	}
	cp, _, err := tlog.ParseSignedCheckpoint(state.Checkpoint)
	if err != nil || cp.Size != state.Size || cp.Root != e.Root() {
		return fmt.Errorf("%w: the tiles at size %d give the root %s, the checkpoint says size %d, root %s; run witness fsck",
			store.ErrDamaged, state.Size, e.Root(), cp.Size, cp.Root)
	}
	q.edge, q.epoch = e, state.Epoch
	return nil
}

func (q *sequencer) landed(b *batch, sealed store.Batch, next *tlog.Edge, n int) {
	q.edge, q.epoch = next, sealed.Epoch+1
	q.cache.set(b.records)
	q.healthy.Store(true)
	q.commits.Add(1)
	q.writes.Add(uint64(n))
	if b.active > 0 {
		q.active.Store(b.active)
	}
	q.onCommit(store.State{
		Size:       sealed.Size + uint64(len(sealed.Entries)),
		Epoch:      sealed.Epoch + 1,
		Checkpoint: sealed.Checkpoint,
	})
}

// failed settles a batch that did not land. Out of space or overtaken, nothing
// was applied and the next batch may land; anything else is fatal, because
// what was applied is unknown.
func (q *sequencer) failed(work []*pending, err error) error {
	q.healthy.Store(false)
	if errors.Is(err, store.ErrNoSpace) || errors.Is(err, store.ErrConflict) {
		q.logger.Error("a batch was not written", "requests", len(work), "err", err)
		q.edge = nil
		settle(work, fmt.Errorf("%w: %w", api.ErrUnavailable, err))
		return nil
	}
	q.logger.Error("nothing more is signed", "err", err)
	settle(work, fmt.Errorf("%w: its store failed; the operator must restart it", api.ErrUnavailable))
	return fmt.Errorf("%w: %w", ErrFatal, err)
}

func settle(work []*pending, err error) {
	for _, p := range work {
		p.done <- err
	}
}

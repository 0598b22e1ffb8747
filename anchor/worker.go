package anchor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// ErrAhead: the witness has seen more of this chain than there is here. The
// chain was rolled back, or a copy of it is running.
var ErrAhead = errors.New("the witness has a larger head than this chain")

// worker submits heads to one witness, one at a time. Its goroutine owns all
// but heads.
type worker struct {
	o      Options
	w      Witness
	folder string
	client *api.Client
	heads  chan signedHead // holds the newest head not taken

	kept      state
	reported  bool   // the chain's state was posted
	announced uint64 // from-size of the newest key note it took
	index     uint64 // of our newest leaf known
	stamped   uint64 // size of the newest stamped checkpoint known
	looked    time.Time
}

func newWorker(o Options, w Witness, folder string) (*worker, error) {
	kept, err := loadState(folder)
	if err != nil {
		return nil, err
	}
	return &worker{o: o, w: w, folder: folder, client: api.New(w.URL, o.HTTP), heads: make(chan signedHead, 1), kept: kept}, nil
}

// run submits the newest head until ctx ends. After a failure it waits, twice
// as long each time and never in step with others, then takes what is newest.
func (w *worker) run(ctx context.Context) {
	var head signedHead
	wait := time.Duration(0)
	for {
		if wait == 0 {
			select {
			case head = <-w.heads:
			case <-ctx.Done():
				return
			}
		} else if !rest(ctx, jitter(wait)) {
			return
		}
		select {
		case head = <-w.heads:
		default:
		}
		wait = w.after(w.attempt(ctx, head), wait)
	}
}

// jitter spreads a wait over its second half.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// after is how long to wait after an attempt; 0 after a success.
func (w *worker) after(err error, last time.Duration) time.Duration {
	if err == nil {
		return 0
	}
	var limited api.ErrRateLimited
	if errors.As(err, &limited) {
		return max(2*limited.RetryAfter, w.o.Interval)
	}
	return min(max(2*last, w.o.Interval), w.o.MaxBackoff)
}

// attempt is one submission with its checks, in bounded time; what it failed
// with is kept for status.
func (w *worker) attempt(ctx context.Context, head signedHead) error {
	bounded, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	err := w.submit(bounded, head)
	if err == nil {
		err = w.report(bounded, api.StateOpen, head.cp.Size)
	}
	if err == nil {
		w.keepTime(bounded)
	}
	if ctx.Err() != nil {
		return err // cut off by our own end: no fault of the witness
	}
	if err != nil {
		w.o.Logger.Warn("witness does not follow", "witness", w.w.Name(), "err", err)
	}
	if kerr := keepFault(w.folder, err); kerr != nil {
		w.o.Logger.Warn("status could not be kept", "err", kerr)
	}
	return err
}

// finish is the last attempt before the process ends.
func (w *worker) finish(ctx context.Context, head signedHead) {
	err := w.submit(ctx, head)
	if err == nil {
		w.reported = false
		err = w.report(ctx, api.StateClosed, head.cp.Size)
	}
	if err != nil {
		w.o.Logger.Warn("the last head was not witnessed", "witness", w.w.Name(), "err", err)
	}
}

// submit sends a head with the path from what the witness accepted last. A
// conflict tells the size to start from: an answer of ours was lost, or another
// process streamed meanwhile.
func (w *worker) submit(ctx context.Context, head signedHead) error {
	if w.done(head) {
		return nil
	}
	if err := w.announce(ctx, head); err != nil {
		return err
	}
	old := min(w.kept.size.Size, head.cp.Size)
	for range 3 {
		path, err := w.o.Chain.ProveConsistency(old, head.cp.Size)
		if err != nil {
			return fmt.Errorf("path from size %d: %w", old, err)
		}
		res, err := w.client.AddCheckpoint(ctx, old, path, head.note)
		var conflict api.ErrConflict
		if !errors.As(err, &conflict) {
			if err != nil {
				return err
			}
			return w.accept(ctx, head, res)
		}
		if conflict.Size > head.cp.Size {
			return fmt.Errorf("%w: %d there, %d here: the chain was rolled back or copied; run verify --against %s", ErrAhead, conflict.Size, head.cp.Size, w.w.URL)
		}
		if conflict.Size < w.kept.size.Size {
			w.alarm("rollback", WitnessRollback, w.kept.head, fmt.Appendf(nil, "conflict: the witness says its latest size is %d\n", conflict.Size))
		}
		if conflict.Size == old {
			return fmt.Errorf("the witness refuses size %d and asks for it", old)
		}
		old = conflict.Size
	}
	return errors.New("the witness's size keeps changing: is a copy of this chain running?")
}

// announce tells a witness with a log of the rotations that the head covers
// and the last accepted one does not. It takes a key note before it takes a
// head of that size.
func (w *worker) announce(ctx context.Context, head signedHead) error {
	if w.w.Log == nil {
		return nil
	}
	notes, err := w.o.Chain.KeyNotes()
	if err != nil {
		return err
	}
	var refused error
	for _, n := range notes {
		if n.FromSize <= max(w.kept.size.Size, w.announced) || n.FromSize > head.cp.Size {
			continue
		}
		index, err := w.client.Key(ctx, n.Note)
		switch {
		case errors.Is(err, api.ErrForbidden):
			// It may know a later one already, since an answer was lost.
			refused = fmt.Errorf("rotation from size %d: %w", n.FromSize, err)
			continue
		case err != nil:
			return fmt.Errorf("rotation from size %d: %w", n.FromSize, err)
		}
		w.index = max(w.index, index)
		w.announced, refused = n.FromSize, nil
	}
	return refused
}

// done reports that the head was accepted, and shown to be logged if it can be.
func (w *worker) done(head signedHead) bool {
	return w.kept.size == head.cp && (w.kept.leaf != nil || w.w.Log == nil)
}

// report posts the chain's state to a witness that keeps a log.
func (w *worker) report(ctx context.Context, s api.EventState, size uint64) error {
	if w.o.Heartbeat == 0 || w.reported || w.w.Log == nil || w.kept.leafBytes == nil {
		return nil
	}
	if w.index == 0 {
		p, err := tlog.ParseProof(w.kept.leaf)
		if err != nil {
			return err
		}
		w.index = p.Index
	}
	err := w.post(ctx, s, size)
	if errors.Is(err, api.ErrUnprocessable) {
		// A leaf of ours is newer than we know: the answer to an earlier event
		// was lost, or another process posted one.
		if w.index, err = w.newestLeaf(ctx); err == nil {
			err = w.post(ctx, s, size)
		}
	}
	if err != nil {
		return fmt.Errorf("report %s: %w", s, err)
	}
	w.reported = true
	return nil
}

func (w *worker) post(ctx context.Context, s api.EventState, size uint64) error {
	e := api.Event{Origin: w.w.Origin, Log: w.w.Log.Name, Size: size, State: s, Heartbeat: uint64(w.o.Heartbeat / time.Second), After: w.index}
	note, err := w.o.Chain.SignNote(e.Text())
	if err != nil {
		return err
	}
	index, err := w.client.Event(ctx, note)
	w.index = max(w.index, index)
	return err
}

// newestLeaf looks for this chain's newest leaf in the end of the log. The
// index only orders our own notes, so nothing is believed for it.
func (w *worker) newestLeaf(ctx context.Context) (uint64, error) {
	const most = 1024
	note, err := w.client.CheckpointLatest(ctx)
	if err != nil {
		return 0, err
	}
	cp, _, err := tlog.ParseSignedCheckpoint(note)
	if err != nil {
		return 0, err
	}
	for end := cp.Size; end > 0 && cp.Size-end < most; {
		first := (end - 1) / tlog.TileWidth * tlog.TileWidth
		id := tlog.TileID{Level: tlog.EntriesLevel, Index: first / tlog.TileWidth}
		b, err := w.client.Tile(ctx, id, int(end-first))
		if err != nil {
			return 0, err
		}
		entries, err := tlog.SplitBundle(b)
		if err != nil {
			return 0, err
		}
		for i := len(entries) - 1; i >= 0; i-- {
			if leaf, err := api.ParseLeaf(entries[i]); err == nil && leaf.Origin == w.w.Origin {
				return first + uint64(i), nil
			}
		}
		end = first
	}
	return 0, fmt.Errorf("none of the last %d leaves is of this chain", most)
}

// alarm keeps what speaks against the witness, once for each state of ours
// that it contradicts; submitting goes on.
func (w *worker) alarm(name string, reason Reason, a, b []byte) {
	sum := sha256.Sum256(a)
	file := filepath.Join(w.folder, fmt.Sprintf("%s%s-%x.txt", alarmPrefix, name, sum[:8]))
	if _, err := os.Stat(file); err == nil {
		return
	}
	data := tlog.FormatSections("tool-guardian/alarm/1", []tlog.Section{
		{Name: "reason", Data: []byte(reason)}, {Name: "a", Data: a}, {Name: "b", Data: b}})
	w.o.Logger.Error("the witness contradicts itself", "reason", string(reason), "witness", w.w.Name(), "evidence", file)
	if err := replaceFile(file, data); err != nil {
		w.o.Logger.Error("evidence could not be kept", "err", err)
	}
}

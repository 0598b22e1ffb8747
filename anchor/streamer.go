package anchor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"toolguardian/chain/tlog"
)

// Chain is the part of a chain that is streamed. *chain.Chain is one.
type Chain interface {
	NoteSigner
	Head(ctx context.Context) (note []byte, cp tlog.Checkpoint, err error)
	Follow(ctx context.Context) <-chan uint64
	ProveConsistency(m, n uint64) ([]tlog.Hash, error)
}

// Options of a Streamer.
type Options struct {
	Chain Chain  // required
	Dir   string // evidence folder, required

	// Interval is the shortest time between two heads, and so the longest that
	// a receipt waits for one. Default a second.
	Interval time.Duration
	// MaxBackoff bounds the wait between attempts at a witness that does not
	// answer. Default a minute.
	MaxBackoff time.Duration
	// Timeout bounds one submission with all its checks. Default 15 s.
	Timeout time.Duration
	// Heartbeat is told to witnesses as the longest silence to expect; 0: no
	// state of the chain is reported.
	Heartbeat time.Duration
	// Roots of timestamp authorities: with them tokens are kept for the
	// notBefore of receipts.
	Roots *x509.CertPool

	HTTP   *http.Client     // default http.DefaultClient; follows no redirects
	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default none
}

// How often another process's streamer and new enrolments are looked for, and
// how long a stop may take.
const (
	lockPoll    = 250 * time.Millisecond
	rescanEvery = 2 * time.Second
	lastFlush   = 2 * time.Second
)

func (o Options) checked() (Options, error) {
	if o.Chain == nil || o.Dir == "" {
		return o, errors.New("anchor options: Chain and Dir are needed")
	}
	if o.Interval < 0 || o.MaxBackoff < 0 || o.Timeout < 0 || o.Heartbeat < 0 {
		return o, errors.New("anchor options: a duration is negative")
	}
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{{&o.Interval, time.Second}, {&o.MaxBackoff, time.Minute}, {&o.Timeout, 15 * time.Second}} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Streamer submits the heads of one chain to its witnesses. Of all processes
// that share the chain one streams; when it ends another takes over.
type Streamer struct{ o Options }

// NewStreamer copies and checks the options.
func NewStreamer(o Options) (*Streamer, error) {
	o, err := o.checked()
	return &Streamer{o: o}, err
}

// Run streams until ctx ends, then sends the last head, bounded by two
// seconds. It never stops because of a witness.
func (s *Streamer) Run(ctx context.Context) error {
	lock, err := s.takeLock(ctx)
	if err != nil || lock == nil {
		return err
	}
	defer lock.Close()
	f := &fleet{o: s.o, workers: map[string]*worker{}}
	leading, done := context.WithCancel(ctx)
	f.lead(leading)
	done() // the chain may have ended before ctx
	f.stop(ctx)
	return nil
}

// takeLock waits until this process is the one that streams; nil when ctx ends
// first. The lock dies with its process.
func (s *Streamer) takeLock(ctx context.Context) (*flock.Flock, error) {
	folder := filepath.Join(s.o.Dir, folderName)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("anchor: %w", err)
	}
	lock := flock.New(filepath.Join(folder, "lock"), flock.SetPermissions(0o600))
	held, err := lock.TryLockContext(ctx, lockPoll)
	if held {
		return lock, nil
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	return nil, fmt.Errorf("anchor: lock: %w", err)
}

// signedHead is a head as the chain signed it.
type signedHead struct {
	note []byte
	cp   tlog.Checkpoint
}

// fleet is the workers, one for each witness. One goroutine uses it.
type fleet struct {
	o       Options
	workers map[string]*worker
	group   sync.WaitGroup
	last    signedHead
}

// lead signs a head when the chain has grown, at most one an interval, and
// hands it to every worker.
func (f *fleet) lead(ctx context.Context) {
	sizes := f.o.Chain.Follow(ctx)
	rescan := time.NewTicker(rescanEvery)
	defer rescan.Stop()
	seen := uint64(0)
	for {
		select {
		case size, ok := <-sizes:
			if !ok {
				return
			}
			seen = size
		case <-rescan.C:
		case <-ctx.Done():
			return
		}
		if seen > f.last.cp.Size && !f.sign(ctx) {
			return
		}
		f.scan(ctx)
		if f.last.note != nil {
			f.hand()
		}
	}
}

// sign takes a head and then rests for the interval; false when ctx ended.
func (f *fleet) sign(ctx context.Context) bool {
	note, cp, err := f.o.Chain.Head(ctx)
	if err != nil {
		f.o.Logger.Warn("no head could be signed", "err", err)
	} else {
		f.last = signedHead{note, cp}
		f.scan(ctx)
		f.hand()
	}
	return rest(ctx, f.o.Interval)
}

func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// scan starts a worker for each witness that has none yet.
func (f *fleet) scan(ctx context.Context) {
	all, err := Witnesses(f.o.Dir, f.o.Chain.Origin())
	if err != nil {
		f.o.Logger.Warn("witnesses could not be read", "err", err)
	}
	for _, w := range all {
		folder := w.folder(f.o.Dir)
		if f.workers[folder] != nil {
			continue
		}
		one, err := newWorker(f.o, w, folder)
		if err != nil {
			f.o.Logger.Warn("witness left out", "witness", w.Name(), "err", err)
			continue
		}
		f.workers[folder] = one
		f.group.Go(func() { one.run(ctx) })
	}
}

// hand gives the newest head to every worker; an older one that a worker has
// not taken is passed over.
func (f *fleet) hand() {
	for _, w := range f.workers {
		select {
		case <-w.heads:
		default:
		}
		w.heads <- f.last // this goroutine is the only sender and has made room
	}
}

// stop sends what was not sent, once, within lastFlush.
func (f *fleet) stop(ctx context.Context) {
	f.group.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
	defer cancel()
	if note, cp, err := f.o.Chain.Head(ctx); err == nil {
		f.last = signedHead{note, cp}
	}
	if f.last.note == nil {
		return
	}
	var flush sync.WaitGroup
	for _, w := range f.workers {
		flush.Go(func() { w.finish(ctx, f.last) })
	}
	flush.Wait()
}

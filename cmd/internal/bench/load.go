package bench

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
	"toolguardian/witness/store/bolt"
)

// load is the witness's day: so many origins that each send one head a second,
// over HTTP. Every head is signed before the clock runs.
type load struct {
	writers []*writer
	seconds int
}

func newLoad(origins int, last time.Duration) (*load, error) {
	l := &load{writers: make([]*writer, origins), seconds: int(last / time.Second)}
	var g errgroup.Group
	g.SetLimit(4)
	for i := range l.writers {
		g.Go(func() (err error) {
			l.writers[i], err = newWriter(l.seconds)
			return err
		})
	}
	return l, g.Wait()
}

// run sends each head at its own moment of the second, however long the others
// take. A latency counts from that moment, so that a stall shows in full.
func (l *load) run(ctx context.Context, client *http.Client, url string) (all sample, err error) {
	begin := time.Now()
	samples := make([]sample, len(l.writers))
	g, ctx := errgroup.WithContext(ctx)
	for i, w := range l.writers {
		first := begin.Add(time.Duration(i) * time.Second / time.Duration(len(l.writers)))
		g.Go(func() error { return samples[i].paced(ctx, first, w, client, url) })
	}
	err = g.Wait()
	for _, s := range samples {
		all.took = append(all.took, s.took...)
	}
	all.wall = time.Since(begin)
	return all, err
}

func (s *sample) paced(ctx context.Context, due time.Time, w *writer, client *http.Client, url string) error {
	for range w.bodies {
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := post(ctx, client, url+"/add-checkpoint", w.next()); err != nil {
			return err
		}
		s.took = append(s.took, time.Since(due))
		due = due.Add(time.Second)
	}
	return nil
}

// fillBatch is the heads of one commit of a filled log.
const fillBatch = 1 << 15

// fillLog puts n head leaves of one chain into the closed witness of dir. The
// leaves have the form and size of real ones; their signatures are of no use,
// which opening and proving never look at.
func fillLog(ctx context.Context, dir string, n int, progress *Progress) (err error) {
	priv, err := tlog.LoadKeyFile(filepath.Join(dir, "log.key"))
	if err != nil {
		return err
	}
	signer, err := tlog.NewSigner(witnessName, tlog.KeyEd25519, priv)
	if err != nil {
		return err
	}
	st, err := bolt.OpenDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	for done := 0; done < n; done += fillBatch {
		progress.step("filling a log", done, n)
		if err := errors.Join(ctx.Err(), fillOnce(st, signer, min(fillBatch, n-done))); err != nil {
			return err
		}
	}
	return nil
}

func fillOnce(st store.Store, signer *tlog.Signer, n int) error {
	var b store.Batch
	err := st.View(func(r store.Reader) error {
		state, err := r.State()
		if err != nil {
			return err
		}
		b = store.Batch{Size: state.Size, Epoch: state.Epoch}
		leaves, err := fillLeaves(&b, signer.Vkey(), n)
		if err != nil {
			return err
		}
		changed, root, err := tlog.Grow(b.Size, leaves, r)
		if err != nil {
			return err
		}
		text := tlog.Checkpoint{Origin: witnessName, Size: b.Size + uint64(n), Root: root}.Text()
		sig, err := signer.Sign(text)
		b.Tiles, b.Checkpoint = changed, tlog.Note{Text: text, Signatures: []tlog.Signature{sig}}.Bytes()
		b.Puts = []store.Put{{Table: store.Checkpoints, Key: store.Key64(b.Size + uint64(n)), Value: b.Checkpoint}}
		return err
	})
	if err != nil {
		return err
	}
	return st.Commit(b)
}

func fillLeaves(b *store.Batch, vkey tlog.Vkey, n int) (leaves []tlog.Hash, err error) {
	origin := receipts.Origin("bench.invalid", vkey.Public())
	for i := range uint64(n) {
		index := b.Size + i
		var root tlog.Hash
		binary.BigEndian.PutUint64(root[:], index)
		cp := tlog.Checkpoint{Origin: origin, Size: index + 1, Root: root}
		line := tlog.Signature{Name: origin, ID: vkey.ID, Bytes: make([]byte, ed25519.SignatureSize)}
		entry, err := api.Leaf{
			Type: api.LeafHead, Origin: origin, Prev: api.At(index), Keys: api.At(0), Proof: make([]tlog.Hash, 8),
			Body: tlog.Note{Text: cp.Text(), Signatures: []tlog.Signature{line, line}}.Bytes(),
		}.Bytes()
		if err != nil {
			return nil, err
		}
		b.Entries = append(b.Entries, entry)
		leaves = append(leaves, tlog.LeafHash(entry))
	}
	return leaves, nil
}

// LogFigures are of one log of many heads.
type LogFigures struct {
	Leaves   uint64 `json:"leaves"`
	OpenedIn Micros `json:"openedInMicros"` // witness.New, of a file in the page cache
	Recent   Figure `json:"recentProofs"`   // of the newest leaves, within what the cache holds
	Anywhere Figure `json:"anyProofs"`      // of leaves all over the log
}

// recentLeaves is what a proof is asked for in the main: by the chains, of the
// heads they have just sent.
const recentLeaves = 100_000

// measureLog fills a log, opens it and makes proofs through the handler,
// without a socket, on every core.
func measureLog(ctx context.Context, o witness.Options, heads, proofs int, progress *Progress) (f LogFigures, err error) {
	if err := newWitness(ctx, o); err != nil {
		return f, err
	}
	if err := fillLog(ctx, o.Dir, heads, progress); err != nil {
		return f, err
	}
	start := time.Now()
	s, err := witness.New(o)
	if err != nil {
		return f, err
	}
	f.OpenedIn, f.Leaves = micros(time.Since(start)), uint64(heads)
	defer func() { err = errors.Join(err, s.Close(), os.RemoveAll(o.Dir)) }()
	recent := min(heads, recentLeaves)
	if _, err = proveMany(s, heads-recent, recent, proofs/4); err != nil { // warms the cache
		return f, err
	}
	progress.step("proofs", 1, 2)
	r, err1 := proveMany(s, heads-recent, recent, proofs)
	a, err2 := proveMany(s, 0, heads, proofs)
	f.Recent, f.Anywhere = r.figure(), a.figure()
	return f, errors.Join(err1, err2)
}

// proveMany asks for proofs of count leaves from first on, in a fixed order
// that jumps about.
func proveMany(s *witness.Server, first, count, proofs int) (sample, error) {
	const callers, jump = 2, 7919 // a prime
	handler := s.Handler()
	next := make([]int, callers)
	return atOnce(callers, max(proofs/callers, 1), func(i int) error {
		next[i]++
		index := first + (next[i]*callers+i)*jump%count
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/proof?index=%d", index), nil))
		if w.Code != http.StatusOK {
			return fmt.Errorf("proof of %d: status %d: %.200s", index, w.Code, w.Body)
		}
		return nil
	})
}

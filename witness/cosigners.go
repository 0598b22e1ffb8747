package witness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

const (
	fileCosigned       = "cosigned" // the newest checkpoint that met the quorum
	defaultCosignEvery = 10 * time.Second
	cosignDeadline     = 10 * time.Second
)

// cosigners are the other witnesses that cosign our checkpoint (C2SP
// tlog-witness). They also guard against a rollback: none of them goes back.
type cosigners struct {
	policy *tlog.Policy // nil: none
	all    []*cosigner

	mu    sync.Mutex
	best  []byte // newest checkpoint that met the quorum, with its lines; guarded by mu
	asked bool   // guarded by mu: each was asked once, and one answered or a head file guards
	lost  error  // guarded by mu: one of them knows more of our log than we do
}

// cosigner is one of them. Only the goroutine of a round touches it.
type cosigner struct {
	tlog.PolicyWitness
	client *api.Client
	size   uint64          // of our log, as far as it told
	told   bool            // it told a size that our log has
	line   *tlog.Signature // its line on the checkpoint of the last round
	on     tlog.Checkpoint // that checkpoint
	err    error           // of the last round
}

func newCosigners(o Options) *cosigners {
	c := &cosigners{policy: o.Cosigners}
	if c.policy == nil {
		return c
	}
	for _, w := range c.policy.Witnesses() {
		if w.URL != "" {
			c.all = append(c.all, &cosigner{PolicyWitness: w, client: api.New(w.URL, o.CosignHTTP)})
		}
	}
	return c
}

// hold says why nothing may be signed: before the cosigners were asked what
// they have seen, or once one has seen more than we have.
func (c *cosigners) hold() error {
	if len(c.all) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lost != nil:
		return fmt.Errorf("%w: %w", api.ErrUnavailable, c.lost)
	case !c.asked:
		return fmt.Errorf("%w: no cosigner has told yet what it has seen of this log; try again", api.ErrUnavailable)
	}
	return nil
}

// cosignLoop asks now and then, and not again while nothing is new.
func (s *Server) cosignLoop(ctx context.Context) error {
	if len(s.cosigners.all) == 0 {
		return nil
	}
	tick := time.NewTicker(s.o.CosignEvery)
	defer tick.Stop()
	for {
		if err := s.Cosign(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("the checkpoint is not cosigned", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Cosign makes one round: the newest durable checkpoint is sent to every
// cosigner that has not signed it, and kept if it meets the quorum.
func (s *Server) Cosign(ctx context.Context) error {
	s.cosignMu.Lock()
	defer s.cosignMu.Unlock()
	c := s.cosigners
	var state store.State
	err := s.store.View(func(r store.Reader) (err error) { state, err = r.State(); return err })
	if err != nil {
		return err
	}
	cp, note, err := tlog.ParseSignedCheckpoint(state.Checkpoint)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cosignDeadline)
	defer cancel()
	var wg sync.WaitGroup
	for _, w := range c.all {
		if w.line == nil || w.on != cp {
			wg.Go(func() { s.askCosigner(ctx, w, cp, state.Checkpoint) })
		}
	}
	wg.Wait()
	return s.settleRound(cp, note)
}

// settleRound keeps what the round brought.
func (s *Server) settleRound(cp tlog.Checkpoint, note tlog.Note) error {
	c := s.cosigners
	var errs []error
	answered := s.o.HeadFile != ""
	for _, w := range c.all {
		answered = answered || w.answered()
		if w.err != nil {
			errs = append(errs, fmt.Errorf("cosigner %s: %w", w.Name, w.err))
		}
		if w.line != nil && w.on == cp {
			note.Signatures = append(note.Signatures, *w.line)
		}
		if errors.Is(w.err, ErrRolledBack) {
			c.mu.Lock()
			c.lost = w.err
			c.mu.Unlock()
			s.o.Logger.Error("nothing is signed", "cosigner", w.Name, "err", w.err)
		}
	}
	c.mu.Lock()
	c.asked = c.asked || answered
	c.mu.Unlock()
	if !c.policy.Check(note).Quorum {
		return errors.Join(append(errs, fmt.Errorf("checkpoint %d: no quorum", cp.Size))...)
	}
	return errors.Join(append(errs, s.keepCosigned(note.Bytes()))...)
}

// answered: whatever a witness says of our log, it has been asked.
func (w *cosigner) answered() bool {
	return w.err == nil || w.told || errors.Is(w.err, api.ErrUnknownOrigin) || errors.Is(w.err, ErrRolledBack)
}

// askCosigner submits a checkpoint from the size that the witness knows. What
// it knows comes with its refusal of the first attempt.
func (s *Server) askCosigner(ctx context.Context, w *cosigner, cp tlog.Checkpoint, signed []byte) {
	w.line = nil
	w.err = s.submitTo(ctx, w, cp, signed)
	var conflict api.ErrConflict
	if errors.As(w.err, &conflict) {
		w.size, w.told = conflict.Size, conflict.Size <= cp.Size
		w.err = s.submitTo(ctx, w, cp, signed)
	}
}

func (s *Server) submitTo(ctx context.Context, w *cosigner, cp tlog.Checkpoint, signed []byte) error {
	if w.size > cp.Size {
		return s.knowsMore(w)
	}
	var proof []tlog.Hash
	err := s.store.View(func(r store.Reader) (err error) {
		proof, err = tlog.ProveConsistency(w.size, cp.Size, r)
		return err
	})
	if err != nil {
		return err
	}
	got, err := w.client.AddCheckpoint(ctx, w.size, proof, signed)
	if errors.Is(err, api.ErrUnprocessable) {
		// Our proof is right for our log: it has cosigned another one.
		return fmt.Errorf("%w: the cosigner %s holds another history of size %d: %w", ErrRolledBack, w.Name, w.size, err)
	}
	if err != nil {
		return err
	}
	note := tlog.Note{Text: cp.Text(), Signatures: got.Lines}
	line, err := note.Verify(w.Key)
	if err != nil {
		return fmt.Errorf("its answer: %w", err)
	}
	w.line, w.on, w.size = &line, cp, cp.Size
	return nil
}

// knowsMore is a rollback, unless our log has grown since the round began: then
// somebody else has shown the witness our newer checkpoint.
func (s *Server) knowsMore(w *cosigner) error {
	var now store.State
	if err := s.store.View(func(r store.Reader) (err error) { now, err = r.State(); return err }); err != nil {
		return err
	}
	if w.size <= now.Size {
		return fmt.Errorf("it has seen size %d already; the next round tells it more", w.size)
	}
	return fmt.Errorf("%w: the cosigner %s has cosigned size %d of this log, the folder holds size %d: "+
		"restore the newer folder, or recover into a new shard", ErrRolledBack, w.Name, w.size, now.Size)
}

// keepCosigned makes a checkpoint the one that is served, over a restart too.
func (s *Server) keepCosigned(note []byte) error {
	c := s.cosigners
	c.mu.Lock()
	same := string(c.best) == string(note)
	c.best = note
	c.mu.Unlock()
	if same {
		return nil
	}
	return writeDurably(filepath.Join(s.shard.dir, fileCosigned), note)
}

// loadCosigned believes the kept checkpoint only if it is of this log and meets
// the present policy.
func (s *Server) loadCosigned(r store.Reader) error {
	if s.cosigners.policy == nil {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(s.shard.dir, fileCosigned))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	cp, note, err := tlog.ParseSignedCheckpoint(b)
	if err == nil {
		_, err = note.Verify(s.keys.log.Vkey())
	}
	if err == nil {
		err = s.holds(cp, r)
	}
	if err != nil || !s.cosigners.policy.Check(note).Quorum {
		s.o.Logger.Warn("the kept cosigned checkpoint does not count any more", "size", cp.Size, "err", err)
		return nil
	}
	s.cosigners.best = b
	return nil
}

func (s *Server) holds(cp tlog.Checkpoint, r store.Reader) error {
	root, err := tlog.TreeRoot(cp.Size, r)
	if err == nil && (cp.Origin != s.origin || root != cp.Root) {
		err = errors.New("it is of another log")
	}
	return err
}

// getCosigned serves the newest checkpoint that meets the quorum, without
// cosigners the newest durable one.
func (s *Server) getCosigned(w http.ResponseWriter, r *http.Request) {
	if s.cosigners == nil || s.cosigners.policy == nil {
		s.getCheckpoint(w, r)
		return
	}
	s.cosigners.mu.Lock()
	best := s.cosigners.best
	s.cosigners.mu.Unlock()
	if best == nil {
		s.refuse(w, r, fmt.Errorf("%w: no checkpoint has met the quorum of cosigners yet; /checkpoint/latest is the newest durable one", api.ErrNotFound))
		return
	}
	send(w, typeText, cacheNever, best)
}

// CosignStatus is how far the cosigners are.
type CosignStatus struct {
	Size      uint64           `json:"size"` // newest checkpoint that met the quorum
	Cosigners []CosignerStatus `json:"cosigners"`
	Held      string           `json:"held,omitempty"` // why nothing is signed
}

// CosignerStatus is one cosigner's part in the last round.
type CosignerStatus struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	Size  uint64 `json:"size"` // of our log, that it has cosigned
	Error string `json:"error,omitempty"`
}

// cosignStatus is nil without cosigners.
func (s *Server) cosignStatus() *CosignStatus {
	c := s.cosigners
	if c.policy == nil {
		return nil
	}
	var st CosignStatus
	if err := c.hold(); err != nil {
		st.Held = strings.TrimSpace(err.Error())
	}
	c.mu.Lock()
	if cp, _, err := tlog.ParseSignedCheckpoint(c.best); err == nil {
		st.Size = cp.Size
	}
	c.mu.Unlock()
	s.cosignMu.Lock()
	defer s.cosignMu.Unlock()
	for _, w := range c.all {
		one := CosignerStatus{Name: w.Name, URL: w.URL, Size: w.size}
		if w.err != nil {
			one.Error = w.err.Error()
		}
		st.Cosigners = append(st.Cosigners, one)
	}
	return &st
}

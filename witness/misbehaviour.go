package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// ErrMisbehaved: a signature of this witness contradicts its log. Nothing is
// ever signed again with its keys.
var ErrMisbehaved = errors.New("this witness is convicted by its own signature")

var errHalted = fmt.Errorf("%w: it signed what its log does not hold and signs nothing more; the operator must recover into a new shard", api.ErrUnavailable)

// fileMark holds what convicts us. Where it lies, nothing is signed.
const (
	fileMark   = "MISBEHAVIOUR"
	markHeader = "tool-guardian/misbehaviour/1"
)

// checkMark refuses a shard with a mark, and says what to do. The next shard
// has keys of its own.
func checkMark(shardDir, data string) error {
	path := filepath.Join(shardDir, fileMark)
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: the evidence is in %s. Its log was rolled back or its keys are used elsewhere, so nothing more is signed with them: "+
		"keep the folder as it is, tell those who pinned its keys, and open a new shard with tool-guardian witness recover --data %s", ErrMisbehaved, path, data)
}

// Misbehaviour judges the body of POST /misbehaviour: a checkpoint that our log
// key signed, a head that our cosigner key cosigned, or a rollback file. If it
// contradicts the log, nothing more is signed, now and after a restart; the
// log is still read. Nil means that it did.
func (s *Server) Misbehaviour(ctx context.Context, body []byte) error {
	if bytes.HasPrefix(body, []byte(api.RollbackHeader+"\n")) {
		return s.rolledBack(ctx, body)
	}
	note, err := tlog.ParseNote(body)
	if err != nil {
		return fmt.Errorf("%w: want a signed checkpoint or a rollback file: %w", api.ErrBadRequest, err)
	}
	cp, err := tlog.ParseCheckpoint(note.Text)
	if err != nil {
		return fmt.Errorf("%w: want a signed checkpoint or a rollback file: %w", api.ErrBadRequest, err)
	}
	if cp.Origin != s.origin {
		return s.misbehavedOver(ctx, cp, note)
	}
	if _, err := note.Verify(s.keys.log.Vkey()); err != nil {
		return fmt.Errorf("%w: not a checkpoint by our log key: %w", api.ErrForbidden, err)
	}
	if err := s.limits.take(s.origin, s.o.Now()); err != nil {
		return err
	}
	if err := s.read(func(p published) error { return p.lacks(cp) }); err != nil {
		return err
	}
	return s.halt(ctx, body)
}

// lacks refuses a checkpoint that the log holds: it is no evidence.
func (p published) lacks(cp tlog.Checkpoint) error {
	if cp.Size > p.size {
		return nil
	}
	root, err := tlog.TreeRoot(cp.Size, p)
	if err != nil {
		return err
	}
	if root == cp.Root {
		return fmt.Errorf("%w: the log holds this checkpoint, size %d", api.ErrUnprocessable, cp.Size)
	}
	return nil
}

// misbehavedOver judges a head with our cosignature.
func (s *Server) misbehavedOver(ctx context.Context, cp tlog.Checkpoint, note tlog.Note) error {
	if !api.IsChainOrigin(cp.Origin) {
		return fmt.Errorf("%w: %.255q is neither this log nor a chain", api.ErrUnprocessable, cp.Origin)
	}
	lost, err := s.lostCosigned(cp, note)
	if err != nil {
		return err
	}
	if lost == nil {
		return fmt.Errorf("%w: the log holds this head, size %d of %.255q", api.ErrUnprocessable, cp.Size, cp.Origin)
	}
	return s.haltOver(ctx, cp, *lost)
}

// lostHead refuses a head that bears our own cosignature and is not in the log:
// our log has lost it, and every further signature would be a second history.
func (s *Server) lostHead(ctx context.Context, cp tlog.Checkpoint, note tlog.Note) error {
	ours := s.keys.cosigner.Vkey()
	if !slices.ContainsFunc(note.Signatures, func(sig tlog.Signature) bool { return isBy(sig, ours) }) {
		return nil
	}
	lost, err := s.lostCosigned(cp, note)
	if errors.Is(err, api.ErrForbidden) || err == nil && lost == nil {
		return nil // not by us at all, or as it should be
	}
	if err != nil {
		return err
	}
	return errors.Join(errHalted, s.haltOver(ctx, cp, *lost))
}

// lostCosigned gives our line under a head that the log does not hold, nil if
// it does. A head is logged before its cosignature is told.
func (s *Server) lostCosigned(cp tlog.Checkpoint, note tlog.Note) (*tlog.Signature, error) {
	line, err := note.Verify(s.keys.cosigner.Vkey())
	if err != nil {
		return nil, fmt.Errorf("%w: not cosigned by us: %w", api.ErrForbidden, err)
	}
	var held bool
	err = s.rehearse(func(b *batch) error {
		h, err := b.recordedHead(cp.Origin, cp.Size)
		held = h != nil && h.Head.Root == cp.Root
		return err
	})
	if err != nil || held {
		return nil, err
	}
	return &line, nil
}

// haltOver stops over a head that was cosigned and lost. Where a smaller one
// was cosigned since, that is a rollback, which is logged first.
func (s *Server) haltOver(ctx context.Context, cp tlog.Checkpoint, line tlog.Signature) error {
	a := tlog.Note{Text: cp.Text(), Signatures: []tlog.Signature{line}}.Bytes()
	var file *api.RollbackFile
	err := s.rehearse(func(b *batch) (err error) { file, err = b.rollbackOf(cp.Origin, a, s.keys.cosigner.Vkey()); return err })
	switch {
	case err != nil:
		s.o.Logger.Error("no rollback file was made", "err", err)
	case file != nil:
		return s.rolledBack(ctx, file.Bytes())
	}
	return s.halt(ctx, a)
}

// rollbackOf looks for a recorded head smaller than the lost one, cosigned
// later. Of those below its size the last was cosigned last.
func (b *batch) rollbackOf(origin string, a []byte, cosigner tlog.Vkey) (*api.RollbackFile, error) {
	lost, _, err := tlog.ParseSignedCheckpoint(a)
	if err != nil {
		return nil, err
	}
	rec, err := b.record(origin)
	if err != nil || rec.Head == nil {
		return nil, ignoreUnknown(err)
	}
	at, found := uint64(0), false
	first, last := headKey(origin, 0), headKey(origin, lost.Size)
	err = b.view.Scan(store.Heads, first, func(key, value []byte) bool {
		if bytes.Compare(key, last) >= 0 {
			return false
		}
		at, found = sizeOf(value), true
		return true
	})
	if err != nil || !found {
		return nil, err
	}
	l, err := b.leafAt(at)
	if err != nil {
		return nil, err
	}
	note, err := tlog.ParseNote(l.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: head leaf %d: %w", store.ErrDamaged, at, err)
	}
	line, err := note.Verify(cosigner)
	if err != nil {
		return nil, fmt.Errorf("%w: head leaf %d: %w", store.ErrDamaged, at, err)
	}
	if rec.Head.Index == at { // its cosignature may have been refreshed
		if lines, err := tlog.ParseSignatureLines([]byte(rec.Head.Cosig)); err == nil {
			line = lines[0]
		}
	}
	file := api.RollbackFile{A: a, B: tlog.Note{Text: note.Text, Signatures: []tlog.Signature{line}}.Bytes()}
	if _, _, err := file.Heads(); err != nil {
		return nil, nil
	}
	return &file, nil
}

func ignoreUnknown(err error) error {
	if errors.Is(err, api.ErrUnknownOrigin) {
		return nil
	}
	return err
}

// rolledBack judges a rollback file, logs it if the origin is known, and stops.
func (s *Server) rolledBack(ctx context.Context, body []byte) error {
	file, err := api.ParseRollbackFile(body)
	if err != nil {
		return asBadRequest(err)
	}
	a, b, err := file.Heads()
	if errors.Is(err, api.ErrNoContradiction) {
		return fmt.Errorf("%w: %w", api.ErrUnprocessable, err)
	}
	if err != nil {
		return asBadRequest(err)
	}
	for _, h := range []api.Head{a, b} {
		if _, err := h.Note.Verify(s.keys.cosigner.Vkey()); err != nil {
			return fmt.Errorf("%w: not cosigned by us: %w", api.ErrForbidden, err)
		}
	}
	_, err = submit(ctx, s.seq, func(batch *batch) (accepted[uint64], error) { return batch.rollback(a.Origin, body) })
	if err != nil && !errors.Is(err, api.ErrUnknownOrigin) && !errors.Is(err, api.ErrBadRequest) {
		s.o.Logger.Error("a rollback was not logged", "err", err)
	}
	return s.halt(ctx, body)
}

// rollback writes a rollback leaf against ourselves.
func (b *batch) rollback(origin string, body []byte) (accepted[uint64], error) {
	rec, err := b.record(origin)
	if err != nil {
		return accepted[uint64]{}, err
	}
	index, err := b.append(api.Leaf{Type: api.LeafRollback, Origin: origin, Prev: api.At(rec.Prev), Keys: api.At(rec.Keys), Body: body})
	if err != nil {
		return accepted[uint64]{}, err
	}
	rec.Prev = index
	rec.Rollbacks = append(slices.Clone(rec.Rollbacks), index)
	b.keep(rec)
	return accepted[uint64]{index}, nil
}

// halt stops all signing at once, waits until no commit is under way, and
// makes that last beyond this process. A crash before the mark is on disk
// leaves a witness that the same evidence stops again.
func (s *Server) halt(ctx context.Context, evidence []byte) error {
	s.seq.halted.Store(true)
	s.o.Logger.Error("our own signature contradicts the log: nothing more is signed", "evidence", string(evidence[:min(len(evidence), 4096)]))
	mark := tlog.FormatSections(markHeader, []tlog.Section{{Name: "evidence", Data: evidence}})
	if err := writeDurably(filepath.Join(s.shard.dir, fileMark), mark); err != nil {
		return fmt.Errorf("%w: the mark was not written: %w", api.ErrUnavailable, err)
	}
	_, err := submit(ctx, s.seq, func(*batch) (accepted[int], error) { return accepted[int]{}, nil })
	if !errors.Is(err, api.ErrUnavailable) {
		return err // the caller gave up waiting
	}
	return nil
}

func (s *Server) postMisbehaviour(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r)
	if err == nil {
		err = s.Misbehaviour(r.Context(), body)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	send(w, typeText, cacheNever, []byte("this witness signs nothing more\n"))
}

package anchor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// accept checks a witness's answer before anything of it is kept: the
// cosignature on our head, the log's newest checkpoint against the one kept,
// the inclusion of our head's leaf. A valid cosignature alone is kept even if
// the rest fails, and the rest is tried again.
func (w *worker) accept(ctx context.Context, head signedHead, res api.AddResult) error {
	cosigned, err := w.cosigned(head, res.Lines)
	if err != nil {
		return err
	}
	next := state{head: cosigned, size: head.cp, checkpoint: w.kept.checkpoint}
	if w.w.Log == nil {
		return w.keep(next)
	}
	if err := w.logged(ctx, &next, res.Index); err != nil {
		return errors.Join(fmt.Errorf("cosigned, not shown to be logged: %w", err), w.keep(next))
	}
	w.index = max(w.index, res.Index)
	return w.keep(next)
}

// cosigned is our note with the pinned cosigner's line, verified.
func (w *worker) cosigned(head signedHead, lines []tlog.Signature) ([]byte, error) {
	note, err := tlog.ParseNote(head.note)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if line.Name == w.w.Cosigner.Name && line.ID == w.w.Cosigner.ID {
			note.Signatures = append(note.Signatures, line)
			break
		}
	}
	if _, err := note.Verify(w.w.Cosigner); err != nil {
		return nil, fmt.Errorf("the witness's cosignature: %w: is %s still its key?", err, w.w.Cosigner)
	}
	return note.Bytes(), nil
}

func (w *worker) keep(next state) error {
	if err := replaceFile(filepath.Join(w.folder, stateName), next.bytes()); err != nil {
		return err
	}
	w.kept = next
	return nil
}

// logged checks the log: its newest checkpoint under the pinned key, that it
// extends the kept one, and that our head's leaf is in it.
func (w *worker) logged(ctx context.Context, next *state, index uint64) error {
	latest, err := w.client.CheckpointLatest(ctx)
	if err != nil {
		return err
	}
	cp, note, err := tlog.ParseSignedCheckpoint(latest)
	if err != nil {
		return fmt.Errorf("its checkpoint: %w", err)
	}
	if _, err := note.Verify(*w.w.Log); err != nil || cp.Origin != w.w.Log.Name {
		return fmt.Errorf("its checkpoint of %s: %w: want %s", cp.Origin, err, w.w.Log)
	}
	if err := w.extends(ctx, cp, latest); err != nil {
		return err
	}
	if next.leafBytes, next.leaf, err = w.included(ctx, *next, cp, index); err != nil {
		next.leafBytes, next.leaf = nil, nil
		return err
	}
	next.checkpoint = latest
	return nil
}

// extends checks a new checkpoint against the kept one. A log that took back
// or replaced entries is an alarm; what it says is then not kept.
func (w *worker) extends(ctx context.Context, cp tlog.Checkpoint, latest []byte) error {
	if w.kept.checkpoint == nil {
		return nil
	}
	kept, _, err := tlog.ParseSignedCheckpoint(w.kept.checkpoint)
	if err != nil {
		return fmt.Errorf("kept checkpoint: %w", err)
	}
	if cp.Size < kept.Size {
		w.alarm("rollback", WitnessRollback, w.kept.checkpoint, latest)
		return fmt.Errorf("%s: its log had %d entries and now has %d", WitnessRollback, kept.Size, cp.Size)
	}
	var path []tlog.Hash
	if cp.Size > kept.Size && kept.Size > 0 {
		if path, err = w.client.Consistency(ctx, kept.Size, cp.Size); err != nil {
			return err
		}
	}
	if err := tlog.VerifyConsistency(kept.Size, cp.Size, path, kept.Root, cp.Root); err != nil {
		w.alarm("fork", WitnessFork, w.kept.checkpoint, latest)
		return fmt.Errorf("%s: its log does not extend what it was: %w", WitnessFork, err)
	}
	return nil
}

// included fetches the leaf that the witness names and checks that it holds
// our head and lies in the checkpoint.
func (w *worker) included(ctx context.Context, next state, cp tlog.Checkpoint, index uint64) (leafBytes, proof []byte, err error) {
	entry, err := w.client.Entry(ctx, index, cp.Size)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := api.ParseLeaf(entry)
	if err != nil {
		return nil, nil, fmt.Errorf("leaf %d: %w", index, err)
	}
	head, note, err := tlog.ParseSignedCheckpoint(leaf.Body)
	if err != nil || leaf.Type != api.LeafHead || leaf.Origin != w.w.Origin || !bytes.Equal(head.Text(), next.size.Text()) {
		return nil, nil, fmt.Errorf("leaf %d is not the leaf of our head of size %d: %w", index, next.size.Size, err)
	}
	if _, err := note.Verify(w.w.Cosigner); err != nil {
		return nil, nil, fmt.Errorf("leaf %d: its cosignature: %w", index, err)
	}
	b, err := w.client.Proof(ctx, index, cp.Size)
	if err != nil {
		return nil, nil, err
	}
	p, err := tlog.ParseProof(b)
	if err != nil {
		return nil, nil, fmt.Errorf("proof of leaf %d: %w", index, err)
	}
	proved, _, err := p.Verify(tlog.LeafHash(entry))
	if err != nil || proved != cp || p.Index != index {
		return nil, nil, fmt.Errorf("leaf %d is not shown to be in the log of size %d: %w", index, cp.Size, err)
	}
	return entry, b, nil
}

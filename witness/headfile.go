package witness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/store"
)

// ErrRolledBack: the log in the folder is older than, or other than, one that
// was signed before.
var ErrRolledBack = errors.New("the log was rolled back")

// headFilePause keeps the head file well within a second behind the log,
// without two more syncs for every batch.
const headFilePause = 500 * time.Millisecond

// checkHeadFile recomputes our root at the size that the head file names. The
// file is written after the commit, so the log is never behind it.
func (s *Server) checkHeadFile(state store.State, r store.Reader) error {
	if s.o.HeadFile == "" {
		return nil
	}
	b, err := os.ReadFile(s.o.HeadFile)
	if errors.Is(err, fs.ErrNotExist) {
		s.o.Logger.Warn("there is no head file yet; it is made at the next commit", "path", s.o.HeadFile)
		return nil
	}
	if err != nil {
		return fmt.Errorf("head file: %w", err)
	}
	cp, note, err := tlog.ParseSignedCheckpoint(b)
	if err != nil {
		return fmt.Errorf("head file %s: %w", s.o.HeadFile, err)
	}
	if s.formerKey(cp, note) {
		s.o.Logger.Warn("the head file is of a former shard; it is replaced", "path", s.o.HeadFile, "origin", cp.Origin)
		return nil
	}
	if _, err := note.Verify(s.keys.log.Vkey()); err != nil || cp.Origin != s.origin {
		return fmt.Errorf("head file %s: it is not a checkpoint of %s by the key in the folder", s.o.HeadFile, s.origin)
	}
	return s.checkAgainst(cp, state, r)
}

func (s *Server) checkAgainst(cp tlog.Checkpoint, state store.State, r store.Reader) error {
	if cp.Size > state.Size {
		return fmt.Errorf("%w: the head file %s has size %d, the log in %s size %d; nothing is signed over a lost tail: restore the newer folder, or recover into a new shard",
			ErrRolledBack, s.o.HeadFile, cp.Size, s.o.Dir, state.Size)
	}
	root, err := tlog.TreeRoot(cp.Size, r)
	if err != nil {
		return err
	}
	if root != cp.Root {
		return fmt.Errorf("%w: at size %d the head file %s has the root %s, the log in %s the root %s",
			ErrRolledBack, cp.Size, s.o.HeadFile, cp.Root, s.o.Dir, root)
	}
	return nil
}

// headFileLoop writes the newest durable checkpoint, never one that is not.
func (s *Server) headFileLoop(ctx context.Context) error {
	if s.o.HeadFile == "" {
		return nil
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.lastHeadFile()
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return s.lastHeadFile()
		case state := <-s.newest:
			if err := writeDurably(s.o.HeadFile, state.Checkpoint); err != nil {
				s.o.Logger.Error("the head file was not written", "path", s.o.HeadFile, "err", err)
			}
		}
		pause.Reset(headFilePause)
	}
}

// lastHeadFile leaves the file at the log's end once the sequencer is done.
func (s *Server) lastHeadFile() error {
	<-s.seq.stopped
	select {
	case state := <-s.newest:
		return writeDurably(s.o.HeadFile, state.Checkpoint)
	default:
		return nil
	}
}

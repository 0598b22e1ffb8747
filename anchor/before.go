package anchor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/tsa"
)

// Tokens for notBefore lie in anchor/before/<hex of the note>.{note,token};
// `newest` names the newest verified one.
const (
	beforeFolder = "before"
	beforeHeader = "tool-guardian/before/1"
	timeEvery    = time.Minute
	maxStamps    = 64 // taken in one look
)

// keepTime looks for new timestamps of the log and keeps the newest verified
// token. It is a help, so its failures are only logged.
func (w *worker) keepTime(ctx context.Context) {
	if w.o.Roots == nil || w.w.Log == nil || w.kept.checkpoint == nil || w.o.Now().Sub(w.looked) < timeEvery {
		return
	}
	w.looked = w.o.Now()
	newest := uint64(0)
	for range maxStamps {
		size, err := w.client.TimestampFrom(ctx, w.stamped+1)
		if err != nil || size <= w.stamped {
			break
		}
		newest, w.stamped = size, size
	}
	if newest == 0 {
		return
	}
	if err := w.keepToken(ctx, newest); err != nil {
		w.o.Logger.Warn("timestamp not kept", "witness", w.w.Name(), "size", newest, "err", err)
	}
}

func (w *worker) keepToken(ctx context.Context, size uint64) error {
	note, err := w.client.TimestampNote(ctx, size)
	if err != nil {
		return err
	}
	cp, n, err := tlog.ParseSignedCheckpoint(note)
	if err != nil {
		return err
	}
	if _, err := n.Verify(*w.w.Log); err != nil || cp.Size != size {
		return fmt.Errorf("note of size %d: %w", cp.Size, err)
	}
	names, err := w.client.TimestampAuthorities(ctx, size)
	if err != nil {
		return err
	}
	for _, name := range names {
		response, err := w.client.Timestamp(ctx, size, name)
		if err != nil {
			return err
		}
		der, err := tsa.SplitToken(response)
		if err != nil {
			return err
		}
		if _, err := tsa.Verify(der, tsa.VerifyOptions{Digest: sha256.Sum256(note), Roots: w.o.Roots, Now: w.o.Now()}); err == nil {
			return keepBefore(w.o.Dir, note, der)
		}
	}
	return errors.New("no token holds under the pinned roots")
}

// keepBefore makes note and token durable, then names them newest.
func keepBefore(dir string, note, token []byte) error {
	folder := filepath.Join(dir, folderName, beforeFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	nb := receipts.NotBefore{Token: sha256.Sum256(token), Checkpoint: sha256.Sum256(note)}
	name := filepath.Join(folder, hex.EncodeToString(nb.Checkpoint[:]))
	if err := errors.Join(replaceFile(name+".note", note), replaceFile(name+".token", token)); err != nil {
		return err
	}
	return replaceFile(filepath.Join(folder, "newest"), fmt.Appendf(nil, "%s\n%x\n%x\n", beforeHeader, nb.Token, nb.Checkpoint))
}

// NewestBefore is the lower bound for receipts written now: the newest verified
// token kept in the evidence folder dir. Nil when there is none.
func NewestBefore(dir string) *receipts.NotBefore {
	b, err := readBounded(filepath.Join(dir, folderName, beforeFolder, "newest"))
	if err != nil {
		return nil
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) != 4 || lines[0] != beforeHeader {
		return nil
	}
	var nb receipts.NotBefore
	token, err1 := hex.DecodeString(lines[1])
	note, err2 := hex.DecodeString(lines[2])
	if err := errors.Join(err1, err2); err != nil || copy(nb.Token[:], token) != 32 || copy(nb.Checkpoint[:], note) != 32 {
		return nil
	}
	return &nb
}

// Before returns the kept note and token that a receipt's notBefore names, nil
// when they are not here.
func Before(dir string, nb receipts.NotBefore) (note, token []byte) {
	name := filepath.Join(dir, folderName, beforeFolder, hex.EncodeToString(nb.Checkpoint[:]))
	note, err1 := readBounded(name + ".note")
	token, err2 := readBounded(name + ".token")
	if err1 != nil || err2 != nil || sha256.Sum256(token) != nb.Token {
		return nil, nil
	}
	return note, token
}

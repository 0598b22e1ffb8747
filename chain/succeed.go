package chain

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// A chain begins in next/: its folders are made whole and durable aside, then
// put in place one by one while those of the chain before, if any, move to
// closed/. A crash at any point leaves next/ to be finished by the next Open,
// or, before its name is there, nothing but keys that never signed a line.

// closesName is a file in next/: the folder in closed/ for what is replaced.
const closesName = "CLOSES"

func noneKept() (uint64, []byte, error) { return 0, nil, nil }

// whyEnd returns why a chain may not be continued, "" if it may.
func (l layout) whyEnd(f *found, kept func() (uint64, []byte, error)) (string, error) {
	b, err := readAll(l.fs, l.path(chainName, endedName), 1<<10)
	if err == nil {
		return "ended: " + strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if f.damage != nil {
		return "rolled back: " + f.damage.Error(), nil
	}
	size, _, err := kept()
	if err != nil {
		return "", fmt.Errorf("kept heads: %w", err)
	}
	if f.place.seq < size {
		return fmt.Sprintf("rolled back: a witness accepted %d lines, %d are left", size, f.place.seq), nil
	}
	return "", nil
}

// continued returns the chain to go on with: the one found, a first one, or
// the successor of one that must end. f is nil where there are no lines.
func (c *Chain) continued(f *found) (*found, error) {
	if f == nil {
		return c.anew()
	}
	why, err := c.at.whyEnd(f, c.o.KeptHeads)
	if err != nil || why == "" {
		return f, err
	}
	root, err := tlog.TreeRoot(f.place.seq, f.tree)
	if err != nil {
		return nil, err
	}
	old := receipts.Old{Origin: f.place.origin, Size: f.place.seq, Root: root}
	if old.Origin == "" { // not even the first line is good
		if old.Origin, err = c.originOfKeys(); err != nil {
			return nil, err
		}
	}
	return c.succeed(old, why)
}

// anew opens the first chain. Keys without a chain are those of a chain whose
// lines were taken away: they never sign another first line.
func (c *Chain) anew() (*found, error) {
	origin, err := c.originOfKeys()
	if errors.Is(err, fs.ErrNotExist) {
		return c.begun("", nil, func(vkey string, pub ed25519.PublicKey) receipts.Receipt {
			return receipts.NewGenesis(c.common(), vkey, pub)
		})
	}
	if err != nil {
		return nil, err
	}
	return c.succeed(receipts.Old{Origin: origin, Root: tlog.EmptyRoot()}, "rolled back: its keys are here, its lines are not")
}

// originOfKeys is named by the first head key, which after a rotation only its
// own note still holds.
func (c *Chain) originOfKeys() (string, error) {
	notes, err := c.at.keyNotes()
	if err != nil {
		return "", err
	}
	if len(notes) > 0 {
		if lines := strings.Split(string(notes[0].Note), "\n"); len(lines) > 2 && originHex(lines[2]) != "" {
			return lines[2], nil
		}
	}
	head, err := loadKey(c.at.fs, c.at.path(keysName, headKeyName))
	if err != nil {
		return "", err
	}
	return originOf(c.o.Label, publicOf(head)), nil
}

func (c *Chain) succeed(old receipts.Old, why string) (*found, error) {
	c.log.Error("chain is closed, a successor opens", "origin", old.Origin, "size", old.Size, "reason", why)
	f, err := c.begun(originHex(old.Origin), &old, func(vkey string, pub ed25519.PublicKey) receipts.Receipt {
		return receipts.NewSuccessor(c.common(), vkey, pub, old, c.witnessHead(), why)
	})
	c.old = &Predecessor{Old: old, Reason: why}
	return f, err
}

// maxWitnessHead leaves room for the rest of the line.
const maxWitnessHead = 8 << 10

// witnessHead is the last head a witness accepted of the chain that closes, as
// far as it is kept: with it the lost range can be told by anyone.
func (c *Chain) witnessHead() string {
	_, note, err := c.o.KeptHeads()
	if err != nil || len(note) > maxWitnessHead {
		c.log.Warn("the successor is told without the witness's head", "bytes", len(note), "err", err)
		return ""
	}
	return string(note)
}

// begun makes a chain with new keys and loads it.
func (c *Chain) begun(closes string, old *receipts.Old, first func(string, ed25519.PublicKey) receipts.Receipt) (*found, error) {
	label := c.o.Label
	if old != nil {
		label, _, _ = strings.Cut(old.Origin, "/")
	}
	if err := c.bump(); err != nil {
		return nil, err
	}
	if err := c.prepareNext(label, closes, first); err != nil {
		return nil, fmt.Errorf("begin chain: %w", noSpace(err))
	}
	if err := c.at.finishNext(); err != nil {
		return nil, fmt.Errorf("begin chain: %w", noSpace(err))
	}
	return c.at.load()
}

func (c *Chain) prepareNext(label, closes string, first func(string, ed25519.PublicKey) receipts.Receipt) error {
	aside := layout{fs: c.at.fs, dir: c.at.path(nextName + ".tmp")}
	if err := removeTree(aside.fs, aside.dir); err != nil {
		return err
	}
	keys, err := newKeyPair()
	if err != nil {
		return err
	}
	line, err := firstLine(keys, label, first)
	if err != nil {
		return err
	}
	if err := aside.fill(keys, line, closes); err != nil {
		return err
	}
	if err := c.at.fs.Rename(aside.dir, c.at.path(nextName)); err != nil {
		return err
	}
	return c.at.fs.SyncDir(c.at.dir)
}

func firstLine(keys keyPair, label string, first func(string, ed25519.PublicKey) receipts.Receipt) ([]byte, error) {
	origin := originOf(label, publicOf(keys.head))
	v, err := tlog.NewVkey(origin, tlog.KeyEd25519, publicOf(keys.head))
	if err != nil {
		return nil, err
	}
	link := receipts.Link{Origin: origin, Prev: sha256.Sum256([]byte(v.String()))}
	line, err := receipts.Seal(first(v.String(), publicOf(keys.receipt)), link, keys.receipt)
	return append(line, '\n'), err
}

// fill writes a chain of one line.
func (l layout) fill(keys keyPair, line []byte, closes string) error {
	if err := makeDir(l.fs, l.dir); err != nil {
		return err
	}
	for _, name := range folders {
		if err := makeDir(l.fs, l.path(name)); err != nil {
			return err
		}
	}
	if closes == "" {
		closes = "unknown-" + hex.EncodeToString(randomBytes(8))
	}
	files := map[string][]byte{l.segment(0): line, l.salts(0): nil, l.path(closesName): []byte(closes)}
	for name, data := range files {
		if err := createFile(l.fs, name, data, os.O_EXCL); err != nil {
			return err
		}
	}
	err := keys.store(l.fs, l.path(keysName))
	for _, name := range []string{chainName, saltsName, "."} {
		err = errors.Join(err, l.fs.SyncDir(l.path(name)))
	}
	return err
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// finishNext puts the folders of next/ in place. Each step is durable before
// the following one.
func (l layout) finishNext() error {
	next := l.path(nextName)
	closes, err := readAll(l.fs, filepath.Join(next, closesName), 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return l.removeEmpty(next)
	}
	if err != nil {
		return err
	}
	if strings.ContainsAny(string(closes), `/\.`) || len(closes) == 0 {
		return fmt.Errorf("%s names no folder: %q", filepath.Join(next, closesName), closes)
	}
	for _, name := range folders {
		if err := l.moveOne(name, string(closes)); err != nil {
			return err
		}
	}
	if err := l.fs.Remove(filepath.Join(next, closesName)); err != nil {
		return err
	}
	if err := l.fs.SyncDir(next); err != nil {
		return err
	}
	return l.removeEmpty(next)
}

func (l layout) removeEmpty(dir string) error {
	if there, err := exists(l.fs, dir); !there || err != nil {
		return err
	}
	if err := l.fs.Remove(dir); err != nil {
		return err
	}
	return l.fs.SyncDir(l.dir)
}

// moveOne moves next/name to name, and what bore that name to closed/. That
// next/name is still there tells that this is not done.
func (l layout) moveOne(name, closes string) error {
	from, to := l.path(nextName, name), l.path(name)
	if waiting, err := exists(l.fs, from); !waiting || err != nil {
		return err
	}
	if inPlace, err := exists(l.fs, to); err != nil {
		return err
	} else if inPlace {
		if err := l.closeOne(name, closes); err != nil {
			return err
		}
	}
	if err := l.fs.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(l.fs.SyncDir(l.dir), l.fs.SyncDir(l.path(nextName)))
}

// closeOne keeps a folder of the old chain, which thereby is an evidence
// folder of its own that a Reader opens.
func (l layout) closeOne(name, closes string) error {
	old := layout{fs: l.fs, dir: l.path(closedName, closes)}
	if err := makeDirs(l.fs, old.dir); err != nil {
		return err
	}
	if there, err := exists(l.fs, old.path(formatName)); err != nil {
		return err
	} else if !there {
		if err := replaceFile(l.fs, old.path(formatName), []byte(formatLine)); err != nil {
			return err
		}
	}
	if err := l.fs.Rename(l.path(name), old.path(name)); err != nil {
		return err
	}
	return errors.Join(l.fs.SyncDir(old.dir), l.fs.SyncDir(l.dir))
}

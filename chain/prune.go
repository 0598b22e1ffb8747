package chain

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// A prune takes lines away and keeps their hashes. The hashes are durable in
// tiles first, then a prune receipt, then chain/PRUNED, and only then files
// change: what is kept of the segment that holds the first kept line, and each
// genesis or rotation line before it, get segments of their own, and the rest is
// removed. What a crash left of it is finished by the next Open.

const (
	prunedName    = "PRUNED" // inside chain/
	prunedHeader  = "tool-guardian/pruned/1\n"
	maxPrunedFile = 1 << 20
)

// pruned is chain/PRUNED: the place of the first kept line, the root below it,
// and the lines before it that stay.
type pruned struct {
	First  uint64   `json:"first"` // 0: nothing was pruned
	Prev   string   `json:"prev"`  // hex
	KeySeq uint64   `json:"keySeq"`
	Root   string   `json:"root"` // hex
	Keys   []uint64 `json:"keys"` // genesis and rotations before First
}

// ErrPruned: the line was removed, its hash is kept.
var ErrPruned = fmt.Errorf("%w: it was pruned, only its hash is kept", ErrNotFound)

// Prune removes the lines before seq before, but genesis and rotation lines,
// and keeps every hash, so that heads and proofs of all other lines stay good.
// Only lines below witnessed go, which is the smallest size that the witnesses
// of this chain cosigned: the caller knows them. It returns the first line kept
// and the place of the prune receipt.
func (c *Chain) Prune(ctx context.Context, before, witnessed uint64) (first uint64, pos receipts.Position, err error) {
	if err := c.begin(); err != nil {
		return 0, pos, err
	}
	defer c.work.Done()
	first = min(before, witnessed, c.durable())
	was, err := c.at.pruned()
	if err != nil {
		return 0, pos, err
	}
	if first <= was.First {
		return 0, pos, fmt.Errorf("prune: nothing to remove: %d lines were asked for, %d are witnessed, %d are gone already", before, witnessed, was.First)
	}
	// Lines below first never change: their hashes are looked at without the lock.
	if err := c.keepHashes(was.First, first); err != nil {
		return 0, pos, fmt.Errorf("prune: keep hashes: %w", noSpace(err))
	}
	if err := c.enter(ctx); err != nil {
		return 0, pos, err
	}
	defer c.leave()
	pos, err = c.prune(first)
	if err != nil {
		return 0, pos, fmt.Errorf("prune: %w", noSpace(err))
	}
	return first, pos, nil
}

func (c *Chain) prune(first uint64) (receipts.Position, error) {
	if err := errors.Join(c.bump(), c.syncAll()); err != nil {
		return receipts.Position{}, err
	}
	was, err := c.at.pruned()
	if err != nil || was.First >= first {
		return receipts.Position{}, errors.Join(err, errors.New("another process pruned meanwhile"))
	}
	m, err := c.pruning(first)
	if err != nil {
		return receipts.Position{}, err
	}
	var prev, root [32]byte
	if err := errors.Join(fromHex(&prev, m.Prev), fromHex(&root, m.Root)); err != nil {
		return receipts.Position{}, err
	}
	pos, err := c.put(receipts.NewPrune(c.common(), first, prev, root))
	if err != nil {
		return pos, err
	}
	if err := c.syncAll(); err != nil {
		if again := c.rewrite(); again != nil {
			return pos, c.end(again)
		}
	}
	if err := c.at.keepPruned(m); err != nil {
		return pos, err
	}
	// From here on the files are those of a pruned chain, done or not.
	if err := c.reload(c.gen.Load()); err != nil {
		return pos, c.end(err)
	}
	return pos, nil
}

// pruning finds the place of line first, and the key lines before it.
func (c *Chain) pruning(first uint64) (pruned, error) {
	at := c.place
	if first < at.seq {
		_, s, err := c.at.known(first, c.currentTree())
		if err != nil {
			return pruned{}, err
		}
		at = place{prev: s.Prev, keySeq: s.KeySeq}
	}
	root, err := tlog.TreeRoot(first, c.currentTree())
	if err != nil {
		return pruned{}, err
	}
	m := pruned{First: first, Prev: hex.EncodeToString(at.prev[:]), KeySeq: at.keySeq, Root: root.Hex()}
	for k := at.keySeq; ; {
		m.Keys = append(m.Keys, k)
		_, s, err := c.at.known(k, c.currentTree())
		if err != nil {
			return pruned{}, err
		}
		if k == 0 {
			slices.Reverse(m.Keys)
			return m, nil
		}
		k = s.KeySeq
	}
}

func fromHex(to *[32]byte, s string) error {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(to) {
		return fmt.Errorf("%q is no hash", s)
	}
	copy(to[:], b)
	return nil
}

// keepHashes makes the hashes of lines from was to first durable in tiles: those
// the tree has, which must be those of the lines that go.
func (c *Chain) keepHashes(was, first uint64) error {
	t := c.currentTree()
	folders := map[string]bool{}
	for i := was / tlog.TileWidth; i*tlog.TileWidth < first; i++ {
		id := tlog.TileID{Index: i}
		width := int(min(first-i*tlog.TileWidth, tlog.TileWidth))
		b, err := t.ReadTile(id, width)
		if err != nil {
			return err
		}
		lines, err := c.at.leafHashes(i*tlog.TileWidth, width)
		if err != nil {
			return err
		}
		if !bytes.Equal(b, lines) {
			return fmt.Errorf("a line between %d and %d was altered: run verify before anything is pruned", i*tlog.TileWidth, first)
		}
		name := c.at.path(chainName, tilesName, filepath.FromSlash(id.Path(width)))
		if err := c.keepTile(name, b); err != nil {
			return err
		}
		for dir := filepath.Dir(name); dir != c.at.path(chainName); dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	folders[c.at.path(chainName)] = true
	for dir := range folders {
		if err := c.at.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (c *Chain) keepTile(name string, b []byte) error {
	if old, err := readAll(c.at.fs, name, tileSize); err == nil && bytes.Equal(old, b) {
		return nil
	}
	if err := makeDirs(c.at.fs, filepath.Dir(name)); err != nil {
		return err
	}
	return replaceFile(c.at.fs, name, b)
}

func (l layout) keepPruned(m pruned) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := replaceFile(l.fs, l.path(chainName, prunedName), append([]byte(prunedHeader), b...)); err != nil {
		return err
	}
	return l.fs.SyncDir(l.path(chainName))
}

// pruned returns what was pruned; First is 0 where nothing was.
func (l layout) pruned() (pruned, error) {
	var m pruned
	name := l.path(chainName, prunedName)
	b, err := readAll(l.fs, name, maxPrunedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	text, ok := bytes.CutPrefix(b, []byte(prunedHeader))
	if !ok {
		return m, fmt.Errorf("%w: %s", ErrFormat, name)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// unfinished reports whether files of pruned lines are left.
func (l layout) unfinished(m pruned) (bool, error) {
	segments, err := l.segments()
	if err != nil || m.First == 0 {
		return false, err
	}
	for _, first := range segments {
		if first < m.First && !slices.Contains(m.Keys, first) {
			return true, nil
		}
	}
	for _, k := range m.Keys {
		if alone, err := l.alone(k); !alone || err != nil {
			return true, err
		}
	}
	return !slices.Contains(segments, m.First), nil
}

// alone reports that a key line is the only one of its segment.
func (l layout) alone(k uint64) (bool, error) {
	info, err := l.fs.Stat(l.segment(k))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	at, err := l.find(k)
	return err == nil && at.segment == k && info.Size == int64(len(at.line))+1, err
}

// finishPrune brings the files to what m says. Each step is durable before the
// next, and each finds out for itself whether it is done: segments keep their
// lines until every line that stays has another place.
func (l layout) finishPrune(m pruned) error {
	if err := l.splitAt(m.First); err != nil {
		return err
	}
	// The last first: a segment that begins with a key line may hold others.
	for _, k := range slices.Backward(m.Keys) {
		if err := l.setApart(k); err != nil {
			return err
		}
	}
	segments, err := l.segments()
	if err != nil {
		return err
	}
	for _, first := range segments {
		if first >= m.First {
			break
		}
		if err := removeIfThere(l.fs, l.salts(first)); err != nil {
			return err
		}
		if slices.Contains(m.Keys, first) {
			continue
		}
		if err := l.fs.Remove(l.segment(first)); err != nil {
			return err
		}
	}
	return errors.Join(l.fs.SyncDir(l.path(saltsName)), l.fs.SyncDir(l.path(chainName)))
}

// splitAt gives the lines from first on, in the segment that holds it, a
// segment of their own, salts first.
func (l layout) splitAt(first uint64) error {
	segments, err := l.segments()
	if err != nil || slices.Contains(segments, first) {
		return err
	}
	at, err := l.find(first)
	if err != nil {
		return err
	}
	if err := l.copySalts(at.segment, first); err != nil {
		return err
	}
	return l.copyEnd(l.segment(at.segment), at.off, l.segment(first))
}

func (l layout) copySalts(segment, first uint64) error {
	file, err := l.fs.OpenFile(l.salts(segment), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	off, err := saltsBefore(file, first)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return l.copyEnd(l.salts(segment), off, l.salts(first))
}

// copyEnd copies the bytes behind off into another file, whole and durable
// before it has its name.
func (l layout) copyEnd(name string, off int64, to string) error {
	file, err := l.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return err
	}
	b := make([]byte, max(info.Size-off, 0))
	if n, err := file.ReadAt(b, off); n < len(b) {
		return err
	}
	if err := replaceFile(l.fs, to, b); err != nil {
		return err
	}
	return l.fs.SyncDir(filepath.Dir(to))
}

// setApart gives a key line a segment of its own.
func (l layout) setApart(k uint64) error {
	if alone, err := l.alone(k); alone || err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	at, err := l.find(k)
	if err != nil {
		return err
	}
	if err := replaceFile(l.fs, l.segment(k), append(at.line, '\n')); err != nil {
		return err
	}
	return l.fs.SyncDir(l.path(chainName))
}

// partialTile holds the hashes of pruned lines that fill no tile.
func (l layout) partialTile(m pruned) ([]byte, error) {
	width := int(m.First % tlog.TileWidth)
	if width == 0 {
		return nil, nil
	}
	id := tlog.TileID{Index: m.First / tlog.TileWidth}
	b, err := readAll(l.fs, l.path(chainName, tilesName, filepath.FromSlash(id.Path(width))), tileSize)
	if err == nil && len(b) != width*leafSize {
		err = fmt.Errorf("%d bytes, want %d", len(b), width*leafSize)
	}
	if err != nil {
		return nil, fmt.Errorf("hashes of pruned lines: %w", err)
	}
	return b, nil
}

// prunedStart is where a pruned chain is read from: behind the hashes that
// stand for what is gone, which must come to the root told.
func (l layout) prunedStart(m pruned) (*tree, place, error) {
	t, err := newTree(l, m.First/tlog.TileWidth, l.leafHashes)
	if err != nil {
		return nil, place{}, err
	}
	part, err := l.partialTile(m)
	if err != nil {
		return nil, place{}, err
	}
	for ; len(part) > 0; part = part[leafSize:] {
		t.push(tlog.Hash(part[:leafSize]))
	}
	root, err := tlog.TreeRoot(m.First, t)
	if err != nil {
		return nil, place{}, err
	}
	if root.Hex() != m.Root {
		return nil, place{}, fmt.Errorf("the hashes of pruned lines come to root %s, %s says %s", root.Hex(), prunedName, m.Root)
	}
	_, s, err := l.known(m.KeySeq, t)
	if err != nil {
		return nil, place{}, err
	}
	p, err := place{origin: s.Origin, seq: m.First}.withKeys(s)
	return t, p, errors.Join(err, fromHex(&p.prev, m.Prev))
}

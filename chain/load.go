package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

const leafSize = tlog.HashSize

func appendLeaf(dst, line []byte) []byte {
	h := tlog.LeafHash(line)
	return append(dst, h[:]...)
}

// found is what the files of a chain hold. Finding it changes nothing.
type found struct {
	place   place // behind the last good line
	tree    *tree
	segment uint64 // the last one
	good    int64  // offset behind its last good line and that line's "\n"
	size    int64  // its size; good-1 where only the "\n" is missing
	lost    []saltKey
	damage  error // bad lines where no crash leaves any
}

// torn is how many bytes follow the last good line.
func (f *found) torn() int64 { return max(f.size-f.good, 0) }

// scan carries a load over segments.
type scan struct {
	layout
	out       *found
	last      uint64           // the last segment
	committed map[saltKey]bool // of the last segment
}

// load reads the chain's end: full tiles give the tree up to themselves, and
// only the lines behind them are read and checked. If tiles and lines do not
// fit, the lines are read from the beginning and the tiles count for nothing
// but this: as many lines were durable once.
func (l layout) load() (*found, error) {
	segments, err := l.segments()
	if err != nil {
		return nil, err
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoChain, l.dir)
	}
	gone, err := l.pruned()
	if err != nil {
		return nil, err
	}
	saved := l.savedTiles()
	if saved*tlog.TileWidth > gone.First {
		if f, err := l.loadFrom(segments, saved, pruned{}); err == nil {
			return f, nil
		}
	}
	f, err := l.loadFrom(segments, 0, gone)
	if err != nil {
		return nil, err
	}
	switch {
	case f.damage != nil:
	case f.place.seq == 0:
		f.damage = errors.New("the first line is not a chain's")
	case f.place.seq < saved*tlog.TileWidth:
		f.damage = fmt.Errorf("tiles hold %d lines, the segments %d", saved*tlog.TileWidth, f.place.seq)
	}
	return f, nil
}

// loadFrom trusts the first n tiles, or the hashes of what was pruned.
func (l layout) loadFrom(segments []uint64, n uint64, gone pruned) (*found, error) {
	t, err := newTree(l, n, l.leafHashes)
	if err != nil {
		return nil, err
	}
	s := scan{layout: l, out: &found{tree: t}, last: segments[len(segments)-1], committed: make(map[saltKey]bool)}
	start := spot{segment: segments[0]}
	switch {
	case n > 0:
		if start, s.out.place, err = l.resume(n*tlog.TileWidth, t); err != nil {
			return nil, err
		}
	case gone.First > 0:
		start = spot{segment: gone.First}
		if s.out.tree, s.out.place, s.out.damage = l.prunedStart(gone); s.out.damage != nil {
			s.out.tree, s.out.place = t, place{}
			return s.out, nil
		}
	}
	for _, first := range segments {
		if first < start.segment {
			continue
		}
		if err := s.segment(first, start); err != nil {
			return nil, err
		}
	}
	return s.out, s.findLost()
}

// resume finds the place of line seq from the line before it, which must be
// the one the tree knows.
func (l layout) resume(seq uint64, t *tree) (spot, place, error) {
	if seq == 0 {
		return spot{}, place{}, nil
	}
	before, s, err := l.known(seq-1, t)
	if err != nil {
		return spot{}, place{}, err
	}
	p := place{origin: s.Origin, seq: seq - 1, keySeq: s.KeySeq}
	if _, bringer, err := l.known(s.KeySeq, t); err != nil {
		return spot{}, place{}, err
	} else if p, err = p.withKeys(bringer); err != nil {
		return spot{}, place{}, err
	}
	p, err = p.behind(before.line, s)
	before.off += int64(len(before.line)) + 1
	return before, p, err
}

// known reads a line and holds it against the tree.
func (l layout) known(seq uint64, t *tree) (spot, *receipts.Statement, error) {
	at, err := l.find(seq)
	if err != nil {
		return at, nil, err
	}
	leaf, err := t.leaf(seq)
	if err != nil {
		return at, nil, err
	}
	if tlog.LeafHash(at.line) != leaf {
		return at, nil, fmt.Errorf("line %d is not the one the tree knows", seq)
	}
	env, err := receipts.ParseLine(at.line)
	if err != nil {
		return at, nil, err
	}
	s, err := receipts.ParseStatement(env.Payload)
	return at, s, err
}

// segment reads one segment from start, if that lies in it.
func (s *scan) segment(first uint64, start spot) error {
	if s.out.damage != nil {
		return nil
	}
	off := int64(0)
	if first == start.segment {
		off = start.off
	} else if first != s.out.place.seq {
		s.out.damage = fmt.Errorf("segment %s begins where line %d should", stem(first), s.out.place.seq)
		return nil
	}
	file, err := s.fs.OpenFile(s.layout.segment(first), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return err
	}
	s.out.segment, s.out.size = first, info.Size
	s.out.place, s.out.good, err = walk(file, off, info.Size, s.out.place, s.take)
	if s.out.torn() > 0 && first != s.last {
		s.out.damage = fmt.Errorf("segment %s: byte %d begins no line that continues the chain, and it is not the last segment",
			stem(first), s.out.good)
	}
	return err
}

func (s *scan) take(e entry) {
	s.out.tree.push(e.leaf)
	for _, k := range e.committed {
		if k.seq >= s.last {
			s.committed[k] = true
		}
	}
	for _, gone := range e.erased {
		delete(s.committed, saltKey{gone.Seq, receipts.FieldNamed(gone.Field)})
	}
}

// findLost keeps the committed fields of the last segment whose salts are
// neither there nor told erased. Older segments were synced with their salts
// before the next began.
func (s *scan) findLost() error {
	have, err := s.saltsOf(s.last)
	if err != nil {
		return err
	}
	for k := range s.committed {
		if !have[k] {
			s.out.lost = append(s.out.lost, k)
		}
	}
	return nil
}

func (s *scan) saltsOf(first uint64) (map[saltKey]bool, error) {
	file, err := s.fs.OpenFile(s.layout.salts(first), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return nil, err
	}
	from := s.out.place.seq
	for k := range s.committed {
		from = min(from, k.seq)
	}
	return saltFile{file, int(info.Size / recordSize)}.present(from)
}

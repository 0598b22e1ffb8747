package chain

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// spot is where a line stands.
type spot struct {
	segment uint64 // its first seq
	off     int64
	line    []byte // without "\n"
}

// holding returns the segment that would hold seq.
func holding(segments []uint64, seq uint64) (uint64, bool) {
	i, found := slices.BinarySearch(segments, seq)
	switch {
	case found:
		return segments[i], true
	case i > 0:
		return segments[i-1], true
	}
	return 0, false
}

// find looks for a line by halving its segment: a line tells its own seq, so
// no index is kept. What it returns is what the file says; callers that must
// know compare its hash with the tree.
func (l layout) find(seq uint64) (spot, error) {
	segments, err := l.segments()
	if err != nil {
		return spot{}, err
	}
	first, ok := holding(segments, seq)
	if !ok {
		return spot{}, fmt.Errorf("%w: line %d", ErrNotFound, seq)
	}
	file, err := l.fs.OpenFile(l.segment(first), os.O_RDONLY, 0)
	if err != nil {
		return spot{}, err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return spot{}, err
	}
	at, err := findIn(file, first, info.Size, seq)
	if errors.Is(err, ErrNotFound) {
		if gone, _ := l.pruned(); seq < gone.First {
			err = fmt.Errorf("line %d: %w", seq, ErrPruned)
		}
	}
	return at, err
}

// nearEnough is where halving stops and reading begins.
const nearEnough = 4 * readSize

func findIn(file File, first uint64, size int64, seq uint64) (spot, error) {
	lo, at, hi := int64(0), first, size // line at begins at lo; lines from hi on come after seq
	for hi-lo > nearEnough {
		mid := lo + (hi-lo)/2
		start, got, err := lineAfter(file, mid, hi)
		if err != nil || start >= hi {
			break // nothing to go by here: read from lo
		}
		if got <= seq {
			lo, at = start, got
		} else {
			hi = mid
		}
	}
	return readTo(file, spot{segment: first, off: lo}, at, size, seq)
}

// lineAfter finds the first line that begins behind off, and its seq.
func lineAfter(file File, off, end int64) (start int64, seq uint64, err error) {
	n := 0
	var bad error
	err = eachLine(file, off, end, func(line []byte, at int64) bool {
		if n++; n == 1 {
			return true // the rest of a line, or a line that begins at off itself
		}
		start = at
		seq, bad = seqOf(line)
		return false
	})
	if n < 2 {
		return end, 0, err
	}
	return start, seq, errors.Join(err, bad)
}

func seqOf(line []byte) (uint64, error) {
	env, err := receipts.ParseLine(line)
	if err != nil {
		return 0, err
	}
	s, err := receipts.ParseStatement(env.Payload)
	if err != nil {
		return 0, err
	}
	return s.Seq, nil
}

// readTo counts lines from s, which is line at, to line seq.
func readTo(file File, s spot, at uint64, size int64, seq uint64) (spot, error) {
	err := eachLine(file, s.off, size, func(line []byte, off int64) bool {
		if at == seq {
			s.off, s.line = off, bytes.Clone(line)
			return false
		}
		at++
		return true
	})
	if err == nil && s.line == nil {
		err = fmt.Errorf("%w: line %d", ErrNotFound, seq)
	}
	return s, err
}

// leafHashes reads n lines from first on, which may cross segments.
func (l layout) leafHashes(first uint64, n int) ([]byte, error) {
	segments, err := l.segments()
	if err != nil {
		return nil, err
	}
	hashes, err := l.prunedLeaves(first, n)
	if err != nil {
		return nil, err
	}
	first, n = first+uint64(len(hashes)/leafSize), n-len(hashes)/leafSize
	for n > 0 {
		segment, ok := holding(segments, first)
		if !ok {
			return nil, fmt.Errorf("%w: line %d", ErrNotFound, first)
		}
		got, err := l.leavesOf(segment, first, n)
		if err != nil {
			return nil, err
		}
		count := len(got) / leafSize
		if count == 0 {
			return nil, fmt.Errorf("%w: line %d", ErrNotFound, first)
		}
		hashes, first, n = append(hashes, got...), first+uint64(count), n-count
	}
	return hashes, nil
}

// prunedLeaves are those of n hashes that stand for pruned lines in a tile that
// has others too.
func (l layout) prunedLeaves(first uint64, n int) ([]byte, error) {
	gone, err := l.pruned()
	if err != nil || first >= gone.First {
		return nil, err
	}
	if first/tlog.TileWidth != gone.First/tlog.TileWidth {
		return nil, fmt.Errorf("line %d: %w, and the tile with that hash is missing", first, ErrPruned)
	}
	part, err := l.partialTile(gone)
	if err != nil {
		return nil, err
	}
	part = part[first%tlog.TileWidth*leafSize:]
	return part[:min(len(part), n*leafSize):min(len(part), n*leafSize)], nil
}

func (l layout) leavesOf(segment, seq uint64, n int) ([]byte, error) {
	file, err := l.fs.OpenFile(l.segment(segment), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Info()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	s, err := findIn(file, segment, info.Size, seq)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	hashes := make([]byte, 0, n*leafSize)
	err = eachLine(file, s.off, info.Size, func(line []byte, _ int64) bool {
		hashes = appendLeaf(hashes, line)
		return len(hashes) < n*leafSize
	})
	return hashes, errors.Join(err, file.Close())
}

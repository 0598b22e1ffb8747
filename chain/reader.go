package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// Line is one line of a chain's folder.
type Line struct {
	Seq     uint64 // by position: the segment's first seq and the lines before it there
	Bytes   []byte // without "\n"; of a line longer than receipts.MaxLine one byte more than that
	Segment string // file name
	Offset  int64
	Torn    bool // the last of its segment, without "\n"
}

// Reader reads a chain's folder as it was at OpenReader, whatever is appended
// meanwhile. It takes no lock, writes nothing, and judges nothing.
type Reader struct {
	at       layout
	segments []extent
	gone     pruned
}

// extent is a segment and how much of it is read.
type extent struct{ first, size uint64 }

// OpenReader opens the evidence folder dir, or one below closed/.
func OpenReader(dir string) (*Reader, error) {
	at := layout{fs: OS(), dir: dir}
	if err := at.checkFormat(); err != nil {
		return nil, err
	}
	return at.reader()
}

func (l layout) reader() (*Reader, error) {
	firsts, err := l.segments()
	if err != nil {
		return nil, err
	}
	if len(firsts) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoChain, l.dir)
	}
	r := &Reader{at: l}
	for i, first := range firsts {
		size, err := l.extent(first, i == len(firsts)-1)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %v", ErrChanged, err)
		}
		if err != nil {
			return nil, err
		}
		r.segments = append(r.segments, extent{first, size})
	}
	// Asked last: files change only after it is told that they will.
	r.gone, err = l.pruned()
	return r, err
}

// A writer puts a line down within writeTime: an end without "\n" that is
// still there afterwards is a torn tail and not a line on its way.
const (
	writeTime = 100 * time.Millisecond
	writeLook = 2 * time.Millisecond
)

// extent returns a segment's size, of the last one at the end of a line if a
// writer is at work.
func (l layout) extent(first uint64, last bool) (uint64, error) {
	file, err := l.fs.OpenFile(l.segment(first), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for began := time.Now(); ; time.Sleep(writeLook) {
		info, err := file.Info()
		if err != nil {
			return 0, err
		}
		if !last || info.Size == 0 || time.Since(began) > writeTime {
			return uint64(info.Size), nil
		}
		var b [1]byte
		if n, _ := file.ReadAt(b[:], info.Size-1); n == 1 && b[0] == '\n' {
			return uint64(info.Size), nil
		}
	}
}

// Lines yields the lines from seq from on, in bounded memory. The bytes of a
// Line are good until the next one. After an error nothing follows.
func (r *Reader) Lines(from uint64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for i, e := range r.segments {
			if i+1 < len(r.segments) && r.segments[i+1].first <= from {
				continue
			}
			if more, err := r.segment(e, r.end(i), from, yield); err != nil {
				yield(Line{}, err)
				return
			} else if !more {
				return
			}
		}
	}
}

// end is the seq before which a segment's lines end: while a prune is on its
// way, a line can be in the old segment and in its own.
func (r *Reader) end(i int) uint64 {
	if i+1 < len(r.segments) && r.segments[i].first < r.gone.First {
		return r.segments[i+1].first
	}
	return math.MaxUint64
}

func (r *Reader) segment(e extent, before, from uint64, yield func(Line, error) bool) (more bool, err error) {
	file, err := r.at.fs.OpenFile(r.at.segment(e.first), os.O_RDONLY, 0)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	defer file.Close()
	start := spot{segment: e.first}
	seq := e.first
	if from > e.first {
		start, err = findIn(file, e.first, int64(e.size), from)
		if errors.Is(err, ErrNotFound) {
			return true, nil // from lies behind the last line
		}
		if err != nil {
			return false, err
		}
		seq = from
	}
	more = true
	name := stem(e.first) + segmentSuffix
	err = eachLine(file, start.off, int64(e.size), func(line []byte, at int64) bool {
		if seq >= before {
			return false
		}
		behind := at + int64(len(line))
		torn := behind == int64(e.size) && len(line) <= receipts.MaxLine
		more = yield(Line{Seq: seq, Bytes: line, Segment: name, Offset: at, Torn: torn}, nil)
		seq++
		return more
	})
	return more, err
}

// Size counts the lines: those before the last segment by its name, those in
// it one by one. A torn last line counts.
func (r *Reader) Size() (uint64, error) {
	e := r.segments[len(r.segments)-1]
	file, err := r.at.fs.OpenFile(r.at.segment(e.first), os.O_RDONLY, 0)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	defer file.Close()
	n := e.first
	err = eachLine(file, 0, int64(e.size), func([]byte, int64) bool { n++; return true })
	return n, err
}

// Pruned returns the seq of the first line that was kept, 0 where none was
// pruned: before it there are genesis and rotation lines alone.
func (r *Reader) Pruned() uint64 { return r.gone.First }

// Hashes returns the leaf hashes of n lines from seq first on that were pruned,
// as they are kept. What they come to, the witnessed roots tell.
func (r *Reader) Hashes(first uint64, n int) ([]tlog.Hash, error) {
	var out []tlog.Hash
	for seq := first; seq < first+uint64(n); {
		b, err := r.prunedTile(seq / tlog.TileWidth)
		if err != nil {
			return nil, err
		}
		i := int(seq%tlog.TileWidth) * leafSize
		if i >= len(b) {
			return nil, fmt.Errorf("%w: the hash of line %d", ErrNotFound, seq)
		}
		for ; i < len(b) && seq < first+uint64(n); i += leafSize {
			out = append(out, tlog.Hash(b[i:i+leafSize]))
			seq++
		}
	}
	return out, nil
}

func (r *Reader) prunedTile(index uint64) ([]byte, error) {
	if index == r.gone.First/tlog.TileWidth {
		return r.at.partialTile(r.gone)
	}
	b, err := readAll(r.at.fs, r.at.tile(tlog.TileID{Index: index}), tileSize)
	if err == nil && len(b) != tileSize {
		err = fmt.Errorf("%d bytes", len(b))
	}
	if err != nil {
		return nil, fmt.Errorf("hashes of pruned lines: %w", err)
	}
	return b, nil
}

// Line returns line seq as the file has it.
func (r *Reader) Line(seq uint64) ([]byte, error) {
	for line, err := range r.Lines(seq) {
		if err != nil {
			return nil, err
		}
		if line.Seq != seq {
			break
		}
		return append([]byte(nil), line.Bytes...), nil
	}
	if seq < r.gone.First {
		return nil, fmt.Errorf("line %d: %w", seq, ErrPruned)
	}
	return nil, fmt.Errorf("%w: line %d", ErrNotFound, seq)
}

// Salt returns the salt of a committed field, ErrErased where it was shredded.
func (r *Reader) Salt(seq uint64, f receipts.FieldID) ([32]byte, error) {
	return r.at.saltOf(seq, f)
}

// Close releases what the Reader holds.
func (r *Reader) Close() error { return nil }

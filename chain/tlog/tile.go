package tlog

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// TileWidth is the number of hashes in a full tile and of entries in a full
// bundle (C2SP tlog-tiles).
const TileWidth = 256

// tileHeight is the number of tree levels that one tile spans.
const tileHeight = 8

// EntriesLevel is the Level of an entry bundle.
const EntriesLevel = -1

// maxTileLevel is the highest level a path may name (C2SP tlog-tiles).
const maxTileLevel = 63

// TileID names a tile or, at EntriesLevel, an entry bundle.
type TileID struct {
	Level int
	Index uint64
}

// TileReader is the edge between the tree and whatever stores it.
//
// ReadTile returns exactly width*HashSize bytes, 1 ≤ width ≤ TileWidth: the
// first width hashes of the tile, so a store that keeps the widest form only
// returns its prefix. The caller does not change the bytes, and the reader
// does not change them after returning. Only Levels from 0 are asked for.
type TileReader interface {
	ReadTile(id TileID, width int) ([]byte, error)
}

// Path returns the path of t at the given width, "tile/0/x001/067.p/5", or,
// when width is TileWidth, without the suffix (C2SP tlog-tiles).
func (t TileID) Path(width int) string {
	level := "entries"
	if t.Level != EntriesLevel {
		level = strconv.Itoa(t.Level)
	}
	index := fmt.Sprintf("%03d", t.Index%1000)
	for n := t.Index / 1000; n > 0; n /= 1000 {
		index = fmt.Sprintf("x%03d/%s", n%1000, index)
	}
	p := "tile/" + level + "/" + index
	if width != TileWidth {
		p += ".p/" + strconv.Itoa(width)
	}
	return p
}

// ParseTilePath accepts exactly the paths that Path writes for levels up to
// 63, entry bundles, and widths from 1 to TileWidth.
func ParseTilePath(p string) (TileID, int, error) {
	id, width, ok := splitTilePath(p)
	if !ok || id.Path(width) != p {
		return TileID{}, 0, fmt.Errorf("tile path %q: want tile/LEVEL/INDEX[.p/WIDTH] as in c2sp.org/tlog-tiles", p)
	}
	return id, width, nil
}

// splitTilePath reads loosely; the caller compares with the one right form.
func splitTilePath(p string) (id TileID, width int, ok bool) {
	rest, ok := strings.CutPrefix(p, "tile/")
	if !ok {
		return id, 0, false
	}
	level, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return id, 0, false
	}
	id.Level = EntriesLevel
	if level != "entries" {
		n, err := strconv.ParseUint(level, 10, 8)
		if err != nil || n > maxTileLevel {
			return id, 0, false
		}
		id.Level = int(n)
	}
	index, partial, isPartial := strings.Cut(rest, ".p/")
	width = TileWidth
	if isPartial {
		n, err := strconv.ParseUint(partial, 10, 8)
		if err != nil || n == 0 {
			return id, 0, false
		}
		width = int(n)
	}
	digits := strings.NewReplacer("x", "", "/", "").Replace(index)
	n, err := strconv.ParseUint(digits, 10, 63)
	id.Index = n
	return id, width, err == nil
}

// WidthAt returns the width of the tile or bundle in a tree of the given
// size, 0 where it does not exist.
func WidthAt(id TileID, size uint64) int {
	level := max(id.Level, 0)
	if level*tileHeight >= 64 {
		return 0
	}
	hashes := size >> (level * tileHeight)
	full := hashes / TileWidth
	switch {
	case id.Index < full:
		return TileWidth
	case id.Index == full:
		return int(hashes % TileWidth)
	}
	return 0
}

// maxEntry is what the uint16 length of an entry in a bundle can say.
const maxEntry = 1<<16 - 1

// AppendBundle appends entry with its big-endian uint16 length to dst
// (C2SP tlog-tiles, "Log entries").
func AppendBundle(dst, entry []byte) ([]byte, error) {
	if len(entry) > maxEntry {
		return dst, fmt.Errorf("bundle entry: %d bytes, at most %d fit", len(entry), maxEntry)
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(entry)))
	return append(dst, entry...), nil
}

// SplitBundle returns the 1 to TileWidth entries of a bundle, as slices of b.
func SplitBundle(b []byte) ([][]byte, error) {
	var entries [][]byte
	for len(b) > 0 {
		if len(entries) == TileWidth {
			return nil, fmt.Errorf("bundle: more than %d entries", TileWidth)
		}
		if len(b) < 2 {
			return nil, fmt.Errorf("bundle: cut inside the length of entry %d", len(entries))
		}
		n := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; len(b) < n {
			return nil, fmt.Errorf("bundle: entry %d has %d bytes, its length says %d", len(entries), len(b), n)
		}
		entries = append(entries, b[:n:n])
		b = b[n:]
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("bundle: empty, which no log serves")
	}
	return entries, nil
}

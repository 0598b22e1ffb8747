package tlog

// Grow appends leaves to the tree of the given size. It returns every tile
// that is new or wider, in its widest form, and the new root; what r holds is
// not changed. Written before the new size is announced, the tiles are safe
// to lose or to write twice: a reader of the old size sees prefixes of them.
func Grow(size uint64, leaves []Hash, r TileReader) (changed map[TileID][]byte, root Hash, err error) {
	newSize := size + uint64(len(leaves))
	if err := checkSize(max(size, newSize)); err != nil {
		return nil, Hash{}, err
	}
	changed = make(map[TileID][]byte)
	start, hashes := size, leaves
	for level := 0; len(hashes) > 0; level++ {
		if hashes, err = growLevel(level, start, hashes, r, changed); err != nil {
			return nil, Hash{}, err
		}
		start /= TileWidth
	}
	root, err = TreeRoot(newSize, overlay{changed, r})
	if err != nil {
		return nil, Hash{}, err
	}
	return changed, root, nil
}

// growLevel appends hashes to the tiles of one level, which holds start
// hashes, and returns the roots of the tiles that became full: the hashes to
// append one level up.
func growLevel(level int, start uint64, hashes []Hash, r TileReader, changed map[TileID][]byte) (full []Hash, err error) {
	id := TileID{Level: level, Index: start / TileWidth}
	kept := int(start % TileWidth)
	for ; len(hashes) > 0; id.Index++ {
		add := min(TileWidth-kept, len(hashes))
		data := make([]byte, 0, (kept+add)*HashSize)
		if kept > 0 {
			old, err := readTile(r, id, kept)
			if err != nil {
				return nil, err
			}
			data = append(data, old...)
		}
		for i := range hashes[:add] {
			data = append(data, hashes[i][:]...)
		}
		changed[id] = data
		if kept+add == TileWidth {
			full = append(full, perfectRoot(data))
		}
		hashes, kept = hashes[add:], 0
	}
	return full, nil
}

// overlay reads the changed tiles of a grown tree over those of the old one.
type overlay struct {
	changed map[TileID][]byte
	old     TileReader
}

func (o overlay) ReadTile(id TileID, width int) ([]byte, error) {
	if data, ok := o.changed[id]; ok {
		return data[:min(len(data), width*HashSize)], nil
	}
	return o.old.ReadTile(id, width)
}

package cli

import (
	"io"
	"os"
)

// maxInput bounds a file that is read whole: nothing we take is that long.
const maxInput = 256 << 20

// readInput reads a file that the caller named, whole.
func readInput(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usagef("%v: check the path", err)
	}
	defer f.Close()
	b, err := readBounded(f, maxInput)
	if err != nil {
		return nil, usagef("%s: %v", name, err)
	}
	return b, nil
}

// readBounded reads to the end and refuses more than limit bytes; a device or
// a pipe does not say how long it is.
func readBounded(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, usagef("longer than %d MiB: no proof, note, key or token of ours is", limit>>20)
	}
	return b, nil
}

//go:build !linux

package bench

import "errors"

// memory is read from /proc, which this system has not.
func memory(int) (now, peak int64, err error) {
	return 0, 0, errors.New("the memory of a process is read on Linux only")
}

package cli

import (
	"fmt"
	"os"
	"syscall"
)

// reopen opens the pipe behind f once more, as an open file of our own; nil
// where that is not allowed, as under another user than the pipe's.
func reopen(f *os.File) *os.File {
	own, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	return own
}

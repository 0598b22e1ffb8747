//go:build unix

package backend

import (
	"os"
	"syscall"
)

// attempt writes to a pipe as much as goes at once. Its function is made once,
// so that a write costs no more than the system call.
type attempt struct {
	raw  syscall.RawConn // nil: nothing goes at once
	call func(fd uintptr) bool
	line []byte
	n    int
	err  error
}

// prepare is for a pipe in non-blocking mode, as os.Pipe makes it.
func (a *attempt) prepare(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	a.raw, a.call = raw, func(fd uintptr) bool {
		for {
			if a.n, a.err = syscall.Write(int(fd), a.line); a.err != syscall.EINTR {
				return true // false would wait for room
			}
		}
	}
}

// write returns how much went, which is no error.
func (a *attempt) write(line []byte) (int, error) {
	if a.raw == nil {
		return 0, nil
	}
	a.line = line
	err := a.raw.Write(a.call)
	a.line = nil
	switch {
	case err != nil:
		return 0, err
	case a.err == syscall.EAGAIN:
		return 0, nil
	}
	return max(a.n, 0), a.err
}

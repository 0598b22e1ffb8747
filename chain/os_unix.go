//go:build unix

package chain

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// noFollow: a link in the place of one of our files is not ours.
const noFollow = unix.O_NOFOLLOW

// noWait: a pipe in the place of one of our files holds nobody up. It means
// nothing to a regular file.
const noWait = unix.O_NONBLOCK

func syncDir(d *os.File) error { return d.Sync() }

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isGone also finds a file that was moved aside or has another name still: what
// is written to it then is not in the chain that others read.
func isGone(name string, info fs.FileInfo) bool {
	now, err := os.Lstat(name)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return !os.SameFile(now, info)
}

// withFD runs call on the descriptor, which stays open meanwhile, and again
// when a signal interrupts it.
func withFD(f *os.File, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			if failed = call(int(fd)); !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	return errors.Join(err, failed)
}

func tryLock(f *os.File) (bool, error) {
	err := withFD(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File) error {
	return withFD(f, func(fd int) error { return unix.Flock(fd, unix.LOCK_UN) })
}

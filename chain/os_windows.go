package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const (
	noFollow = 0
	noWait   = 0
)

func syncFile(f *os.File) error { return f.Sync() }

// syncDir: a folder cannot be flushed here; NTFS journals its names.
func syncDir(*os.File) error { return nil }

func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// isGone: an open file cannot be removed here.
func isGone(string, fs.FileInfo) bool { return false }

// lockAt lies far beyond the file's bytes: here a lock also bars reading.
func lockAt() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 20} }

func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, lockAt())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockAt())
}

func checkLocal(name string) error {
	abs, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(abs) + `\`)
	if err != nil {
		return err
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return fmt.Errorf("%w: %s: put TOOL_GUARDIAN_HOME on a local disk", ErrNetwork, name)
	}
	return nil
}

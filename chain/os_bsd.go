//go:build darwin || freebsd

package chain

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func syncFile(f *os.File) error { return f.Sync() }

func checkLocal(name string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return fmt.Errorf("file system of %s: %w", name, err)
	}
	if uint64(st.Flags)&unix.MNT_LOCAL == 0 {
		return fmt.Errorf("%w: %s: put TOOL_GUARDIAN_HOME on a local disk", ErrNetwork, name)
	}
	return nil
}

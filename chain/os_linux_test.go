package chain

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNetworkFileSystems(t *testing.T) {
	for _, magic := range []int64{unix.NFS_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC} {
		if err := judgeType("/home", magic); !errors.Is(err, ErrNetwork) {
			t.Errorf("type %#x: %v", magic, err)
		}
	}
	for _, magic := range []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} {
		if err := judgeType("/home", magic); err != nil {
			t.Errorf("type %#x: %v", magic, err)
		}
	}
	if err := checkLocal(t.TempDir()); err != nil {
		t.Error(err)
	}
}

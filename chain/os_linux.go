package chain

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncFile: fdatasync keeps the bytes and the size, and spares the times.
func syncFile(f *os.File) error { return withFD(f, unix.Fdatasync) }

// remote names the file systems of statfs(2) whose locks or syncs another
// machine answers for, or an unknown program does (FUSE).
var remote = map[int64]string{
	unix.NFS_SUPER_MAGIC:   "nfs",
	unix.SMB_SUPER_MAGIC:   "smb",
	unix.CIFS_SUPER_MAGIC:  "cifs",
	unix.SMB2_SUPER_MAGIC:  "smb2",
	unix.AFS_SUPER_MAGIC:   "afs",
	unix.AFS_FS_MAGIC:      "afs",
	unix.CODA_SUPER_MAGIC:  "coda",
	unix.CEPH_SUPER_MAGIC:  "ceph",
	unix.V9FS_MAGIC:        "9p",
	unix.FUSE_SUPER_MAGIC:  "fuse",
	unix.OCFS2_SUPER_MAGIC: "ocfs2",
	0x01161970:             "gfs2",
	0x0BD00BD0:             "lustre",
	0x47504653:             "gpfs",
}

func checkLocal(name string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(name, &st); err != nil {
		return fmt.Errorf("file system of %s: %w", name, err)
	}
	return judgeType(name, int64(uint32(st.Type)))
}

// judgeType takes the low 32 bits of a type, which are signed on some machines.
func judgeType(name string, magic int64) error {
	if kind, ok := remote[magic]; ok {
		return fmt.Errorf("%w: %s lies on %s: put TOOL_GUARDIAN_HOME on a local disk", ErrNetwork, name, kind)
	}
	return nil
}

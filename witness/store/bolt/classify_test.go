package bolt

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	bolterrors "go.etcd.io/bbolt/errors"

	"toolguardian/witness/store"
)

// Only a write or a growth that ran out of room leaves the log as it was. A
// failed sync never does, whatever its errno: what it lost is unknown.
func TestNoSpaceIsNotASyncError(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"full disk at a write", &fs.PathError{Op: "write", Err: syscall.ENOSPC}, true},
		{"quota at a write", &fs.PathError{Op: "write", Err: syscall.EDQUOT}, true},
		{"full disk at growing", &fs.PathError{Op: "truncate", Err: syscall.ENOSPC}, true},
		{"the configured bound", bolterrors.ErrMaxSizeReached, true},
		{"full disk at a sync of the growth", &fs.PathError{Op: "sync", Err: syscall.ENOSPC}, false},
		{"full disk at fdatasync", syscall.ENOSPC, false},
		{"I/O error at fdatasync", syscall.EIO, false},
		{"I/O error at a write", &fs.PathError{Op: "write", Err: syscall.EIO}, false},
		{"damage", store.ErrDamaged, false},
		{"nothing", nil, false},
	}
	for _, test := range tests {
		if got := noSpace(test.err); got != test.want {
			t.Errorf("%s: no space is %v, want %v", test.name, got, test.want)
		}
		if got := errors.Is(asNoSpace(test.err), store.ErrNoSpace); got != test.want {
			t.Errorf("%s: ErrNoSpace is %v, want %v", test.name, got, test.want)
		}
	}
}

//go:build linux

package witness_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"toolguardian/witness"
	"toolguardian/witness/api"
)

// A file system of 32 MiB is filled: heads are refused, everything else goes
// on, and once there is room the witness signs again by itself.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	r := newRig(t, func(o *witness.Options) {
		o.Dir, o.HeadFile = filepath.Join(disk, "witness"), filepath.Join(disk, "head")
		if err := witness.Init(o.Dir, logName, o.Engine); err != nil {
			t.Fatal(err)
		}
	})
	a := r.enrolled().grow(3000, "")
	added := r.add(a, 0, 1)
	ballast := fillDisk(t, disk)
	size := int64(1)
	var err error
	for ; size < 2999 && err == nil; size++ {
		_, err = r.server.AddCheckpoint(context.Background(), a.body(size, size+1))
	}
	if !errors.Is(err, api.ErrUnavailable) {
		t.Fatalf("after %d heads on a full disk: %v, want ErrUnavailable", size, err)
	}
	size-- // the last one was refused
	if got := r.ready(); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d, want 503", got)
	}
	readsGoOn(t, r, added)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	r.add(a, size, size+1)
	if got := r.ready(); got != http.StatusOK {
		t.Errorf("/readyz with room again: %d", got)
	}
	newMonitor(t, mustLog(r)).follow(r.client)
}

// fillDisk leaves room for a few commits, and gives the file to remove.
func fillDisk(t *testing.T, disk string) string {
	t.Helper()
	const left = 1 << 20
	var st syscall.Statfs_t
	if err := syscall.Statfs(disk, &st); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(disk, "ballast")
	if err := os.WriteFile(name, make([]byte, int(st.Bavail)*int(st.Bsize)-left), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func readsGoOn(t *testing.T, r *rig, added witness.Added) {
	t.Helper()
	ctx := context.Background()
	for _, path := range []string{"/checkpoint", "/checkpoint/latest", "/tile/0/000.p/2", "/tile/entries/000.p/2", "/vkey", "/metrics"} {
		if w := r.get(path); w.Code != http.StatusOK {
			t.Errorf("GET %s on a full disk: %d", path, w.Code)
		}
	}
	if _, err := r.client.Proof(ctx, added.Index, added.Size); err != nil {
		t.Errorf("a proof on a full disk: %v", err)
	}
	if report, err := r.server.Fsck(ctx); err != nil || !report.OK() {
		t.Errorf("fsck on a full disk: %v, %+v", err, report)
	}
}

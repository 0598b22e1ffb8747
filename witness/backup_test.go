package witness_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
	"toolguardian/witness/store/bolt"
)

// backedUp is a backup made while heads came in, and the log's state after it.
func (r *rig) backup(path string) witness.BackupInfo {
	r.t.Helper()
	op, err := witness.Operate(context.Background(), r.o)
	if err != nil {
		r.t.Fatal(err)
	}
	info, err := op.Backup(context.Background(), path)
	if err := errors.Join(err, op.Close()); err != nil {
		r.t.Fatal(err)
	}
	return info
}

// A backup is a snapshot of one moment while writers go on, and never holds a
// key.
func TestBackupWhileServing(t *testing.T) {
	r := newRig(t, withBuiltIn)
	a := r.enrolled().grow(60, "")
	r.add(a, 0, 1)
	path := filepath.Join(t.TempDir(), "backup")
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := int64(1); i < 59; i++ {
			if _, err := r.server.AddCheckpoint(context.Background(), a.body(i, i+1)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	info := r.backup(path)
	writing.Wait()
	if info.Size < 2 || info.Size > r.status().Size || info.Shard != 1 || info.Origin != logName {
		t.Errorf("backup %+v of a log of size %d", info, r.status().Size)
	}
	if cp := mustCheckpoint(t, []byte(info.Checkpoint)); cp.Size != info.Size || cp.Root != info.Root {
		t.Errorf("the checkpoint beside it is %+v, the copy has %d %s", cp, info.Size, info.Root)
	}
	if read, err := witness.ReadBackup(path); err != nil || read != info {
		t.Errorf("beside it stands %+v, %v; want %+v", read, err, info)
	}
	holdsNoKey(t, r, path, path+".json")
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 2 {
		t.Errorf("the backup left %v, %v", files, err)
	}
	if _, err := r.server.Backup(context.Background(), path); err == nil || !strings.Contains(err.Error(), "another name") {
		t.Errorf("over a backup: %v", err)
	}
}

// holdsNoKey looks for every private key of the witness, as PEM and as bytes.
func holdsNoKey(t *testing.T, r *rig, files ...string) {
	t.Helper()
	for _, key := range []string{"log.key", "cosigner.key"} {
		priv, err := tlog.LoadKeyFile(filepath.Join(r.o.Dir, key))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			b := readFile(t, name)
			if bytes.Contains(b, priv.Seed()) || bytes.Contains(b, []byte("PRIVATE KEY")) {
				t.Errorf("%s holds a private key", name)
			}
		}
	}
}

func TestRestore(t *testing.T) {
	ctx := context.Background()
	head := filepath.Join(t.TempDir(), "head")
	r := newRig(t, func(o *witness.Options) { o.HeadFile = head })
	a := r.enrolled().grow(9, "")
	r.add(a, 0, 3)
	path := filepath.Join(t.TempDir(), "backup")
	info := r.backup(path)
	r.add(a, 3, 5)
	for name, dir := range map[string]string{"a live log": r.o.Dir, "a full folder": filepath.Dir(path)} {
		if _, err := witness.Restore(ctx, dir, path, bolt.OpenDir); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("onto %s: %v, want a refusal", name, err)
		}
	}
	restored := r.o
	restored.Dir = filepath.Join(t.TempDir(), "restored")
	got, err := witness.Restore(ctx, restored.Dir, path, bolt.OpenDir)
	if err != nil || got != info {
		t.Fatalf("restored %+v, %v; want %+v", got, err, info)
	}
	if _, err := witness.Restore(ctx, restored.Dir, path, bolt.OpenDir); err == nil {
		t.Error("restored twice into one folder")
	}
	// It has no keys, so it cannot sign; with the kept ones its head file
	// knows better.
	if _, err := witness.New(restored); err == nil {
		t.Error("a witness without keys starts")
	}
	for _, key := range []string{"log.key", "cosigner.key"} {
		writeFile(t, filepath.Join(restored.Dir, key), readFile(t, filepath.Join(r.o.Dir, key)))
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	restored.HeadFile = head + ".restored"
	writeFile(t, restored.HeadFile, readFile(t, head))
	if _, err := witness.New(restored); !errors.Is(err, witness.ErrRolledBack) {
		t.Errorf("a restored backup behind the head file: %v, want ErrRolledBack", err)
	}
	next := &rig{t: t, o: restored}
	if out := next.recover(api.ShardRollback); out.KnownSize <= info.Size || out.FormerSize != info.Size {
		t.Errorf("recovered %+v from size %d", out, info.Size)
	}
	next.start()
	next.add(a, 3, 6)
	second := filepath.Join(t.TempDir(), "second")
	if info := next.backup(second); info.Shard != 2 || info.Origin != logName+"/2" {
		t.Errorf("a backup of the second shard: %+v", info)
	}
	if err := next.end(); err != nil {
		t.Fatal(err)
	}
	next.fsck()

	// A backup of a later shard restores as that shard, and goes on as the next.
	third := &rig{t: t, o: r.o}
	third.o.HeadFile = ""
	third.o.Dir = filepath.Join(t.TempDir(), "third")
	if _, err := witness.Restore(ctx, third.o.Dir, second, bolt.OpenDir); err != nil {
		t.Fatal(err)
	}
	if out := third.recover(api.ShardLostKey); out.Origin != logName+"/3" {
		t.Errorf("after shard 2 comes %s", out.Origin)
	}
}

// A copy that changed on its way is refused, and leaves nothing.
func TestDamagedBackups(t *testing.T) {
	r := newRig(t)
	r.add(r.enrolled().grow(1, ""), 0, 1)
	path := filepath.Join(t.TempDir(), "backup")
	r.backup(path)
	whole, beside := readFile(t, path), readFile(t, path+".json")
	dir := filepath.Join(t.TempDir(), "restored")
	for name, change := range map[string]func(){
		"a flipped bit":  func() { b := bytes.Clone(whole); b[len(b)/2] ^= 1; writeFile(t, path, b) },
		"a torn copy":    func() { writeFile(t, path, whole[:len(whole)/2]) },
		"nothing beside": func() { os.Remove(path + ".json") },
		"another size": func() {
			writeFile(t, path+".json", bytes.Replace(beside, []byte(`"size": 2`), []byte(`"size": 3`), 1))
		},
		"a path in the name": func() {
			writeFile(t, path+".json", bytes.Replace(beside, []byte(`"log.db"`), []byte(`"../log.db"`), 1))
		},
		"a newer format": func() {
			writeFile(t, path+".json", bytes.Replace(beside, []byte(`backup/1"`), []byte(`backup/2"`), 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			change()
			if _, err := witness.Restore(context.Background(), dir, path, bolt.OpenDir); err == nil {
				t.Error("it was restored")
			}
			if files, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(files) != 0 {
				t.Errorf("the refusal left %v, %v", files, err)
			}
			writeFile(t, path, whole)
			writeFile(t, path+".json", beside)
		})
	}
	if _, err := witness.Restore(context.Background(), dir, path, bolt.OpenDir); err != nil {
		t.Errorf("the whole one: %v", err)
	}
}

// A damaged log gives no backup.
func TestBackupOfADamagedLog(t *testing.T) {
	r := newRig(t)
	r.add(r.enrolled().grow(1, ""), 0, 1)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(r.o.Dir, "log.db")
	whole := readFile(t, db)
	at := bytes.LastIndex(whole, []byte("tool-guardian/head/v1"))
	damaged := bytes.Clone(whole)
	damaged[at+60] ^= 1
	writeFile(t, db, damaged)
	r.start()
	path := filepath.Join(t.TempDir(), "backup")
	if _, err := r.server.Backup(context.Background(), path); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "entry") {
		t.Errorf("backup: %v, want ErrDamaged and the entry", err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 0 {
		t.Errorf("it left %v, %v", files, err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, db, whole)
}

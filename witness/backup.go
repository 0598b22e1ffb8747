package witness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// BackupInfo stands beside a backup, as FILE.json: what the copy holds. There
// are only public keys in it, and in the copy none at all.
type BackupInfo struct {
	Format     string    `json:"format"`
	Origin     string    `json:"origin"`
	Shard      int       `json:"shard"`
	Log        string    `json:"log"`      // vkey
	Cosigner   string    `json:"cosigner"` // vkey
	Size       uint64    `json:"size"`
	Root       tlog.Hash `json:"root"`
	Checkpoint string    `json:"checkpoint"` // signed
	File       string    `json:"file"`       // name of the copy in a data folder
	SHA256     tlog.Hash `json:"sha256"`     // of the copy
	At         time.Time `json:"at"`
}

const backupFormat = "tool-guardian/witness-backup/1"

func infoFile(path string) string { return path + ".json" }

// Backup writes a consistent copy of the log in force into the new file path
// while the server goes on, rebuilds every hash of the copy, and writes size
// and root beside it. A crash leaves no file of that name.
func (s *Server) Backup(ctx context.Context, path string) (info BackupInfo, err error) {
	copier, ok := s.store.(store.Copier)
	if !ok {
		return info, errors.New("witness backup: this engine cannot copy itself; use its own tools")
	}
	for _, name := range []string{path, infoFile(path)} {
		if _, err := os.Lstat(name); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return info, fmt.Errorf("witness backup: %s is there already; choose another name", name)
		}
	}
	parent := filepath.Dir(path)
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(path)+".backup-")
	if err != nil {
		return info, fmt.Errorf("witness backup: %w", err)
	}
	defer os.RemoveAll(temp)
	name, err := copier.CopyTo(temp)
	if err == nil {
		info, err = checkCopy(ctx, s.o.Engine, temp, name, s.identity())
	}
	if err != nil {
		return info, fmt.Errorf("witness backup: %w", err)
	}
	info.Shard, info.At = s.shard.number, s.o.Now().UTC()
	b, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return info, err
	}
	if err := os.Rename(filepath.Join(temp, name), path); err != nil {
		return info, fmt.Errorf("witness backup: %w", err)
	}
	return info, writeDurably(infoFile(path), append(b, '\n'))
}

// checkCopy opens a copy as a store and rebuilds every hash of it.
func checkCopy(ctx context.Context, engine Engine, dir, name string, id identity) (info BackupInfo, err error) {
	st, err := engine(dir)
	if err != nil {
		return info, err
	}
	report, signed, err := walkStore(ctx, st, id)
	if err := errors.Join(err, st.Close()); err != nil {
		return info, err
	}
	if !report.OK() {
		return info, fmt.Errorf("%w: the copy has %d faults, the first: %s: %s", store.ErrDamaged,
			len(report.Faults)+report.More, report.Faults[0].Where, report.Faults[0].Detail)
	}
	sum, err := sumOf(filepath.Join(dir, name))
	return BackupInfo{Format: backupFormat, Origin: id.origin, Log: id.log.String(), Cosigner: id.cosigner.String(),
		Size: report.Size, Root: report.Root, Checkpoint: string(signed), File: name, SHA256: sum}, err
}

func walkStore(ctx context.Context, st store.Store, id identity) (report FsckReport, signed []byte, err error) {
	err = st.View(func(r store.Reader) error {
		state, err := r.State()
		if err != nil {
			return err
		}
		signed = state.Checkpoint
		f := newFsck(published{Reader: r, size: state.Size, checkpoint: signed}, id)
		err = f.walk(ctx)
		report = f.report
		return err
	})
	return report, signed, err
}

func sumOf(path string) (sum tlog.Hash, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return tlog.Hash(h.Sum(nil)), nil
}

// ReadBackup reads and checks what stands beside the backup at path.
func ReadBackup(path string) (info BackupInfo, err error) {
	b, err := os.ReadFile(infoFile(path))
	if err != nil {
		return info, fmt.Errorf("%w: a backup has its size and root beside it, in a file of that name", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&info); err != nil {
		return info, fmt.Errorf("%s: %w", infoFile(path), err)
	}
	if info.Format != backupFormat {
		return info, fmt.Errorf("%s: %w: the backup is %.80q, this release reads %q", infoFile(path), store.ErrVersion, info.Format, backupFormat)
	}
	if info.Shard < 1 || info.File == "" || filepath.Base(info.File) != info.File || strings.HasPrefix(info.File, ".") {
		return info, fmt.Errorf("%s: no shard or file name", infoFile(path))
	}
	return info, nil
}

func (i BackupInfo) identity() (id identity, err error) {
	if err := checkLogName(i.Origin); err != nil {
		return id, err
	}
	id.origin = i.Origin
	if id.log, err = tlog.ParseVkey(i.Log); err != nil {
		return id, err
	}
	id.cosigner, err = tlog.ParseVkey(i.Cosigner)
	return id, err
}

// Restore makes the data folder dir from the backup at path. It refuses a
// folder that is not empty: a log is never put over another. The folder has no
// private keys: with the kept key files put back it serves, guarded by its head
// file, or Recover opens the next shard.
//
// The folder is built beside dir and renamed, so a crash leaves no half of it.
func Restore(ctx context.Context, dir, path string, engine Engine) (info BackupInfo, err error) {
	if info, err = ReadBackup(path); err == nil {
		err = buildBeside(dir, func(temp string) error { return fillRestored(ctx, temp, path, info, engine) })
	}
	if err != nil {
		return info, fmt.Errorf("witness restore: %w", err)
	}
	return info, nil
}

func fillRestored(ctx context.Context, dir, path string, info BackupInfo, engine Engine) error {
	id, err := info.identity()
	if err != nil {
		return err
	}
	if info.Shard > 1 {
		dir = filepath.Join(dir, dirShards, strconv.Itoa(info.Shard))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	sum, err := copyFile(filepath.Join(dir, info.File), path)
	if err != nil {
		return err
	}
	if sum != info.SHA256 {
		return fmt.Errorf("%w: %s has the SHA-256 %s, %s says %s", store.ErrDamaged, path, sum, infoFile(path), info.SHA256)
	}
	got, err := checkCopy(ctx, engine, dir, info.File, id)
	if err != nil {
		return err
	}
	if got.Size != info.Size || got.Root != info.Root {
		return fmt.Errorf("%w: it holds size %d, root %s; %s says size %d, root %s", store.ErrDamaged,
			got.Size, got.Root, infoFile(path), info.Size, info.Root)
	}
	return writeDurably(filepath.Join(dir, fileFormat), id.format())
}

func copyFile(to, from string) (sum tlog.Hash, err error) {
	src, err := os.Open(from)
	if err != nil {
		return sum, err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(dst, h), src)
	return tlog.Hash(h.Sum(nil)), errors.Join(err, dst.Sync(), dst.Close())
}

// trustStore checks a store whose last commit, in a process before this one,
// has an unknown outcome. The engine has written it anew; every hash must hold
// before anything is signed or served.
func (s *Server) trustStore() error {
	suspect, ok := s.store.(store.Suspecter)
	if !ok || !suspect.Suspect() {
		return nil
	}
	s.o.Logger.Warn("the store failed before: it was copied, and every hash is rebuilt before it serves", "folder", s.shard.dir)
	report, _, err := walkStore(context.Background(), s.store, s.identity())
	if err != nil {
		return err
	}
	if !report.OK() {
		return fmt.Errorf("%w: after a failed sync the log has %d faults, the first: %s: %s; "+
			"restore a backup into a new folder and let the agents send their heads again", store.ErrDamaged,
			len(report.Faults)+report.More, report.Faults[0].Where, report.Faults[0].Detail)
	}
	return suspect.Trust()
}

func (s *Server) adminBackup(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r)
	if err == nil && !filepath.IsAbs(string(body)) {
		err = fmt.Errorf("%w: the backup's path is not absolute", api.ErrBadRequest)
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	info, err := s.Backup(r.Context(), string(body))
	if err != nil {
		s.refuseOperator(w, err)
		return
	}
	b, err := json.Marshal(info)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	send(w, "application/json", cacheNever, b)
}

// refuseOperator tells the operator, who is no stranger, what failed inside.
func (s *Server) refuseOperator(w http.ResponseWriter, err error) {
	status := api.Status(err)
	if status == http.StatusInternalServerError {
		status = http.StatusUnprocessableEntity
	}
	w.Header().Set("Content-Type", typeText)
	w.WriteHeader(status)
	io.WriteString(w, err.Error()+"\n")
}

func (c *remoteOperator) Backup(ctx context.Context, path string) (info BackupInfo, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return info, err
	}
	b, err := c.do(ctx, http.MethodPost, "/backup", path)
	if err != nil {
		return info, err
	}
	return info, json.Unmarshal(b, &info)
}

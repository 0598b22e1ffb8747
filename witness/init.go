package witness

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"toolguardian/chain/tlog"
	"toolguardian/tsa"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// The files of a data folder beside the engine's.
const (
	fileFormat   = "FORMAT"
	fileLogKey   = "log.key"
	fileCosigner = "cosigner.key"
	dirAuthority = "tsa"
	fileSocket   = "admin.sock"
)

const dirFormat = "tool-guardian/witness/1"

// ErrNotInitialised: the folder is not a witness's.
var ErrNotInitialised = errors.New("not a witness data folder")

// keys are the witness's two signing keys.
type keys struct {
	log, cosigner *tlog.Signer
}

// Init makes the data folder dir of a new witness: its keys, its name and an
// empty log with a signed checkpoint. It refuses a folder that is not empty.
//
// The folder is built beside dir and renamed, so a crash leaves no half of it.
func Init(dir, origin string, engine Engine) error {
	if err := checkLogName(origin); err != nil {
		return err
	}
	err := buildBeside(dir, func(temp string) error { return fillDir(temp, origin, engine) })
	if err != nil {
		return fmt.Errorf("witness init: %w", err)
	}
	return nil
}

// buildBeside fills a new folder and gives it the name dir, which must be free
// or an empty folder's. A crash leaves nothing of that name.
func buildBeside(dir string, fill func(temp string) error) error {
	dir = filepath.Clean(dir)
	if err := refuseFull(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := fill(temp); err != nil {
		return err
	}
	// An empty folder gives way; os.Remove refuses a full one.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return err
	}
	return syncFolder(parent)
}

// checkLogName: a log's name is never a chain's origin, and leaves room for
// the cosigner's name.
func checkLogName(origin string) error {
	if err := api.CheckName(origin + cosignerSuffix); err != nil {
		return fmt.Errorf("witness init: %w", err)
	}
	if api.IsChainOrigin(origin) {
		return fmt.Errorf("witness init: %q has the form of a chain's origin; choose a name like example.org/witness", origin)
	}
	return nil
}

const cosignerSuffix = "/cosigner"

func refuseFull(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(files) > 0 {
		return fmt.Errorf("%s is not empty; a log is never begun anew over an old one: choose another folder", dir)
	}
	return nil
}

func fillDir(dir, origin string, engine Engine) error {
	for _, name := range []string{fileLogKey, fileCosigner} {
		if _, err := tlog.CreateKeyFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if _, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: filepath.Join(dir, dirAuthority)}); err != nil {
		return err
	}
	k, err := loadKeys(dir, origin)
	if err != nil {
		return err
	}
	if err := firstCommit(dir, origin, k, engine); err != nil {
		return err
	}
	return writeDurably(filepath.Join(dir, fileFormat), formatText(origin, k))
}

// firstCommit signs the empty log.
func firstCommit(dir, origin string, k keys, engine Engine) error {
	s, err := engine(dir)
	if err != nil {
		return err
	}
	signed, err := signCheckpoint(k.log, tlog.Checkpoint{Origin: origin, Root: tlog.EmptyRoot()})
	if err == nil {
		err = s.Commit(store.Batch{Checkpoint: signed, Puts: []store.Put{
			{Table: store.Checkpoints, Key: store.Key64(0), Value: signed},
		}})
	}
	return errors.Join(err, s.Close())
}

// signCheckpoint gives a checkpoint its one type-01 line.
func signCheckpoint(log *tlog.Signer, cp tlog.Checkpoint) ([]byte, error) {
	text := cp.Text()
	sig, err := log.Sign(text)
	if err != nil {
		return nil, fmt.Errorf("sign checkpoint %d: %w", cp.Size, err)
	}
	return tlog.Note{Text: text, Signatures: []tlog.Signature{sig}}.Bytes(), nil
}

func formatText(origin string, k keys) []byte {
	return identity{origin, k.log.Vkey(), k.cosigner.Vkey()}.format()
}

// openDir gives the log's name and the keys that it was made with.
func openDir(dir string) (origin string, k keys, err error) {
	origin, b, err := readDirFormat(dir)
	if err != nil {
		return "", k, err
	}
	if k, err = loadKeys(dir, origin); err != nil {
		return "", k, err
	}
	if !bytes.Equal(formatText(origin, k), b) {
		return "", k, fmt.Errorf("%s: %w: the key files are not those that the log was made with",
			filepath.Join(dir, fileFormat), store.ErrDamaged)
	}
	return origin, k, nil
}

// readDirFormat gives the log's name and the file.
func readDirFormat(dir string) (origin string, b []byte, err error) {
	path := filepath.Join(dir, fileFormat)
	b, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, fmt.Errorf("%w: %s has no file %s; make one with tool-guardian witness init --data %s --origin NAME",
			ErrNotInitialised, dir, fileFormat, dir)
	}
	if err != nil {
		return "", nil, err
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	if first != dirFormat {
		return "", nil, fmt.Errorf("%s: %w: the folder is %.80q, this release writes %q", path, store.ErrVersion, first, dirFormat)
	}
	line, _, _ := strings.Cut(rest, "\n")
	origin, ok := strings.CutPrefix(line, "origin ")
	if !ok || checkLogName(origin) != nil {
		return "", nil, fmt.Errorf("%s: %w: want a line `origin NAME`", path, store.ErrDamaged)
	}
	return origin, b, nil
}

func loadKeys(dir, origin string) (k keys, err error) {
	log, err := tlog.LoadKeyFile(filepath.Join(dir, fileLogKey))
	if err != nil {
		return k, err
	}
	cosigner, err := tlog.LoadKeyFile(filepath.Join(dir, fileCosigner))
	if err != nil {
		return k, err
	}
	if k.log, err = tlog.NewSigner(origin, tlog.KeyEd25519, log); err != nil {
		return k, err
	}
	k.cosigner, err = tlog.NewSigner(origin+cosignerSuffix, tlog.KeyCosignature, cosigner)
	return k, err
}

// writeDurably replaces path: a crash leaves the old file or the new one.
func writeDurably(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

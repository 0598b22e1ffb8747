package chain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// FS is the edge between the chain and the disk: every byte the chain keeps
// goes through it, so that a recorder in its place sees every write and sync
// and can tell what a crash would leave.
//
// Names are paths. Errors satisfy errors.Is with fs.ErrNotExist and
// fs.ErrExist where they apply.
type FS interface {
	// OpenFile takes os.O_RDONLY or os.O_RDWR with os.O_CREATE, os.O_EXCL,
	// os.O_TRUNC; never os.O_APPEND.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Mkdir(name string, perm fs.FileMode) error
	// Rename replaces to where it is a file. It is durable after SyncDir of
	// both folders.
	Rename(from, to string) error
	Remove(name string) error
	// ReadDir returns the names in a folder, sorted.
	ReadDir(name string) ([]string, error)
	Stat(name string) (Info, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(name string) error
	// CheckLocal returns ErrNetwork where the folder is another machine's.
	CheckLocal(name string) error
}

// File is an open file. Its methods may be called at the same time.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Info() (Info, error)
	Truncate(size int64) error
	// Sync makes the bytes and the size durable. After an error the file's
	// unsynced bytes are in an unknown state, whatever a later Sync says.
	Sync() error
	// TryLock takes the exclusive lock that dies with the process; false when
	// another holds it.
	TryLock() (bool, error)
	Unlock() error
}

// Info is what the chain asks of a file's state.
type Info struct {
	Size int64
	Mode fs.FileMode
	Gone bool // the name was removed or replaced; only the open file is left
}

const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// makeDir makes one folder durably; one that exists is fine.
func makeDir(f FS, name string) error {
	err := f.Mkdir(name, dirPerm)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return f.SyncDir(filepath.Dir(name))
}

// makeDirs makes name and its missing parents, outermost first.
func makeDirs(f FS, name string) error {
	if _, err := f.Stat(name); err == nil {
		return nil
	}
	if parent := filepath.Dir(name); parent != name {
		if err := makeDirs(f, parent); err != nil {
			return err
		}
	}
	return makeDir(f, name)
}

// exists reports whether a name is there.
func exists(f FS, name string) (bool, error) {
	_, err := f.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readAll returns a whole file of at most limit bytes.
func readAll(f FS, name string, limit int64) ([]byte, error) {
	file, err := f.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readUpTo(file, name, limit)
}

func readUpTo(file File, name string, limit int64) ([]byte, error) {
	info, err := file.Info()
	if err != nil {
		return nil, err
	}
	if info.Size > limit {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read", name, info.Size, limit)
	}
	b := make([]byte, info.Size)
	n, err := file.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return b[:n], nil
}

// createFile writes a file that must not exist yet and syncs it. Its name is
// durable after SyncDir of the folder.
func createFile(f FS, name string, data []byte, flag int) error {
	file, err := f.OpenFile(name, os.O_RDWR|os.O_CREATE|flag, filePerm)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// replaceFile puts data under name so that a crash leaves the old bytes or
// all of the new ones: written aside, synced, renamed. The name itself is
// durable after SyncDir.
func replaceFile(f FS, name string, data []byte) error {
	aside := fmt.Sprintf("%s.tmp%d", name, os.Getpid())
	if err := createFile(f, aside, data, os.O_TRUNC); err != nil {
		return errors.Join(err, removeIfThere(f, aside))
	}
	return f.Rename(aside, name)
}

func removeIfThere(f FS, name string) error {
	if err := f.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeTree removes a folder of ours: files and folders at most two deep.
func removeTree(f FS, name string) error {
	names, err := f.ReadDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range slices.Backward(names) {
		path := filepath.Join(name, n)
		if info, err := f.Stat(path); err == nil && info.Mode.IsDir() {
			if err := removeTree(f, path); err != nil {
				return err
			}
			continue
		}
		if err := f.Remove(path); err != nil {
			return err
		}
	}
	return f.Remove(name)
}

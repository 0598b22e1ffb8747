package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// ErrChanged is a file that somebody else wrote since it was read.
var ErrChanged = errors.New("was changed by somebody else meanwhile")

// Read takes a file's bytes for an edit; one that does not exist is empty.
func Read(file string) (Text, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Text{File: file}, nil
	}
	return Text{File: file, Bytes: b}, err
}

// Write replaces the file with new bytes, unless it no longer holds the old
// ones, and returns the path of a backup of those; "" where there was no file.
// A symbolic link stays one, and the file's permissions are kept; a new file is
// its owner's alone. The lock file stays, as one that was removed would lock
// nobody who waits for it.
func (t Text) Write(now time.Time, with []byte) (backup string, err error) {
	file, mode := t.File, fs.FileMode(0o600)
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	lock := flock.New(file+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("lock %s: %w", file, err)
	}
	defer lock.Close()
	info, err := os.Stat(file)
	if err == nil {
		mode = info.Mode().Perm()
	}
	is, err := Read(file)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(is.Bytes, t.Bytes) || (is.Bytes == nil) != (t.Bytes == nil) {
		return "", fmt.Errorf("%s %w and is left alone: run the command again", t.File, ErrChanged)
	}
	if is.Bytes != nil {
		if backup, err = keep(file, is.Bytes, mode, now); err != nil {
			return "", fmt.Errorf("no backup could be made, %s is left alone: %w", t.File, err)
		}
	}
	return backup, replace(dir, file, with, mode)
}

// keep writes a backup that has the time in its name, and never over another.
func keep(file string, b []byte, mode fs.FileMode, now time.Time) (string, error) {
	base := file + ".bak-" + now.UTC().Format("20060102T150405Z")
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(b)
		return name, errors.Join(err, f.Sync(), f.Close())
	}
}

// replace renames a finished file over the old one: a crash leaves either.
func replace(dir, file string, b []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(dir, ".mcp-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

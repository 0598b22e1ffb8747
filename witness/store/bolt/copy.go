package bolt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"toolguardian/witness/store"
)

var (
	_ store.Copier    = (*Store)(nil)
	_ store.Suspecter = (*Store)(nil)
)

// CopyTo implements store.Copier: one read transaction is the snapshot.
// Writers go on meanwhile; the file grows while they do, since pages that the
// snapshot needs are not used again.
func (s *Store) CopyTo(dir string) (name string, err error) {
	tx, err := s.beginView()
	if err != nil {
		return "", err
	}
	defer tx.Rollback()
	err = writeNew(filepath.Join(dir, fileName), func(w io.Writer) error {
		return guard(func() error { _, err := tx.WriteTo(w); return err })
	})
	if err != nil {
		return "", fmt.Errorf("copy: %w", err)
	}
	return fileName, nil
}

// writeNew makes a private file that must not exist, durably.
func writeNew(path string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// Without ReadFrom no copy can share the source's blocks: the point is to
	// write every byte anew.
	err = fill(struct{ io.Writer }{f})
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return syncFolder(filepath.Dir(path))
}

// suspectFile stands beside a store whose last commit has an unknown outcome.
func suspectFile(path string) string { return path + ".suspect" }

// markSuspect is best effort: where it fails too, the disk refuses even a new
// file, and after a new boot there is no page cache left to distrust.
func markSuspect(path string, cause error) error {
	f, err := os.OpenFile(suspectFile(path), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, cause)
	return errors.Join(err, f.Sync(), f.Close())
}

// rewriteSuspect puts a new file with the same bytes in the place of a suspect
// one. A crash leaves the old file, still marked.
func rewriteSuspect(path string) (suspect bool, err error) {
	if _, err := os.Stat(suspectFile(path)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	src, err := os.Open(path)
	if err != nil {
		return true, err
	}
	defer src.Close()
	beside := path + ".copy"
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	if err := writeNew(beside, func(w io.Writer) error { _, err := io.Copy(w, src); return err }); err != nil {
		return true, fmt.Errorf("copy the suspect store %s: %w", path, err)
	}
	if err := os.Rename(beside, path); err != nil {
		return true, err
	}
	return true, syncFolder(filepath.Dir(path))
}

// checkPages walks every page of a store that was suspect.
func (s *Store) checkPages() error {
	return s.db.View(func(tx *bbolt.Tx) error {
		var bad error
		for err := range tx.Check() {
			if bad == nil {
				bad = damaged(s.db.Path(), err)
			}
		}
		return bad
	})
}

// Suspect implements store.Suspecter.
func (s *Store) Suspect() bool { return s.suspect }

// Trust implements store.Suspecter.
func (s *Store) Trust() error {
	if !s.suspect {
		return nil
	}
	if err := os.Remove(suspectFile(s.db.Path())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.suspect = false
	return syncFolder(filepath.Dir(s.db.Path()))
}

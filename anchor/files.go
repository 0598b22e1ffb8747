package anchor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// syncDir makes the names in a folder durable. Windows journals names and
// cannot flush a folder.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync folder: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync folder %s: %w", dir, err)
	}
	return nil
}

// replaceFile puts data under name: written aside, synced, renamed, folder
// synced. A crash leaves the old bytes or all of the new ones, and at most one
// file aside, which the next write uses again. Two writers of one name do not
// meet: the streamer holds the lock, an enrolment writes the same bytes.
func replaceFile(name string, data []byte) error {
	aside := name + ".new"
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(aside, name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return syncDir(filepath.Dir(name))
}

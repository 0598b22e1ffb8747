package spill

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kept is one original as it lies in the folder.
type kept struct {
	id    string
	time  time.Time // of its newest file
	bytes int64
	files []string
}

// staleTemp is how old a temporary file is that no Put still writes to.
const staleTemp = time.Hour

// prune removes the oldest originals that are too many or too much, never the
// one just written. The caller holds the lock. A failure is logged: what was
// written is there all the same.
func (s *Store) prune(just string) {
	list, err := s.list()
	if err != nil {
		s.o.Logger.Warn("kept results could not be counted", "dir", s.o.Dir, "err", err)
		return
	}
	slices.SortFunc(list, func(a, b kept) int {
		return cmp.Or(cmp.Compare(rank(b, just), rank(a, just)), b.time.Compare(a.time), strings.Compare(a.id, b.id))
	})
	var bytes int64
	for i, k := range list {
		bytes += k.bytes
		if i == 0 && k.id == just || i < s.o.Keep && bytes <= s.o.MaxBytes {
			continue
		}
		bytes -= k.bytes
		s.remove(k)
	}
}

// rank puts the original just written before all others.
func rank(k kept, just string) int {
	if k.id == just {
		return 1
	}
	return 0
}

// list finds the originals, and removes temporary files that were left.
func (s *Store) list() ([]kept, error) {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return nil, err
	}
	byID := map[string]*kept{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		s.count(byID, info)
	}
	list := make([]kept, 0, len(byID))
	for _, k := range byID {
		list = append(list, *k)
	}
	return list, nil
}

func (s *Store) count(byID map[string]*kept, info fs.FileInfo) {
	name := info.Name()
	if ours, _ := filepath.Match(tempPattern, name); ours && s.o.Now().Sub(info.ModTime()) > staleTemp {
		_ = os.Remove(filepath.Join(s.o.Dir, name))
		return
	}
	id := strings.TrimSuffix(name, filepath.Ext(name))
	if !ValidID(id) || !slices.Contains([]string{".txt", ".raw", ".json"}, filepath.Ext(name)) {
		return
	}
	k := byID[id]
	if k == nil {
		k = &kept{id: id}
		byID[id] = k
	}
	k.bytes += info.Size()
	k.files = append(k.files, name)
	if info.ModTime().After(k.time) {
		k.time = info.ModTime()
	}
}

// remove removes an original, its metadata first: what has none is gone.
func (s *Store) remove(k kept) {
	slices.SortFunc(k.files, func(a, b string) int { return strings.Compare(filepath.Ext(a), filepath.Ext(b)) })
	for _, name := range k.files {
		if err := os.Remove(filepath.Join(s.o.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.o.Logger.Warn("a kept result could not be removed", "file", name, "err", err)
		}
	}
}

package bench

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"toolguardian/chain"
)

const chainCallsPerTurn = 20

// ChainCase is what the receipts of calls cost in the chain alone.
type ChainCase struct {
	Callers   int     `json:"callers"`
	Call      Figure  `json:"call"`         // decision and outcome made durable, one after the other
	Waits     float64 `json:"waitsPerCall"` // syncs of the lines' file; the salts' file is synced at the same time
	SaltSyncs float64 `json:"saltSyncsPerCall"`
}

// chainCase records calls into a chain whose file system counts its syncs.
func chainCase(ctx context.Context, dir string, callers, calls int) (c ChainCase, err error) {
	files := &countingFS{FS: chain.OS()}
	ch, err := chain.Open(ctx, chain.Options{Dir: filepath.Join(dir, fmt.Sprintf("chain-%d", callers)), FS: files})
	if err != nil {
		return c, err
	}
	defer ch.Close()
	lines, salts := files.lines.Load(), files.salts.Load()
	all, err := atOnce(callers, max(calls/callers, 1), func(int) error { return record(ctx, ch) })
	if err != nil {
		return c, err
	}
	n := float64(len(all.took))
	return ChainCase{
		Callers: callers, Call: all.figure(),
		Waits:     round(float64(files.lines.Load()-lines) / n),
		SaltSyncs: round(float64(files.salts.Load()-salts) / n),
	}, nil
}

// atOnce lets callers do something each times at the same time.
func atOnce(callers, each int, do func(caller int) error) (all sample, err error) {
	samples := make([]sample, callers)
	begin := time.Now()
	var g errgroup.Group
	for i := range callers {
		g.Go(func() error {
			for range each {
				start := time.Now()
				if err := do(i); err != nil {
					return err
				}
				samples[i].took = append(samples[i].took, time.Since(start))
			}
			return nil
		})
	}
	err = g.Wait()
	for _, s := range samples {
		all.add(s)
	}
	all.wall = time.Since(begin)
	return all, err
}

// countingFS counts the syncs of the two kinds of files that an append waits for.
type countingFS struct {
	chain.FS
	lines, salts atomic.Int64
}

func (f *countingFS) OpenFile(name string, flag int, perm fs.FileMode) (chain.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(name, ".jsonl"):
		return countingFile{file, &f.lines}, nil
	case strings.HasSuffix(name, ".bin"):
		return countingFile{file, &f.salts}, nil
	}
	return file, nil
}

type countingFile struct {
	chain.File
	syncs *atomic.Int64
}

func (f countingFile) Sync() error {
	f.syncs.Add(1)
	return f.File.Sync()
}

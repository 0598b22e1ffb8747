package bench

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
)

// evidence is a chain of generated receipts.
type evidence struct {
	dir  string
	vkey string // of its head key
	head []byte // signed, over all of them
	size uint64
}

// generate fills a chain below dir by the product's own Append, on a file
// system that leaves out the syncs: nothing here has to outlive a crash.
func generate(ctx context.Context, dir string, receipts int, p *Progress) (e evidence, err error) {
	e.dir = filepath.Join(dir, "evidence")
	ch, err := chain.Open(ctx, chain.Options{Dir: e.dir, FS: lazyFS{chain.OS()}, Label: "bench.invalid"})
	if err != nil {
		return e, err
	}
	defer ch.Close()
	for i := 1; i < receipts; i += 2 { // the genesis is the first
		if i%1000 == 1 {
			p.step("generating receipts", i, receipts)
		}
		if err := record(ctx, ch); err != nil {
			return e, fmt.Errorf("generate receipt %d: %w", i, err)
		}
	}
	var cp tlog.Checkpoint
	if e.head, cp, err = ch.Head(ctx); err != nil {
		return e, err
	}
	e.size, e.vkey = cp.Size, ch.HeadKey().String()
	return e, nil
}

// lazyFS never waits for the disk.
type lazyFS struct{ chain.FS }

func (f lazyFS) SyncDir(string) error { return nil }

func (f lazyFS) OpenFile(name string, flag int, perm fs.FileMode) (chain.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return lazyFile{file}, nil
}

type lazyFile struct{ chain.File }

func (lazyFile) Sync() error { return nil }

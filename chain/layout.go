package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// formatLine is evidence/FORMAT. A folder with another line is not touched.
const formatLine = "tool-guardian/evidence/1\n"

// The evidence folder. next/ holds the folders of a chain being opened until
// they take their places; closed/<32 hex of the origin>/ the ones they replace.
const (
	formatName     = "FORMAT"
	lockName       = "lock"
	keysName       = "keys"
	chainName      = "chain"
	tilesName      = "tiles" // inside chain/
	saltsName      = "salts"
	openingsName   = "openings"
	anchorName     = "anchor"
	quarantineName = "quarantine"
	nextName       = "next"
	closedName     = "closed"
	peopleName     = "people.bin" // inside salts/
	endedName      = "ENDED"      // inside chain/: not to be continued, and why

	segmentSuffix = ".jsonl"
	saltsSuffix   = ".bin"
	rewriteSuffix = ".rewrite"
)

// folders are what belongs to one chain, in the order they change hands.
var folders = [...]string{chainName, saltsName, keysName, openingsName, anchorName, quarantineName}

// layout is the folder of one chain.
type layout struct {
	fs  FS
	dir string
}

func (l layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir}, elem...)...)
}

// stem is a segment's name without its suffix: the seq of its first line.
func stem(first uint64) string { return fmt.Sprintf("%020d", first) }

func (l layout) segment(first uint64) string { return l.path(chainName, stem(first)+segmentSuffix) }
func (l layout) salts(first uint64) string   { return l.path(saltsName, stem(first)+saltsSuffix) }

// segments lists the first seqs of the chain's segments in order.
func (l layout) segments() ([]uint64, error) { return l.listed(segmentSuffix) }

// rewrites lists segments that a failed sync left half replaced.
func (l layout) rewrites() ([]uint64, error) { return l.listed(segmentSuffix + rewriteSuffix) }

func (l layout) listed(suffix string) ([]uint64, error) {
	firsts, err := l.numbered(l.path(chainName), suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	return firsts, nil
}

// numbered lists the files of a folder that are named by a seq, in order.
func (l layout) numbered(dir, suffix string) ([]uint64, error) {
	names, err := l.fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var firsts []uint64
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, suffix)
		if !ok || len(digits) != len(stem(0)) {
			continue
		}
		if first, err := strconv.ParseUint(digits, 10, 63); err == nil {
			firsts = append(firsts, first)
		}
	}
	return firsts, nil
}

// checkFormat returns fs.ErrNotExist for a folder not yet ours.
func (l layout) checkFormat() error {
	b, err := readAll(l.fs, l.path(formatName), 1<<10)
	if err != nil {
		return fmt.Errorf("evidence format: %w", err)
	}
	if string(b) != formatLine {
		return fmt.Errorf("%w: %s says %q, this program writes %q: use the program that wrote it",
			ErrFormat, l.path(formatName), b, formatLine)
	}
	return nil
}

// prepare makes the folder ours, or checks that it is.
func (l layout) prepare() error {
	if err := makeDirs(l.fs, l.dir); err != nil {
		return err
	}
	if err := l.fs.CheckLocal(l.dir); err != nil {
		return err
	}
	err := l.checkFormat()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := replaceFile(l.fs, l.path(formatName), []byte(formatLine)); err != nil {
		return fmt.Errorf("write evidence format: %w", noSpace(err))
	}
	return l.fs.SyncDir(l.dir)
}

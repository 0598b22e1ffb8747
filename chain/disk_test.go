package chain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"toolguardian/receipts"
)

// disk is an FS in memory that logs every change and every sync, so that
// after the fact it can be asked what a crash at any moment would have left.
type disk struct {
	mu    sync.Mutex
	base  *image // before the log
	now   *image
	ops   []op
	fault func(op) error // asked before a change or sync takes effect
}

// image is a state of a disk: nodes by number, node 0 is the root folder.
type image struct {
	nodes map[int]*node
	next  int
}

type node struct {
	id    int
	names map[string]int // of a folder
	data  []byte         // of a file
	mode  fs.FileMode
	links int
	lock  *diskFile
}

type opKind int

const (
	opWrite opKind = iota
	opTruncate
	opSync
	opLink // a new file or folder
	opRename
	opRemove
	opSyncDir
	opAck
)

// op is one entry of the log.
type op struct {
	kind     opKind
	node     int // the file; of names, the folder
	path     string
	off      int64
	data     []byte
	name     string
	child    int
	mode     fs.FileMode
	toNode   int
	toName   string
	covers   int  // a sync: the length of the log when it began
	poisoned bool // a write whose sync failed: no later sync covers it
	ack      receipts.Position
	file     *diskFile // a sync's
}

func newImage() *image {
	return &image{nodes: map[int]*node{0: {names: map[string]int{}, mode: fs.ModeDir | 0o700, links: 1}}, next: 1}
}

func newDisk(from *image) *disk { return &disk{base: from.clone(), now: from.clone()} }

func (m *image) clone() *image {
	c := &image{nodes: make(map[int]*node, len(m.nodes)), next: m.next}
	for id, n := range m.nodes {
		c.nodes[id] = &node{id: n.id, names: maps.Clone(n.names), data: slices.Clone(n.data), mode: n.mode, links: n.links}
	}
	return c
}

func (m *image) find(name string) (*node, error) {
	n := m.nodes[0]
	for _, elem := range strings.FieldsFunc(path.Clean(name), func(r rune) bool { return r == '/' }) {
		id, ok := n.names[elem]
		if !ok {
			return nil, &fs.PathError{Op: "find", Path: name, Err: fs.ErrNotExist}
		}
		n = m.nodes[id]
	}
	return n, nil
}

// apply carries out a change on an image.
func (m *image) apply(o op) {
	n := m.nodes[o.node]
	switch o.kind {
	case opWrite:
		if need := int(o.off) + len(o.data); need > len(n.data) {
			n.data = append(n.data, make([]byte, need-len(n.data))...)
		}
		copy(n.data[o.off:], o.data)
	case opTruncate:
		if int(o.off) > len(n.data) {
			n.data = append(n.data, make([]byte, int(o.off)-len(n.data))...)
		}
		n.data = n.data[:o.off:o.off]
	case opLink:
		n.names[o.name] = o.child
		m.nodes[o.child].links++
	case opRemove:
		if id, ok := n.names[o.name]; ok {
			m.nodes[id].links--
			delete(n.names, o.name)
		}
	case opRename:
		id, ok := n.names[o.name]
		if !ok {
			return
		}
		to := m.nodes[o.toNode]
		if was, ok := to.names[o.toName]; ok {
			m.nodes[was].links--
		}
		delete(n.names, o.name)
		to.names[o.toName] = id
	}
}

// do logs an op and carries it out. d.mu is held.
func (d *disk) do(o op) error {
	if d.fault != nil {
		if err := d.fault(o); err != nil {
			if o.kind == opSync {
				d.poison(o.node)
			}
			return err
		}
	}
	d.now.apply(o)
	d.ops = append(d.ops, o)
	return nil
}

// poison: after a failed fsync Linux holds the pages for clean; what they
// held may or may not have reached the disk, and the next fsync reports
// success whichever it is.
func (d *disk) poison(file int) {
	for i := range d.ops {
		o := &d.ops[i]
		if o.node == file && (o.kind == opWrite || o.kind == opTruncate) && !d.durable(i, len(d.ops)) {
			o.poisoned = true
		}
	}
}

// durable reports whether op i outlives any crash after the first n ops.
func (d *disk) durable(i, n int) bool {
	o := d.ops[i]
	if o.poisoned {
		return false
	}
	from, to := false, o.kind != opRename
	for _, s := range d.ops[i+1 : n] {
		switch {
		case s.kind == opSync && s.node == o.node && s.covers > i && (o.kind == opWrite || o.kind == opTruncate):
			return true
		case s.kind == opSyncDir:
			from = from || s.node == o.node
			to = to || s.node == o.toNode
		}
	}
	return from && to && (o.kind == opLink || o.kind == opRename || o.kind == opRemove)
}

func (d *disk) parent(name string) (*node, string, error) {
	dir, base := path.Split(path.Clean(name))
	n, err := d.now.find(dir)
	return n, base, err
}

func (d *disk) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.now.find(name)
	switch {
	case err == nil && flag&os.O_EXCL != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrExist}
	case err != nil && flag&os.O_CREATE == 0:
		return nil, err
	case err != nil:
		if n, err = d.link(name, perm); err != nil {
			return nil, err
		}
	}
	if flag&os.O_TRUNC != 0 && len(n.data) > 0 {
		if err := d.do(op{kind: opTruncate, node: n.id, path: name}); err != nil {
			return nil, err
		}
	}
	return &diskFile{disk: d, node: n, name: name}, nil
}

func (d *disk) link(name string, mode fs.FileMode) (*node, error) {
	dir, base, err := d.parent(name)
	if err != nil {
		return nil, err
	}
	n := &node{id: d.now.next, mode: mode}
	if mode.IsDir() {
		n.names = map[string]int{}
	}
	d.now.nodes[n.id] = n
	d.now.next++
	return n, d.do(op{kind: opLink, node: dir.id, path: name, name: base, child: n.id, mode: mode})
}

func (d *disk) Mkdir(name string, perm fs.FileMode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.now.find(name); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	_, err := d.link(name, perm|fs.ModeDir)
	return err
}

func (d *disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	a, aName, err := d.parent(from)
	if err != nil {
		return err
	}
	b, bName, err := d.parent(to)
	if err != nil {
		return err
	}
	if _, ok := a.names[aName]; !ok {
		return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
	}
	if id, ok := b.names[bName]; ok && len(d.now.nodes[id].names) > 0 {
		return &fs.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	return d.do(op{kind: opRename, node: a.id, path: to, name: aName, toNode: b.id, toName: bName})
}

func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, base, err := d.parent(name)
	if err != nil {
		return err
	}
	id, ok := dir.names[base]
	if !ok {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if len(d.now.nodes[id].names) > 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: errors.New("folder is not empty")}
	}
	return d.do(op{kind: opRemove, node: dir.id, path: name, name: base})
}

func (d *disk) ReadDir(name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.now.find(name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

func (d *disk) Stat(name string) (Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.now.find(name)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: int64(len(n.data)), Mode: n.mode}, nil
}

func (d *disk) SyncDir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.now.find(name)
	if err != nil {
		return err
	}
	return d.do(op{kind: opSyncDir, node: n.id, path: name})
}

func (d *disk) CheckLocal(string) error { return nil }

// ack logs that a receipt was acknowledged.
func (d *disk) ack(pos receipts.Position) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, op{kind: opAck, ack: pos})
}

type diskFile struct {
	disk *disk
	node *node
	name string
}

func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if err := f.disk.do(op{kind: opWrite, node: f.node.id, path: f.name, off: off, data: slices.Clone(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *diskFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.disk.do(op{kind: opTruncate, node: f.node.id, path: f.name, off: size})
}

// Sync covers what was written when it began and counts when it ends.
func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	covers := len(f.disk.ops)
	f.disk.mu.Unlock()
	runtime.Gosched()
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.disk.do(op{kind: opSync, node: f.node.id, path: f.name, covers: covers, file: f})
}

func (f *diskFile) Info() (Info, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return Info{Size: int64(len(f.node.data)), Mode: f.node.mode, Gone: f.node.links == 0}, nil
}

func (f *diskFile) TryLock() (bool, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.node.lock != nil && f.node.lock != f {
		return false, nil
	}
	f.node.lock = f
	return true, nil
}

func (f *diskFile) Unlock() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.node.lock != f {
		return fmt.Errorf("unlock of %s by one who does not hold it", f.name)
	}
	f.node.lock = nil
	return nil
}

func (f *diskFile) Close() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.node.lock == f {
		f.node.lock = nil
	}
	return nil
}

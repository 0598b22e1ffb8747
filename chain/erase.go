package chain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"toolguardian/receipts"
)

// An erasure is written down in salts/ERASE before anything else happens. Then
// erasure receipts name every field, durably; only then are the salts zeroed
// and the copies removed. What a crash left of it is finished by the next Open.

const (
	eraseName    = "ERASE" // inside salts/
	eraseHeader  = "tool-guardian/erase/1\n"
	maxEraseFile = 256 << 20
	// erasedInOne receipt keeps its line below receipts.MaxLine.
	erasedInOne = 64
)

// Erasure is what Erase destroys.
type Erasure struct {
	// Fields of receipts whose salts go.
	Fields []receipts.Erased
	// Person, if not nil, is one whose salt goes, in every receipt that commits
	// to that person.
	Person []byte
	// Files are copies of the committed bytes, by absolute name, that go with the
	// salts. Openings in the evidence folder are found without being named.
	Files []string
}

// Done is what an erasure came to.
type Done struct {
	Fields []receipts.Erased // all fields that can never be opened again
	Files  []string          // removed
}

// eraseOrder is salts/ERASE.
type eraseOrder struct {
	Size   uint64            `json:"size"` // of the chain when it was given: its receipts come later
	Fields []receipts.Erased `json:"fields"`
	Person string            `json:"person,omitempty"` // hex SHA-256
	Files  []string          `json:"files,omitempty"`
}

// Erase destroys salts, so that no commitment made with them can be opened or
// guessed again, after erasure receipts that say so are durable. Lines and tree
// stay as they are. Copies that a file system, a backup or a disk's own
// remapping keeps are out of its reach.
//
// It returns ErrNotFound or ErrErased for a salt that is not there; then
// nothing is done. Whatever else fails, the next Open goes on with it.
func (c *Chain) Erase(ctx context.Context, e Erasure) (Done, error) {
	if err := c.begin(); err != nil {
		return Done{}, err
	}
	defer c.work.Done()
	if err := c.enter(ctx); err != nil {
		return Done{}, err
	}
	defer c.leave()
	if err := c.syncAll(); err != nil {
		return Done{}, err
	}
	order, err := c.at.order(e, c.place.seq)
	if err != nil {
		return Done{}, fmt.Errorf("erase: %w", err)
	}
	// Others must not write their copies of these salts again.
	if err := errors.Join(c.bump(), c.at.keepOrder(order)); err != nil {
		return Done{}, fmt.Errorf("erase: %w", noSpace(err))
	}
	if err := c.finishErase(); err != nil {
		return Done{}, c.end(fmt.Errorf("erase: %w", err))
	}
	return Done{Fields: order.Fields, Files: order.Files}, nil
}

// order finds everything that an erasure concerns.
func (l layout) order(e Erasure, size uint64) (eraseOrder, error) {
	o := eraseOrder{Size: size, Fields: slices.Clone(e.Fields), Files: slices.Clone(e.Files)}
	gone := make(map[[32]byte]bool)
	for _, f := range e.Fields {
		salt, err := l.saltOf(f.Seq, receipts.FieldNamed(f.Field))
		if err != nil {
			return o, err
		}
		gone[salt] = true
	}
	if e.Person != nil {
		salt, err := l.knownPerson(sha256.Sum256(e.Person))
		if err != nil {
			return o, err
		}
		gone[salt] = true
		o.Person = hexSum(e.Person)
		named, err := l.naming(e.Person, salt)
		if err != nil {
			return o, err
		}
		o.Fields = append(o.Fields, named...)
	}
	openings, err := l.openingsWith(gone)
	o.Files = append(o.Files, openings...)
	return o, err
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (l layout) knownPerson(id [32]byte) ([32]byte, error) {
	file, err := l.fs.OpenFile(l.path(saltsName, peopleName), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return [32]byte{}, fmt.Errorf("%w: no receipt names a person", ErrNotFound)
	}
	if err != nil {
		return [32]byte{}, err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return [32]byte{}, err
	}
	salt, ok, err := findPerson(file, info.Size/recordSize, id)
	if err == nil && !ok {
		err = fmt.Errorf("%w: this person has no salt here: misspelt, or erased before", ErrNotFound)
	}
	return salt, err
}

// naming lists the fields that commit to a person.
func (l layout) naming(person []byte, salt [32]byte) ([]receipts.Erased, error) {
	want := make(map[receipts.Subject]bool)
	for _, f := range receipts.Fields() {
		if perPerson(f) {
			want[receipts.Subject{Name: f.String(), Digest: receipts.Commit(f, salt, person).Commitment}] = true
		}
	}
	var found []receipts.Erased
	err := l.eachStatement(0, func(s *receipts.Statement) {
		for _, sub := range s.Subjects {
			if want[sub] {
				found = append(found, receipts.Erased{Seq: s.Seq, Field: sub.Name})
			}
		}
	})
	return found, err
}

// eachStatement reads the lines from seq from on. Lines that say nothing are
// passed over.
func (l layout) eachStatement(from uint64, take func(*receipts.Statement)) error {
	r, err := l.reader()
	if err != nil {
		return err
	}
	for line, err := range r.Lines(from) {
		if err != nil {
			return err
		}
		env, err := receipts.ParseLine(line.Bytes)
		if err != nil {
			continue
		}
		if s, err := receipts.ParseStatement(env.Payload); err == nil {
			take(s)
		}
	}
	return nil
}

// openingsWith lists the opening files in the evidence folder that hold one of
// the salts.
func (l layout) openingsWith(salts map[[32]byte]bool) ([]string, error) {
	dir := l.path(openingsName)
	names, err := l.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		b, err := readAll(l.fs, filepath.Join(dir, name), maxEraseFile)
		if err != nil {
			return nil, err
		}
		if o, err := receipts.ParseOpening(b); err == nil && salts[o.Salt] {
			found = append(found, filepath.Join(dir, name))
		}
	}
	return found, nil
}

func (l layout) keepOrder(o eraseOrder) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := replaceFile(l.fs, l.path(saltsName, eraseName), append([]byte(eraseHeader), b...)); err != nil {
		return err
	}
	return l.fs.SyncDir(l.path(saltsName))
}

// pendingOrder returns what was to be erased; false if nothing.
func (l layout) pendingOrder() (eraseOrder, bool, error) {
	var o eraseOrder
	name := l.path(saltsName, eraseName)
	b, err := readAll(l.fs, name, maxEraseFile)
	if errors.Is(err, fs.ErrNotExist) {
		return o, false, nil
	}
	if err != nil {
		return o, false, err
	}
	text, ok := bytes.CutPrefix(b, []byte(eraseHeader))
	if !ok {
		return o, false, fmt.Errorf("%w: %s", ErrFormat, name)
	}
	return o, true, json.Unmarshal(text, &o)
}

// finishErase carries out the order that is there, from wherever a crash left
// it. It runs with the lock held and every line synced.
func (c *Chain) finishErase() error {
	o, pending, err := c.at.pendingOrder()
	if !pending || err != nil {
		return err
	}
	if err := c.tellErasure(o); err != nil {
		return err
	}
	if err := c.at.shred(o); err != nil {
		return err
	}
	clear(c.people)
	if err := c.at.fs.Remove(c.at.path(saltsName, eraseName)); err != nil {
		return err
	}
	return c.at.fs.SyncDir(c.at.path(saltsName))
}

// tellErasure writes the erasure receipts that are not there yet, durably.
func (c *Chain) tellErasure(o eraseOrder) error {
	told := make(map[receipts.Erased]bool)
	err := c.at.eachStatement(o.Size, func(s *receipts.Statement) {
		for _, e := range s.Erased {
			told[e] = true
		}
	})
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(o.Fields), func(e receipts.Erased) bool { return told[e] })
	for some := range slices.Chunk(left, erasedInOne) {
		if _, err := c.put(receipts.NewErasure(c.common(), some, receipts.ErasedOnRequest)); err != nil {
			return err
		}
	}
	if err := c.syncAll(); err != nil {
		return errors.Join(err, c.rewrite())
	}
	return nil
}

// shred zeroes salts and removes copies. Doing it again does no harm.
func (l layout) shred(o eraseOrder) error {
	for _, e := range o.Fields {
		if f := receipts.FieldNamed(e.Field); !perPerson(f) {
			if err := l.shredSalt(saltKey{e.Seq, f}); err != nil {
				return fmt.Errorf("shred %s of line %d: %w", e.Field, e.Seq, err)
			}
		}
	}
	if o.Person != "" {
		if err := l.shredPerson(o.Person); err != nil {
			return fmt.Errorf("shred the salt of a person: %w", err)
		}
	}
	for _, name := range o.Files {
		if err := removeIfThere(l.fs, name); err != nil {
			return fmt.Errorf("remove a copy: %w", err)
		}
		if err := l.fs.SyncDir(filepath.Dir(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l layout) shredSalt(k saltKey) error {
	segments, err := l.segments()
	if err != nil {
		return err
	}
	first, ok := holding(segments, k.seq)
	if !ok {
		return nil
	}
	return l.zero(l.salts(first), func(s saltFile) (found []int, err error) {
		i, err := s.lowerBound(k.seq)
		for ; i < s.n && err == nil; i++ {
			var b []byte
			if b, err = s.at(i); err != nil {
				break
			}
			got, _, bad := parseRecord(b)
			if bad == nil && got.seq > k.seq {
				break
			}
			if bad == nil && got == k || errors.Is(bad, ErrNotFound) && halfZeroed(b) {
				found = append(found, i)
			}
		}
		return found, err
	})
}

// halfZeroed recognises what a crash left of an earlier attempt: zeros at one
// end and not at the other. No whole record begins or ends so but by a chance
// of 2^-64.
func halfZeroed(b []byte) bool {
	var none [8]byte
	return bytes.HasPrefix(b, none[:]) != bytes.HasSuffix(b, none[:])
}

func (l layout) shredPerson(id string) error {
	return l.zero(l.path(saltsName, peopleName), func(s saltFile) (found []int, err error) {
		for i := range s.n {
			b, err := s.at(i)
			if err != nil {
				return nil, err
			}
			if hex.EncodeToString(b[:sha256.Size]) == id || halfZeroed(b) {
				found = append(found, i)
			}
		}
		return found, nil
	})
}

// zero overwrites the records of a salt file that which names, durably.
func (l layout) zero(name string, which func(saltFile) ([]int, error)) error {
	file, err := l.fs.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return err
	}
	found, err := which(saltFile{file, int(info.Size / recordSize)})
	if err != nil {
		return err
	}
	for _, i := range found {
		if _, err := file.WriteAt(make([]byte, recordSize), int64(i)*recordSize); err != nil {
			return err
		}
	}
	return file.Sync()
}

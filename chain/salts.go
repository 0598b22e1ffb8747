package chain

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"

	"toolguardian/receipts"
)

// A salt's record: seq BE64, field BE64, salt, SHA-256 of those 48 bytes. An
// erased one is all zeros. Records stand in order of seq, then of writing.
const (
	recordSize  = 80
	recordCheck = 48
)

// saltKey names a committed field of a line.
type saltKey struct {
	seq   uint64
	field receipts.FieldID
}

func appendRecord(dst []byte, k saltKey, salt [32]byte) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, k.seq)
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.field))
	dst = append(dst, salt[:]...)
	sum := sha256.Sum256(dst[at:])
	return append(dst, sum[:]...)
}

// parseRecord returns ErrErased for zeros and ErrNotFound for anything a
// crash or a bad disk made of a record.
func parseRecord(b []byte) (saltKey, [32]byte, error) {
	var salt [32]byte
	sum := sha256.Sum256(b[:recordCheck])
	switch {
	case bytes.Equal(b, make([]byte, recordSize)):
		return saltKey{}, salt, ErrErased
	case !bytes.Equal(sum[:], b[recordCheck:]):
		return saltKey{}, salt, fmt.Errorf("%w: damaged salt record", ErrNotFound)
	}
	k := saltKey{binary.BigEndian.Uint64(b), receipts.FieldID(binary.BigEndian.Uint64(b[8:]))}
	copy(salt[:], b[16:recordCheck])
	return k, salt, nil
}

// perPerson fields have one salt for the person, in people.bin.
func perPerson(f receipts.FieldID) bool {
	return f == receipts.FieldPrincipal || f == receipts.FieldApprover
}

// records returns the salts to keep with the line seq.
func records(seq uint64, fields []receipts.Committed) []byte {
	var b []byte
	for _, f := range fields {
		if !perPerson(f.Field) {
			b = appendRecord(b, saltKey{seq, f.Field}, f.Salt)
		}
	}
	return b
}

// saltFile reads the records of one segment.
type saltFile struct {
	file io.ReaderAt
	n    int // whole records
}

func (s saltFile) at(i int) ([]byte, error) {
	b := make([]byte, recordSize)
	if n, err := s.file.ReadAt(b, int64(i)*recordSize); n != recordSize {
		return nil, fmt.Errorf("read salt: %w", err)
	}
	return b, nil
}

// lowerBound is the index of the first readable record of seq or later. An
// erased or damaged record says nothing of its place: the next one answers.
func (s saltFile) lowerBound(seq uint64) (int, error) {
	var failed error
	i := sort.Search(s.n, func(i int) bool {
		for ; i < s.n && failed == nil; i++ {
			b, err := s.at(i)
			if failed = cmp.Or(failed, err); err != nil {
				return true
			}
			if k, _, err := parseRecord(b); err == nil {
				return k.seq >= seq
			}
		}
		return true
	})
	return i, failed
}

// find looks for one salt. Erased records around its place make the answer
// ErrErased.
func (s saltFile) find(k saltKey) ([32]byte, error) {
	var none [32]byte
	i, err := s.lowerBound(k.seq)
	if err != nil {
		return none, err
	}
	missing := fmt.Errorf("%w: no salt for %s of line %d", ErrNotFound, k.field, k.seq)
	for ; i < s.n; i++ {
		b, err := s.at(i)
		if err != nil {
			return none, err
		}
		got, salt, err := parseRecord(b)
		switch {
		case errors.Is(err, ErrErased):
			missing = fmt.Errorf("%w: %s of line %d", ErrErased, k.field, k.seq)
		case err != nil:
		case got == k:
			return salt, nil
		case got.seq > k.seq:
			return none, missing
		}
	}
	return none, missing
}

// present collects the readable salts from seq on.
func (s saltFile) present(seq uint64) (map[saltKey]bool, error) {
	i, err := s.lowerBound(seq)
	if err != nil {
		return nil, err
	}
	found := make(map[saltKey]bool)
	for ; i < s.n; i++ {
		b, err := s.at(i)
		if err != nil {
			return nil, err
		}
		if k, _, err := parseRecord(b); err == nil {
			found[k] = true
		}
	}
	return found, nil
}

// salt finds one salt in the segment that holds the line.
func (l layout) salt(first uint64, k saltKey) ([32]byte, error) {
	file, err := l.fs.OpenFile(l.salts(first), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return [32]byte{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return [32]byte{}, err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return [32]byte{}, err
	}
	return saltFile{file, int(info.Size / recordSize)}.find(k)
}

// PersonSalt returns the salt under which this chain commits to a person,
// and makes it, durably, on first use. The same salt in every receipt lets
// one opening disclose that person everywhere, and nobody else.
func (c *Chain) PersonSalt(ctx context.Context, person []byte) ([32]byte, error) {
	if err := c.begin(); err != nil {
		return [32]byte{}, err
	}
	defer c.work.Done()
	if err := c.enter(ctx); err != nil {
		return [32]byte{}, err
	}
	defer c.leave()
	id := sha256.Sum256(person)
	if salt, ok := c.people[id]; ok {
		return salt, nil
	}
	salt, err := c.personSalt(id)
	if err != nil {
		return salt, fmt.Errorf("salt of a person: %w", noSpace(err))
	}
	c.people[id] = salt
	return salt, nil
}

func (c *Chain) personSalt(id [32]byte) ([32]byte, error) {
	file, err := c.at.fs.OpenFile(c.at.path(saltsName, peopleName), os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return [32]byte{}, err
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return [32]byte{}, err
	}
	n := info.Size / recordSize
	salt, ok, err := findPerson(file, n, id)
	if ok || err != nil {
		return salt, err
	}
	rand.Read(salt[:])
	if _, err := file.WriteAt(personRecord(id, salt), n*recordSize); err != nil {
		return salt, errors.Join(err, file.Truncate(n*recordSize))
	}
	return salt, errors.Join(file.Sync(), c.at.fs.SyncDir(c.at.path(saltsName)))
}

// personRecord: SHA-256 of the person, salt, the first 16 bytes of the
// SHA-256 of those 64.
func personRecord(id, salt [32]byte) []byte {
	b := append(id[:], salt[:]...)
	sum := sha256.Sum256(b)
	return append(b, sum[:16]...)
}

func findPerson(file File, n int64, id [32]byte) (salt [32]byte, ok bool, err error) {
	b := make([]byte, recordSize)
	for i := range n {
		if got, err := file.ReadAt(b, i*recordSize); got != recordSize {
			return salt, false, err
		}
		copy(salt[:], b[32:64])
		if bytes.Equal(b, personRecord(id, salt)) {
			return salt, true, nil
		}
	}
	return [32]byte{}, false, nil
}

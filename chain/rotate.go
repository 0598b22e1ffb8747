package chain

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// New keys lie beside the old ones, with nextSuffix, until the line that puts
// them in force is durable. Then the key note is signed by both head keys and
// kept in keys/notes/, and the new keys take the names of the old ones, which
// thereby are gone. What a crash left of this is finished by the next Open if
// the line is there, and dropped if it is not.

const (
	nextSuffix = ".next"
	notesName  = "notes" // inside keys/: <20-digit from-size>.note
	noteSuffix = ".note"
	maxNote    = 4 << 10
)

// Rotate puts new keys in force: the old receipt key signs the rotation
// receipt, whose place is returned, the new one everything after it, and the
// new head key the heads that cover it. Witnesses learn of it by KeyNotes.
//
// After an error this Chain may have ended; Open finds out whether the new
// keys are in force.
func (c *Chain) Rotate(ctx context.Context) (receipts.Position, error) {
	if err := c.begin(); err != nil {
		return receipts.Position{}, err
	}
	defer c.work.Done()
	if err := c.enter(ctx); err != nil {
		return receipts.Position{}, err
	}
	defer c.leave()
	pos, err := c.rotate()
	if err != nil {
		return receipts.Position{}, fmt.Errorf("rotate keys: %w", err)
	}
	return pos, nil
}

func (c *Chain) rotate() (receipts.Position, error) {
	if err := errors.Join(c.bump(), c.syncAll()); err != nil {
		return receipts.Position{}, err
	}
	keys, err := c.storeNext()
	if err != nil {
		return receipts.Position{}, errors.Join(noSpace(err), c.at.dropNext())
	}
	v, err := tlog.NewVkey(c.place.origin, tlog.KeyEd25519, publicOf(keys.head))
	if err != nil {
		return receipts.Position{}, err
	}
	pos, err := c.put(receipts.NewRotation(c.common(), v.String(), publicOf(keys.receipt)))
	if err != nil {
		return pos, errors.Join(err, c.at.dropNext())
	}
	// From here on the old keys must sign no line.
	if err := c.syncAll(); err != nil {
		if again := c.rewrite(); again != nil {
			return pos, c.end(again)
		}
	}
	if err := c.takeKeys(c.place); err != nil {
		return pos, c.end(err)
	}
	return pos, nil
}

// storeNext makes new keys and keeps them durably, not in force.
func (c *Chain) storeNext() (keyPair, error) {
	keys, err := newKeyPair()
	if err != nil {
		return keys, err
	}
	for name, priv := range keys.files() {
		if err := createFile(c.at.fs, c.at.path(keysName, name+nextSuffix), tlog.MarshalPrivateKey(priv), os.O_TRUNC); err != nil {
			return keys, err
		}
	}
	return keys, c.at.fs.SyncDir(c.at.path(keysName))
}

// settleKeys loads the keys, and first finishes a rotation that was cut off: its
// line may be there and not durable yet.
func (c *Chain) settleKeys(seg openSegment, p place) error {
	waiting, err := c.at.waitingKeys()
	if err == nil && len(waiting) > 0 {
		err = errors.Join(c.bump(), seg.lines.Sync())
	}
	if err != nil {
		return err
	}
	return c.takeKeys(p)
}

// takeKeys finishes a rotation whose line is durable and in force at p, and
// loads the keys.
func (c *Chain) takeKeys(p place) error {
	if err := c.at.finishRotation(p); err != nil {
		return err
	}
	return c.loadKeys(p)
}

// finishRotation lets new keys take the place of the old ones if they are in
// force at p, and drops them if not. The lines must be durable.
func (l layout) finishRotation(p place) error {
	waiting, err := l.waitingKeys()
	if len(waiting) == 0 || err != nil {
		return err
	}
	for name, priv := range waiting {
		inForce := name == headKeyName && publicOf(priv).Equal(p.head.Public()) ||
			name == receiptKeyName && publicOf(priv).Equal(p.pub)
		if !inForce {
			return l.dropNext()
		}
	}
	// The receipt key goes first: while the new head key waits, the old one,
	// which signs the note, is still there.
	if next := waiting[headKeyName]; next != nil {
		if err := l.keepNotes(p, next); err != nil {
			return fmt.Errorf("keep key note: %w", noSpace(err))
		}
	}
	for _, name := range []string{receiptKeyName, headKeyName} {
		if waiting[name] == nil {
			continue
		}
		if err := l.fs.Rename(l.path(keysName, name+nextSuffix), l.path(keysName, name)); err != nil {
			return err
		}
	}
	return l.fs.SyncDir(l.path(keysName))
}

// waitingKeys are the keys that lie beside those in use. One that a crash cut
// short never came into force.
func (l layout) waitingKeys() (map[string]ed25519.PrivateKey, error) {
	waiting := make(map[string]ed25519.PrivateKey)
	for _, name := range []string{headKeyName, receiptKeyName} {
		file := l.path(keysName, name+nextSuffix)
		there, err := exists(l.fs, file)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		priv, err := loadKey(l.fs, file)
		if err != nil {
			return nil, l.dropNext()
		}
		waiting[name] = priv
	}
	return waiting, nil
}

func (l layout) dropNext() error {
	return errors.Join(removeIfThere(l.fs, l.path(keysName, headKeyName+nextSuffix)),
		removeIfThere(l.fs, l.path(keysName, receiptKeyName+nextSuffix)), l.fs.SyncDir(l.path(keysName)))
}

// keepNotes keeps, while the old head key is still here, what it alone can
// sign: the note of this rotation, and before the first one the enrolment.
func (l layout) keepNotes(p place, next ed25519.PrivateKey) error {
	if err := makeDir(l.fs, l.path(keysName, notesName)); err != nil {
		return err
	}
	old, err := loadKey(l.fs, l.path(keysName, headKeyName))
	if err != nil {
		return err
	}
	was, err := tlog.NewSigner(p.origin, tlog.KeyEd25519, old)
	if err != nil {
		return err
	}
	is, err := tlog.NewSigner(p.origin, tlog.KeyEd25519, next)
	if err != nil {
		return err
	}
	first := l.path(keysName, notesName, stem(0)+noteSuffix)
	if there, err := exists(l.fs, first); err != nil {
		return err
	} else if !there {
		if err := l.keepNote(first, enrolText(was.Vkey()), was); err != nil {
			return err
		}
	}
	from := p.keySeq + 1
	return l.keepNote(l.path(keysName, notesName, stem(from)+noteSuffix), rotateText(from, was.Vkey(), is.Vkey()), was, is)
}

func (l layout) keepNote(name string, text []byte, signers ...*tlog.Signer) error {
	note, err := sign(text, signers...)
	if err != nil {
		return err
	}
	if err := replaceFile(l.fs, name, note); err != nil {
		return err
	}
	return l.fs.SyncDir(l.path(keysName, notesName))
}

// The texts are those of a witness log's key leaves.
func enrolText(v tlog.Vkey) []byte {
	return fmt.Appendf(nil, "tool-guardian/key/v1\nenrol\n%s\nfrom-size 0\nold none\nnew %s\n", v.Name, v)
}

func rotateText(from uint64, old, next tlog.Vkey) []byte {
	return fmt.Appendf(nil, "tool-guardian/key/v1\nrotate\n%s\nfrom-size %d\nold %s\nnew %s\n", next.Name, from, old, next)
}

// KeyNote is a signed note that tells a witness of a head key.
type KeyNote struct {
	FromSize uint64 // heads of this size and larger are by the key; 0: the first key
	Note     []byte
}

// KeyNotes returns the notes that put this chain's head keys in force, in
// order: the enrolment of the first key, signed by it, then each rotation,
// signed by the old key and the new one. A witness takes a rotation while its
// newest head is not larger than FromSize, and thereafter heads of at least
// that size by the new key.
func (c *Chain) KeyNotes() ([]KeyNote, error) {
	notes, err := c.at.keyNotes()
	if err != nil {
		return nil, fmt.Errorf("key notes: %w", err)
	}
	if len(notes) > 0 {
		return notes, nil
	}
	note, err := c.SignNote(enrolText(c.HeadKey()))
	return []KeyNote{{Note: note}}, err
}

func (l layout) keyNotes() ([]KeyNote, error) {
	dir := l.path(keysName, notesName)
	firsts, err := l.numbered(dir, noteSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var notes []KeyNote
	for _, from := range firsts {
		b, err := readAll(l.fs, l.path(keysName, notesName, stem(from)+noteSuffix), maxNote)
		if err != nil {
			return nil, err
		}
		notes = append(notes, KeyNote{FromSize: from, Note: b})
	}
	return notes, nil
}

package witness_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toolguardian/witness"
	"toolguardian/witness/store"
)

// After a commit of unknown outcome the next start walks the whole log before
// it serves, and refuses one that does not hold.
func TestSuspectStart(t *testing.T) {
	f := &flipped{}
	r := newRig(t, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { f.Store = s; return suspected{f} })
	})
	a := r.enrolled().grow(3, "")
	r.add(a, 0, 1)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(r.o.Dir, "log.db.suspect")
	writeFile(t, mark, []byte("sync failed\n"))
	f.entry = new(uint64) // a flipped bit that no start would notice by itself
	if err := r.tryStart(); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a damaged suspect store: %v, want ErrDamaged", err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the mark is gone: %v", err)
	}
	f.entry = nil
	r.start()
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mark is still there: %v", err)
	}
	r.add(a, 1, 2)
}

// suspected passes on what the wrapped engine remembers.
type suspected struct{ *flipped }

func (s suspected) Suspect() bool { return s.Store.(store.Suspecter).Suspect() }
func (s suspected) Trust() error  { return s.Store.(store.Suspecter).Trust() }

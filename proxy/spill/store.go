package spill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/gofrs/flock"
)

// Format is the value of a metadata file's format member.
const Format = "tool-guardian/spill/1"

// Options are copied by New.
type Options struct {
	Dir      string           // required; made at the first Put
	Keep     int              // originals; 0: 500
	MaxBytes int64            // of all files; 0: 1 GiB
	Now      func() time.Time // nil: time.Now
	Logger   *slog.Logger     // nil: silent
}

const (
	defaultKeep  = 500
	defaultBytes = 1 << 30
	lockTimeout  = 2 * time.Second
	lockEvery    = 5 * time.Millisecond
	lockName     = ".lock"
	tempPattern  = ".spill-*"
)

// Errors that a caller decides on.
var (
	ErrID      = errors.New("not an id of a kept result")
	ErrGone    = errors.New("no such kept result")
	ErrPattern = errors.New("not a pattern")
	ErrClash   = errors.New("another result has this id")
	ErrDamaged = errors.New("the kept result is damaged")
)

// Store is one folder of originals. It is safe for concurrent use, by several
// processes too.
type Store struct{ o Options }

// New checks the options. Nothing is written yet.
func New(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("spill: Options.Dir is missing")
	}
	if o.Keep < 0 || o.MaxBytes < 0 {
		return nil, fmt.Errorf("spill: keep %d originals and %d bytes: use 0 for the defaults, or more", o.Keep, o.MaxBytes)
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{o}, nil
}

// Original is what is kept.
type Original struct {
	Server, Tool string
	Rules        []string // by which it was shortened
	Shown, Of    int      // characters of text
	Text         string
	Raw          []byte // the whole result as it came
}

// about is the metadata file.
type about struct {
	Format    string    `json:"format"`
	ID        string    `json:"id"`
	SHA256    string    `json:"sha256"` // of the .raw
	Time      time.Time `json:"time"`
	Server    string    `json:"server,omitempty"`
	Tool      string    `json:"tool"`
	Rules     []string  `json:"rules,omitempty"`
	Shown     int       `json:"shown_chars"`
	Of        int       `json:"original_chars"`
	TextBytes int       `json:"text_bytes"`
	RawBytes  int       `json:"raw_bytes"`
}

// Put keeps an original and returns its id, then drops the oldest that are too
// many. After an error nothing new is kept.
func (s *Store) Put(ctx context.Context, o Original) (id string, err error) {
	sum := sha256.Sum256(o.Raw)
	id = "sp_" + hex.EncodeToString(sum[:6])
	if err := s.put(ctx, id, hex.EncodeToString(sum[:]), o); err != nil {
		return "", fmt.Errorf("keep a result in %s: %w", s.o.Dir, err)
	}
	return id, nil
}

func (s *Store) put(ctx context.Context, id, sum string, o Original) error {
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return err
	}
	meta, err := json.Marshal(about{Format, id, sum, s.o.Now().UTC(), o.Server, o.Tool, o.Rules, o.Shown, o.Of, len(o.Text), len(o.Raw)})
	if err != nil {
		return err
	}
	// The metadata goes last: what has one is whole.
	files := [...]staged{{ext: ".raw", data: o.Raw}, {ext: ".txt", data: []byte(o.Text)}, {ext: ".json", data: append(meta, '\n')}}
	defer func() {
		for _, f := range files {
			if f.temp != "" {
				_ = os.Remove(f.temp)
			}
		}
	}()
	for i := range files {
		if err := files[i].write(s.o.Dir); err != nil {
			return err
		}
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.clash(id, sum); err != nil {
		return err
	}
	for i := range files {
		if err := files[i].place(filepath.Join(s.o.Dir, id)); err != nil {
			return err
		}
	}
	s.prune(id)
	return nil
}

// staged is a file that is written beside its place.
type staged struct {
	ext  string
	data []byte
	temp string // empty: not written, or in its place
}

func (f *staged) write(dir string) error {
	t, err := os.CreateTemp(dir, tempPattern) // 0600
	if err != nil {
		return err
	}
	f.temp = t.Name()
	_, err = t.Write(f.data)
	return errors.Join(err, t.Close())
}

func (f *staged) place(base string) error {
	if err := os.Rename(f.temp, base+f.ext); err != nil {
		return err
	}
	f.temp = ""
	return nil
}

// lock takes the lock that every process takes to place and to remove.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	l := flock.New(filepath.Join(s.o.Dir, lockName), flock.SetPermissions(0o600))
	if ok, err := l.TryLockContext(ctx, lockEvery); err != nil || !ok {
		return nil, fmt.Errorf("another process holds %s: %w", l.Path(), err)
	}
	return func() {
		if err := l.Close(); err != nil {
			s.o.Logger.Warn("the lock of the kept results was not released", "err", err)
		}
	}, nil
}

// clash refuses an id that another result has: twelve hex digits can be
// brought to clash on purpose.
func (s *Store) clash(id, sum string) error {
	have, err := s.about(id)
	switch {
	case err != nil: // none, or none that can be read back
		return nil
	case have.SHA256 != sum:
		return fmt.Errorf("%w: %s", ErrClash, id)
	}
	return nil
}

func (s *Store) about(id string) (a about, err error) {
	b, err := os.ReadFile(filepath.Join(s.o.Dir, id+".json"))
	if err != nil {
		return a, err
	}
	if json.Unmarshal(b, &a) != nil {
		return a, fmt.Errorf("%w: %s.json cannot be read. Call the tool again", ErrDamaged, id)
	}
	return a, nil
}

var idPattern = regexp.MustCompile(`^sp_[0-9a-f]{12}$`)

// ValidID says that s has the form of an id.
func ValidID(s string) bool { return idPattern.MatchString(s) }

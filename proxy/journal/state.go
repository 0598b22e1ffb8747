package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"
)

// StateFormat is the value of the state file's `format` member.
const StateFormat = "tool-guardian/state/1"

// ErrNewer is a state file that a newer version wrote.
var ErrNewer = errors.New("state file of a newer version")

// State is state.json. It is safe for concurrent use, by several processes too.
type State struct {
	path string // empty: nothing is kept

	mu      sync.Mutex
	members map[string]json.RawMessage // as last read or written; under mu
}

// OpenState reads the file at path; an absent one is an empty state, and an
// empty path a state that forgets. A file that is not JSON is set aside by the
// next update, since all it holds can be found out again.
func OpenState(path string) (*State, error) {
	s := &State{path: path, members: map[string]json.RawMessage{}}
	if path == "" {
		return s, nil
	}
	return s, s.read()
}

// Get decodes a member into v and says whether there was one that fits.
func Get[T any](s *State, name string) (v T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.members[name]
	return v, ok && json.Unmarshal(raw, &v) == nil
}

// Update changes one member under the lock that all routers share: change gets
// what the file holds now.
func Update[T any](s *State, name string, change func(T) T) error {
	if s.path == "" {
		return nil
	}
	lock := flock.New(s.path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("lock the state file: %w", err)
	}
	defer lock.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.read(); err != nil {
		return err
	}
	var old T
	if raw, ok := s.members[name]; ok && json.Unmarshal(raw, &old) != nil {
		old = *new(T)
	}
	raw, err := json.Marshal(change(old))
	if err != nil {
		return err
	}
	s.members[name] = raw
	return s.write()
}

func (s *State) read() error {
	b, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	members := map[string]json.RawMessage{}
	if json.Unmarshal(b, &members) != nil {
		return nil
	}
	s.members = members
	var format string
	if raw, ok := members["format"]; ok && (json.Unmarshal(raw, &format) != nil || format != StateFormat) {
		return fmt.Errorf("%w: %s holds format %s, this program writes %q: update it, or move the file away",
			ErrNewer, s.path, members["format"], StateFormat)
	}
	return nil
}

func (s *State) write() error {
	s.members["format"] = json.RawMessage(`"` + StateFormat + `"`)
	b, err := json.MarshalIndent(s.members, "", "  ")
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(s.path), ".state-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(b, '\n'))
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), s.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

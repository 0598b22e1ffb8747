package config

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrMissing is a file that was named and does not exist. Commands exit 3.
var ErrMissing = errors.New("no such config file")

// FileError is a config file that cannot be used.
type FileError struct {
	File      string
	Line, Col int // from 1; 0 when the whole file is meant
	Err       error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("config %s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("config %s:%d:%d: %v", e.File, e.Line, e.Col, e.Err)
}

// Unwrap gives the cause.
func (e *FileError) Unwrap() error { return e.Err }

// Options are where to look.
type Options struct {
	Flag    string   // --config, empty when not given
	EnvFile string   // --env-file
	Environ []string // the real environment, as os.Environ gives it
	Cwd     string   // absolute
	Home    string   // the product's folder: $TOOL_GUARDIAN_HOME or ~/.tool-guardian
	GOOS    string   // empty: the running one
	Self    string   // path of the running binary, to recognise itself
}

// Config is what was found. No file anywhere is a Config without servers.
type Config struct {
	File         string // absolute; empty when none was found
	EnvFile      string // the .env that was read; empty when none
	Servers      []Server
	Notes        []string        // lines for stderr
	ToolGuardian json.RawMessage // the file's "toolGuardian" value as plain JSON, nil when absent
	Raw          []byte          // the file as plain JSON, for a digest

	env environment
}

type environment struct{}

// Server is one entry, with variables expanded.
type Server struct {
	Name          string
	Command       string
	Args          []string
	Env           map[string]string
	EnvPass       []string // names or PREFIX*
	Dir           string   // absolute or empty
	Disabled      bool
	Description   string
	URL           string
	Type          string
	Headers       map[string]string
	AllowInsecure bool
	Protocol      string
	MaxConcurrent int

	Problem string // why it cannot be used: a sentence, empty when it can
}

// Load finds and reads the config and its .env.
func Load(o Options) (*Config, error) { return &Config{}, nil }

// Setting looks a TOOL_GUARDIAN_* setting up: the real environment first, then
// the .env, which may not hold the ones that say where to look.
func (c *Config) Setting(name string) (string, bool) { return "", false }

// Environment is what a backend gets to see, and what it does not.
type Environment struct {
	Vars     []string // NAME=value, sorted
	Dropped  []string // allow-listed names that hold a secret
	Unpassed []string // names of the .env that this server does not get
}

// Environ is the environment of a server.
func (c *Config) Environ(s Server) Environment { return Environment{} }

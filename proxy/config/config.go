package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrMissing is a file that was named and does not exist. Commands exit 3.
var ErrMissing = errors.New("no such file")

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

	// Pending is read in place of the file that Flag names, which need not
	// exist: what a config would be. nil: the file is read.
	Pending []byte
}

// Config is what was found. No file anywhere is a Config without servers.
type Config struct {
	File         string // absolute; empty when none was found
	EnvFile      string // the .env that was read; empty when none
	Servers      []Server
	Notes        []string        // lines for stderr
	ToolGuardian json.RawMessage // the file's "toolGuardian" value as plain JSON, nil when absent
	Raw          []byte          // the file as plain JSON, for a digest

	vars variables
	goos string
}

// Server is one entry, in the file's order, with variables expanded.
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

	Line []string // the command line as the file has it: what may be shown, for it holds no variable's value

	Problem string // why it cannot be used: a sentence, empty when it can

	used       []string // variables that were expanded in it
	unresolved []string // variables that stayed literal
}

// Check says whether a config of this text could be used; the error is a
// *FileError with line and column. Single entries are not judged.
func Check(file string, text []byte) error {
	_, err := parse(file, bytes.Clone(text)) // which writes over comments
	return err
}

// IsSelf says whether a command starts this router, self being its path.
func IsSelf(command string, args []string, self string) bool {
	return entry{rawEntry: rawEntry{Command: command, Args: args}}.isSelf(newSelf(self))
}

// Load finds and reads the config and its .env. It starts nothing and writes
// nothing. An error is a *FileError, and ErrMissing when a named file is not
// there.
func Load(o Options) (*Config, error) {
	l := newLoader(o)
	doc, err := l.find()
	if err != nil {
		return nil, err
	}
	c := &Config{Notes: l.notes, goos: l.goos}
	dir := o.Cwd
	if doc != nil {
		c.File, c.Raw, c.ToolGuardian = doc.file, doc.plain, doc.settings
		dir = doc.dir()
	}
	if c.vars, c.EnvFile, err = l.loadEnv(dir); err != nil {
		return nil, err
	}
	c.Notes = append(c.Notes, c.vars.reservedNotes(c.EnvFile)...)
	if doc == nil {
		return c, nil
	}
	for _, e := range doc.entries {
		if e.isSelf(l.self) {
			c.Notes = append(c.Notes, fmt.Sprintf("config %s: entry %q would start this router again and is left out", doc.file, e.name))
			continue
		}
		c.Servers = append(c.Servers, e.server(c.vars, doc.dir()))
	}
	return c, nil
}

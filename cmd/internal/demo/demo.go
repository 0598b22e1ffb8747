package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options of one telling.
type Options struct {
	Exe  string    // the tool-guardian binary
	Keep string    // folder to leave everything in; empty: a temporary one that is removed
	Out  io.Writer // where the story goes
	Now  func() time.Time
}

// Failure is a step that did not go as the story says.
type Failure struct {
	Step string
	Err  error
}

func (f *Failure) Error() string { return fmt.Sprintf("demo: %s: %v", f.Step, f.Err) }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// story is what the steps hand on.
type story struct {
	Options
	dir     string
	witness *process // the witness on "another host"
	url     string
	keys    witnessKeys
	origin  string
	chain   string // the chain's head key, as the auditor pins it
}

// Run tells the story. An error is a *Failure.
func Run(ctx context.Context, o Options) (err error) {
	s := &story{Options: o}
	if s.dir, err = s.folder(); err != nil {
		return &Failure{"make a folder", err}
	}
	if o.Keep == "" {
		defer os.RemoveAll(s.dir)
	}
	defer func() { err = errors.Join(err, s.witness.stop()) }()
	started := o.Now()
	s.line("Tool Guardian, the whole story on this machine. Everything lies in\n%s%s", s.dir,
		map[bool]string{true: "\nand is removed at the end; --keep DIR leaves it"}[o.Keep == ""])
	for _, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"A witness starts, on what would be another host", s.startWitness},
		{"The agent's host enrols there", s.enrol},
		{"A client plays a model; the router stands between it and six MCP servers", s.route},
		{"What was recorded on the agent's host", s.receipts},
		{"What the witness holds", s.witnessed},
		{"An auditor verifies, with pinned keys", s.verify},
		{"Three ways to cheat afterwards, with every key of the agent's host in hand", s.tamper},
	} {
		s.line("\n── %s", step.title)
		if err := step.run(ctx); err != nil {
			return &Failure{strings.ToLower(step.title[:1]) + step.title[1:], err}
		}
	}
	s.closing(o.Now().Sub(started))
	return nil
}

// folder is the kept folder, which must be new or empty, or a temporary one.
func (s *story) folder() (string, error) {
	if s.Keep == "" {
		return os.MkdirTemp("", "tool-guardian-demo-")
	}
	dir, err := filepath.Abs(s.Keep)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	names, err := os.ReadDir(dir)
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%s is not empty; name a new folder with --keep", dir)
	}
	return dir, err
}

func (s *story) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

func (s *story) line(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }

func (s *story) closing(took time.Duration) {
	s.line("\n── All three were caught. Done in %.1f s. To use it, put this into your client's MCP configuration:", took.Seconds())
	s.line(`
{
  "mcpServers": {
    "tool-guardian": { "command": "tool-guardian" }
  }
}
`)
	s.line("and your servers into ~/.tool-guardian/mcp.json, in the same form.")
	if s.Keep != "" {
		s.line("Everything of this story is left in %s", s.dir)
	}
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Settings that say where to look; a .env, which is found by them, cannot set
// them.
const (
	varConfig  = "TOOL_GUARDIAN_CONFIG"
	varProject = "TOOL_GUARDIAN_PROJECT_CONFIG"
	varEnvFile = "TOOL_GUARDIAN_ENV"
)

const envParents = 5 // folders above the config's that may hold the .env

type loader struct {
	opt   Options
	goos  string
	real  map[string]string
	self  selfNames
	notes []string
}

func newLoader(o Options) *loader {
	l := &loader{opt: o, goos: o.GOOS, real: splitEnviron(o.Environ), self: newSelf(o.Self)}
	if l.goos == "" {
		l.goos = runtime.GOOS
	}
	return l
}

// find goes through the search order: --config, $TOOL_GUARDIAN_CONFIG, with
// consent the project's own files, the product's folder. It returns nil when
// there is no file.
func (l *loader) find() (*document, error) {
	if l.opt.Pending != nil {
		return parse(l.path(l.opt.Flag), bytes.Clone(l.opt.Pending))
	}
	if l.opt.Flag != "" {
		return l.named(l.opt.Flag, "--config")
	}
	if p := l.real[varConfig]; p != "" {
		return l.named(p, "$"+varConfig)
	}
	consent := l.real[varProject] == "1"
	for _, name := range []string{"mcp.json", ".mcp.json"} {
		doc, err := l.project(filepath.Join(l.opt.Cwd, name), "./"+name, consent)
		if doc != nil || err != nil {
			return doc, err
		}
	}
	return l.optional(filepath.Join(l.opt.Home, "mcp.json"))
}

func (l *loader) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(l.opt.Cwd, p)
}

// named reads a file that somebody asked for: its absence is an error.
func (l *loader) named(p, by string) (*document, error) {
	doc, err := l.optional(l.path(p))
	if err == nil && doc == nil {
		return nil, &FileError{File: l.path(p), Err: fmt.Errorf("%w; it was named by %s: create it or correct the path", ErrMissing, by)}
	}
	return doc, err
}

func (l *loader) optional(p string) (*document, error) {
	b, err := os.ReadFile(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &FileError{File: p, Err: err}
	}
	return parse(p, b)
}

// project reads a file that belongs to the folder the router happens to be in.
// Without consent it only says that there is one: its servers are commands
// that a stranger may have written.
func (l *loader) project(p, shown string, consent bool) (*document, error) {
	doc, err := l.optional(p)
	if err != nil && consent {
		return nil, err
	}
	if err != nil || doc == nil || doc.onlySelf(l.self) {
		return nil, nil
	}
	if consent {
		return doc, nil
	}
	l.notes = append(l.notes, fmt.Sprintf("config: %s found but NOT loaded: it belongs to this folder; to use it pass --config %s or set %s=1", shown, shown, varProject))
	return nil, nil
}

// loadEnv reads the .env: the named one, or the first one upward from dir.
func (l *loader) loadEnv(dir string) (variables, string, error) {
	v := variables{real: l.real, fold: l.goos == "windows"}
	file, named := l.opt.EnvFile, "--env-file"
	if file == "" {
		file, named = l.real[varEnvFile], "$"+varEnvFile
	}
	if file != "" {
		return l.readEnv(v, l.path(file), named)
	}
	for range envParents + 1 {
		p := filepath.Join(dir, ".env")
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return l.readEnv(v, p, "")
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return v, "", nil
}

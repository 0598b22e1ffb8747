package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/joho/godotenv"
)

const maxSearched = 1000 // lines of a .env

// variables are the real environment and the .env below it.
type variables struct {
	real map[string]string
	file map[string]string
	fold bool // names differ in case only by accident (Windows)
}

// Settings a .env cannot hold: they decide which files are read, or what the
// person at the keyboard is promised.
var reserved = []string{varConfig, varProject, varEnvFile, "TOOL_GUARDIAN_HOME", "TOOL_GUARDIAN_POLICY", "TOOL_GUARDIAN_EVIDENCE"}

func splitEnviron(environ []string) map[string]string {
	out := map[string]string{}
	for _, e := range environ {
		// Windows has names that begin with "=".
		if i := strings.IndexByte(e[min(1, len(e)):], '='); i >= 0 {
			out[e[:i+1]] = e[i+2:]
		}
	}
	return out
}

func (l *loader) readEnv(v variables, p, by string) (variables, string, error) {
	b, err := os.ReadFile(p)
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%d bytes; at most %d are read", len(b), maxFile)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return v, "", &FileError{File: p, Err: fmt.Errorf("%w; it was named by %s", ErrMissing, by)}
	case err != nil:
		return v, "", &FileError{File: p, Err: err}
	}
	m, err := godotenv.UnmarshalBytes(trimBOM(b))
	if err != nil {
		// The parser's own message quotes the line, and with it the secret.
		return v, "", &FileError{File: p, Line: badLine(b), Col: 1, Err: errors.New("this line is no NAME=value; quote values that hold spaces or #")}
	}
	delete(m, "")
	v.file = m
	return v, p, nil
}

func trimBOM(b []byte) []byte { return []byte(strings.TrimPrefix(string(b), "\ufeff")) }

// badLine finds the first line after which the text no longer parses, for good.
// It parses once a line, so it leaves long files alone.
func badLine(b []byte) int {
	lines := strings.SplitAfter(string(trimBOM(b)), "\n")
	if len(lines) > maxSearched || len(b) > maxFile/16 {
		return 0
	}
	good := 0
	for i := range lines {
		if _, err := godotenv.Unmarshal(strings.Join(lines[:i+1], "")); err == nil {
			good = i + 1
		}
	}
	return min(good+1, len(lines))
}

// get looks a variable up; the real environment wins.
func (v variables) get(name string) (string, bool) {
	if s, ok := v.in(v.real, name); ok {
		return s, true
	}
	return v.in(v.file, name)
}

func (v variables) in(m map[string]string, name string) (string, bool) {
	if s, ok := m[name]; ok || !v.fold {
		return s, ok
	}
	for k, s := range m {
		if strings.EqualFold(k, name) {
			return s, true
		}
	}
	return "", false
}

// names are all variables, sorted.
func (v variables) names() []string {
	all := maps.Clone(v.real)
	if all == nil {
		all = map[string]string{}
	}
	for k := range v.file {
		if _, ok := v.in(v.real, k); !ok {
			all[k] = ""
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (v variables) reservedNotes(file string) []string {
	var out []string
	for _, name := range reserved {
		if _, ok := v.in(v.file, name); ok {
			out = append(out, fmt.Sprintf("%s: %s cannot be set in a .env and is ignored; set it in the environment", file, name))
		}
	}
	return out
}

// Setting looks a TOOL_GUARDIAN_* setting up: the real environment first, then
// the .env, which may not hold the ones that say where to look.
func (c *Config) Setting(name string) (string, bool) {
	if slices.Contains(reserved, name) {
		return c.vars.in(c.vars.real, name)
	}
	return c.vars.get(name)
}

// Seconds reads a setting that is a number of seconds, such as 90 or 0.5, or a
// Go duration.
func (c *Config) Seconds(name string, absent time.Duration) (time.Duration, error) {
	text, ok := c.Setting(name)
	if !ok || text == "" {
		return absent, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s is %q; it must be a number of seconds above 0", name, text)
	}
	return d, nil
}

// ${NAME}, $NAME and %NAME%.
var variableRE = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)|%([A-Za-z_][A-Za-z0-9_]*)%`)

// expander replaces variables once, never inside what it put in, and remembers
// which.
type expander struct {
	v                variables
	used, unresolved []string
}

func (x *expander) expand(s string) string {
	return variableRE.ReplaceAllStringFunc(s, func(m string) string {
		name := strings.Trim(m, "${}%")
		value, ok := x.v.get(name)
		if !ok {
			x.unresolved = append(x.unresolved, name)
			return m
		}
		x.used = append(x.used, name)
		return value
	})
}

func (x *expander) expandMap(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out[k] = x.expand(m[k])
	}
	return out
}

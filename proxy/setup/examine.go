package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"toolguardian/proxy/config"
)

// Weight says what a finding means for the person who reads it.
type Weight string

// The weights: a problem keeps a server from working, a note does not.
const (
	Problem Weight = "problem"
	Note    Weight = "note"
)

// Finding is something a person should know of a configuration, and what to do
// about it.
type Finding struct {
	Weight Weight `json:"weight"`
	Server string `json:"server,omitempty"`
	Text   string `json:"text"`
	Fix    string `json:"fix"`

	Dead bool `json:"-"` // there is no sense in starting the server
}

// Examine judges one server by what stands in the files, without starting it.
func Examine(c *config.Config, s config.Server) (found []Finding) {
	add := func(w Weight, text, fix string) {
		found = append(found, Finding{Weight: w, Server: s.Name, Text: text, Fix: fix})
	}
	where := fmt.Sprintf("the entry %q in %s", s.Name, c.File)
	if s.Problem != "" {
		text, fix, ok := strings.Cut(s.Problem, "; ")
		if !ok {
			fix = "correct " + where
		}
		add(Problem, text, fix)
		found[0].Dead = true
		return found
	}
	env := c.Environ(s)
	if text, fix := missing(s, env.Vars); text != "" {
		add(Problem, text, fix+" "+where)
		found[0].Dead = true
	}
	if info, err := os.Stat(s.Dir); s.Dir != "" && (err != nil || !info.IsDir()) {
		add(Problem, fmt.Sprintf("its folder %s is not there", s.Dir), "make the folder, or correct \"cwd\" of "+where)
	}
	if names := env.Unresolved; len(names) > 0 {
		add(unset(s, names), "it uses variables that nothing sets: "+strings.Join(names, ", "), "put "+strings.Join(names, "=…, ")+"=… into "+envFile(c)+" or the environment")
	}
	if names := env.Unpassed; len(names) > 0 {
		add(Note, "it does not get these variables of the .env: "+strings.Join(names, ", "), "if it needs them, add "+passLine(names)+" to "+where)
	}
	if names := env.Dropped; len(names) > 0 {
		add(Note, "it does not get these variables, which seem to hold a login: "+strings.Join(names, ", "), "if it needs them, add "+passLine(names)+" to "+where)
	}
	return found
}

// unset weighs variables that nothing sets: $X and %X% may be meant as they
// stand, ${X} hardly.
func unset(s config.Server, names []string) Weight {
	texts := append(slices.Collect(maps.Values(s.Env)), s.Args...)
	for _, name := range names {
		for _, t := range texts {
			if strings.Contains(t, "${"+name+"}") {
				return Problem
			}
		}
	}
	return Note
}

func passLine(names []string) string {
	return `"envPass": ["` + strings.Join(names, `", "`) + `"]`
}

// envFile is the .env in use, or where one would be found.
func envFile(c *config.Config) string {
	if c.EnvFile != "" {
		return c.EnvFile
	}
	return filepath.Join(filepath.Dir(c.File), ".env")
}

// What installs the programs that most servers are run by.
var installers = map[string]string{"npx": "Node.js", "node": "Node.js", "npm": "Node.js", "uvx": "uv", "uv": "uv", "docker": "Docker",
	"bunx": "Bun", "bun": "Bun", "python": "Python", "python3": "Python", "pipx": "pipx", "deno": "Deno"}

// missing says what is wrong with the command of a server, and how to begin
// the sentence that mends it.
func missing(s config.Server, environ []string) (text, fix string) {
	if strings.ContainsAny(s.Command, `/\`) {
		p := s.Command
		if !filepath.IsAbs(p) {
			p = filepath.Join(s.Dir, p)
		}
		if err := runnable(p); err != nil {
			return fmt.Sprintf("its command %s cannot be run: %v", s.Command, err), `correct the path in "command" of`
		}
		return "", ""
	}
	for _, dir := range filepath.SplitList(variable(environ, "PATH")) {
		for _, ending := range endings(environ) {
			if runnable(filepath.Join(dir, s.Command+ending)) == nil {
				return "", ""
			}
		}
	}
	fix = `write the full path into "command" of`
	if program := installers[s.Command]; program != "" {
		fix = "install " + program + ", or " + fix
	}
	return fmt.Sprintf("its command %s is not on its PATH", s.Command), fix
}

var errNotRunnable = errors.New("it is no program that may be run")

func runnable(path string) error {
	info, err := os.Stat(path)
	var wrong *fs.PathError
	switch {
	case errors.As(err, &wrong):
		return wrong.Err
	case err != nil:
		return err
	case info.IsDir() || runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return errNotRunnable
	}
	return nil
}

// endings are what a program's name may lack.
func endings(environ []string) []string {
	if runtime.GOOS != "windows" {
		return []string{""}
	}
	return append([]string{""}, filepath.SplitList(variable(environ, "PATHEXT"))...)
}

func variable(environ []string, name string) string {
	for _, e := range environ {
		if k, v, _ := strings.Cut(e, "="); k == name || runtime.GOOS == "windows" && strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// ExamineFiles judges what lies around the servers: the file itself and the
// .env beside it.
func ExamineFiles(c *config.Config) (found []Finding) {
	for _, file := range []string{c.File, c.EnvFile} {
		info, err := os.Stat(file)
		if file == "" || err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if file == c.EnvFile || holdsEnv(c) {
			found = append(found, Finding{Weight: Note, Text: file + " may hold secrets and can be read by other users", Fix: "chmod 600 " + file})
		}
	}
	return found
}

func holdsEnv(c *config.Config) bool {
	for _, s := range c.Servers {
		if len(s.Env)+len(s.Headers) > 0 {
			return true
		}
	}
	return false
}

// Departures is what surprises a user of the reference, whose files this
// program reads, and how to have it as it was.
func Departures() []Finding {
	note := func(text, fix string) Finding { return Finding{Weight: Note, Text: text, Fix: fix} }
	return []Finding{
		note("servers get a list of ordinary variables, not the whole environment", `add "envPass": ["*"] to an entry that needs it all`),
		note("every call leaves a signed receipt below ~/.tool-guardian/evidence", "set TOOL_GUARDIAN_EVIDENCE=off to keep none"),
		note("a call is never sent twice: when its server ends in the middle, the outcome is told as unknown", `list tools that may be repeated under toolGuardian.repeatable, like ["server.tool"]`),
		note("a call that takes too long is given up, and its server lives on", "set TOOL_GUARDIAN_CALL_TIMEOUT to the seconds a call may take"),
		note("the text of files is passed as it is, never cleaned, and nothing but text is ever left out", "nothing to do"),
		note("no network is reached unasked, so that nothing tells of newer versions", "look for a release yourself"),
	}
}

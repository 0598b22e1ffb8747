package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// server expands an entry's variables and says what cannot be used.
func (e entry) server(v variables, dir string) Server {
	s := Server{Name: e.name, Command: e.Command, EnvPass: e.EnvPass, Disabled: e.Disabled,
		Description: e.Description, URL: e.URL, Type: e.Type, AllowInsecure: e.AllowInsecure,
		Protocol: e.Protocol, MaxConcurrent: e.MaxConcurrent}
	if e.Command != "" {
		s.Line = append([]string{e.Command}, e.Args...)
	}
	x := expander{v: v}
	for _, a := range e.Args {
		s.Args = append(s.Args, x.expand(a))
	}
	s.Env, s.Headers = x.expandMap(e.Env), x.expandMap(e.Headers)
	s.used, s.unresolved = x.used, x.unresolved
	if e.Cwd != "" {
		s.Dir = e.Cwd
		if !filepath.IsAbs(s.Dir) {
			s.Dir = filepath.Join(dir, s.Dir)
		}
	}
	s.Problem = e.problems()
	return s
}

// Placeholders of other programs, which would silently mean something else
// here.
var foreignRE = regexp.MustCompile(`\$\{(?:input|env):[^}]*\}|\$\{workspaceFolder\}`)

func (e entry) problems() string {
	if e.problem != "" {
		return e.problem
	}
	if e.EnvFile != nil {
		return `"envFile" is not supported; name the file with --env-file or TOOL_GUARDIAN_ENV, and list its variables in "envPass"`
	}
	if found := e.foreign(); found != "" {
		return found + ` is not supported; write ${NAME} for a variable, or the value itself`
	}
	return e.kindProblem()
}

func (e entry) kindProblem() string {
	switch {
	case e.Command != "" && e.URL != "":
		return `an entry has either "command" or "url", not both`
	case e.URL != "":
		return `servers by "url" are not supported yet; wrap it: "command": "npx", "args": ["-y", "mcp-remote", "` + e.URL + `"]`
	case e.Command == "":
		return `the entry has neither "command" nor "url"`
	case e.MaxConcurrent < 0:
		return `"maxConcurrent" cannot be negative`
	case e.Protocol != "" && !slices.Contains(Protocols(), e.Protocol):
		return fmt.Sprintf(`"protocol" %q is unknown; one of %s`, e.Protocol, strings.Join(Protocols(), ", "))
	}
	return ""
}

// Protocols are the revisions that an entry may name.
func Protocols() []string {
	return []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
}

// foreign returns the first foreign placeholder of the entry.
func (e entry) foreign() string {
	texts := append([]string{e.Command, e.Cwd, e.URL}, e.Args...)
	for _, m := range []map[string]string{e.Env, e.Headers} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			texts = append(texts, m[k])
		}
	}
	for _, t := range texts {
		if f := foreignRE.FindString(t); f != "" {
			return f
		}
	}
	return ""
}

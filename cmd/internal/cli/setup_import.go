package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"toolguardian/proxy/config"
	"toolguardian/proxy/setup"
)

// importOptions are the flags of setup import.
type importOptions struct {
	routeOptions
	from         []string
	replace, yes bool
}

func (a *app) setupImport() *cobra.Command {
	var o importOptions
	c := &cobra.Command{
		Use: "import", Short: "Take over the servers of the MCP clients on this machine", Args: cobra.NoArgs,
		Long: "Copy the servers that other clients have into the router's configuration: Claude Desktop, Claude\n" +
			"Code, Cursor, Windsurf, VS Code, Cline, Gemini, OpenCode, Codex, Continue, and this folder's .mcp.json.\n" +
			"Their files are only read. What would be written is shown first.",
		RunE: func(*cobra.Command, []string) error { return a.importServers(o) },
	}
	o.flags(c)
	c.Flags().StringArrayVar(&o.from, "from", nil, "only this client, or this file (claude-desktop, claude-code, cursor, windsurf, vscode, cline, gemini, opencode, codex, continue, project)")
	c.Flags().BoolVar(&o.replace, "replace", false, "take the place of servers of the same name")
	c.Flags().BoolVar(&o.yes, "yes", false, "write without asking")
	return c
}

func (a *app) importServers(o importOptions) error {
	sources, err := a.sources(o.from)
	if err != nil {
		return err
	}
	old, err := a.target(o.routeOptions)
	if err != nil {
		return err
	}
	m := merging{a: a, o: o, old: old, text: old, taken: map[string]json.RawMessage{}}
	if err := m.sources(sources); err != nil {
		return err
	}
	if len(m.lines) == 0 {
		a.say("nothing to import: no other client has a server that %s lacks", old.File)
		return verdict(m.exit())
	}
	if !o.yes {
		if err := a.consent(false); err != nil {
			return err
		}
	}
	if err := a.write(change{old, m.text.Bytes, o.yes}); err != nil {
		return err
	}
	for _, line := range m.lines {
		a.print("%s\n", line)
	}
	a.print("imported %s into %s\n", plural(len(m.lines), "server"), old.File)
	a.say("tool-guardian setup doctor starts them and says what they lack; then take them out of the other client,\n" +
		"let it start tool-guardian instead, and restart it")
	return verdict(m.exit())
}

// sources are all clients' files, or those that --from names.
func (a *app) sources(from []string) ([]setup.Source, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	user := a.Getenv("HOME")
	if user == "" {
		if user, err = os.UserHomeDir(); err != nil {
			return nil, err
		}
	}
	all := setup.Sources(setup.Place{GOOS: runtime.GOOS, Home: user, Cwd: cwd, Getenv: a.Getenv})
	if len(from) == 0 {
		return all, nil
	}
	var chosen []setup.Source
	for _, name := range from {
		before := len(chosen)
		for _, s := range all {
			if s.Key == name {
				chosen = append(chosen, s)
			}
		}
		if len(chosen) > before {
			continue
		}
		if _, err := os.Stat(name); err != nil {
			return nil, usagef("--from %q is neither a client that is known here nor a file: --help lists the clients", name)
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, setup.FileSource(path)...)
	}
	return chosen, nil
}

// merging collects what an import adds.
type merging struct {
	a      *app
	o      importOptions
	old    setup.Text
	text   setup.Text
	taken  map[string]json.RawMessage // by this import
	lines  []string
	broken []string // files that could not be read
}

func (m *merging) exit() Code {
	if len(m.broken) > 0 {
		return Failed
	}
	return OK
}

func (m *merging) sources(all []setup.Source) error {
	for _, s := range all {
		found, err := setup.Discover(s)
		if err != nil && !slices.Contains(m.broken, s.File) {
			m.broken = append(m.broken, s.File)
			m.a.say("%s is left out: %v", s.Client, err)
		}
		for _, f := range found {
			if err := m.take(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds one server to the text, or says why not.
func (m *merging) take(f setup.Found) error {
	skip, err := m.skip(f)
	if err != nil {
		return err
	}
	if skip != "" {
		m.a.say("%s, %s: not taken: %s", f.Client, f.Name, skip)
		return nil
	}
	names, err := m.old.Names()
	if err != nil {
		return err
	}
	if slices.Contains(names, f.Name) && !m.o.replace {
		m.a.say("%s, %s: not taken: the configuration has a server of this name; --replace puts this one in its place", f.Client, f.Name)
		return nil
	}
	if was, twice := m.taken[f.Name]; twice {
		if !bytes.Equal(was, f.Entry) {
			m.a.say("%s, %s: not taken: another client has a server of this name, which was taken", f.Client, f.Name)
		}
		return nil
	}
	text, err := m.text.Add(f.Name, f.Entry, m.o.replace)
	if err != nil {
		return err
	}
	m.text.Bytes, m.taken[f.Name] = text, f.Entry
	line := fmt.Sprintf("%s from %s: %s", f.Name, f.Client, cmp.Or(f.URL, commandLine(append([]string{f.Command}, f.Args...))))
	m.a.say("  %s", line)
	for _, n := range f.Notes {
		m.a.say("    note: %s", n)
	}
	m.lines = append(m.lines, line)
	return nil
}

// skip says why a server cannot be taken over; "" when it can.
func (m *merging) skip(f setup.Found) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if f.Skip != "" || f.Command == "" && f.URL == "" {
		return cmp.Or(f.Skip, "it has neither a command nor a URL"), nil
	}
	if config.IsSelf(f.Command, f.Args, self) {
		return "it is this router", nil
	}
	if strings.Contains(string(f.Entry), ":-") && strings.Contains(string(f.Entry), "${") {
		return "${NAME:-default} is not supported: write ${NAME}, or the value itself", nil
	}
	alone, err := setup.Text{File: m.old.File}.Add(f.Name, f.Entry, false)
	if err != nil {
		return err.Error(), nil
	}
	cfg, err := m.a.pending(m.o.routeOptions, m.old.File, alone)
	if err != nil {
		return "", err
	}
	if s, ok := server(cfg, f.Name); ok && f.URL == "" {
		return s.Problem, nil
	}
	return "", nil
}

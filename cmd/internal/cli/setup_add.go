package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"toolguardian/proxy/config"
	"toolguardian/proxy/setup"
)

// addOptions are the flags of setup add.
type addOptions struct {
	routeOptions
	env                   []string
	description           string
	replace, noCheck, yes bool
}

func (a *app) setupAdd() *cobra.Command {
	var o addOptions
	c := &cobra.Command{
		Use:   "add NAME [flags] -- COMMAND [ARGS…]",
		Short: "Put a server behind the router, once it has shown that it starts",
		Long: "Start a server and, if it answers, write it into the configuration file. What follows -- is its\n" +
			"command line as you would type it. One that does not start or does not answer is not written.",
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() != 1 || len(args) < 2 {
				return usagef("setup add NAME -- COMMAND…: give one name, then -- and the server's command line")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.add(c.Context(), o, args[0], args[1:]) },
	}
	o.flags(c)
	c.Flags().StringArrayVar(&o.env, "env", nil, "NAME=VALUE for the server; '${NAME}' stands for a variable of yours")
	c.Flags().StringVar(&o.description, "description", "", "what the server is for, in a few words that the model reads")
	c.Flags().BoolVar(&o.replace, "replace", false, "take the place of a server of this name")
	c.Flags().BoolVar(&o.noCheck, "no-check", false, "write without starting it first")
	c.Flags().BoolVar(&o.yes, "yes", false, "write without asking")
	return c
}

func (a *app) add(ctx context.Context, o addOptions, name string, words []string) error {
	entry, err := newEntry(o, name, words)
	if err != nil {
		return err
	}
	if err := a.consent(o.yes); err != nil {
		return err
	}
	old, err := a.target(o.routeOptions)
	if err != nil {
		return err
	}
	text, err := old.Add(name, entry, o.replace)
	if errors.Is(err, setup.ErrTaken) {
		return fmt.Errorf("%w; --replace puts this one in its place", err)
	}
	if err != nil {
		return err
	}
	cfg, err := a.pending(o.routeOptions, old.File, text)
	if err != nil {
		return err
	}
	s, ok := server(cfg, name)
	if !ok {
		return usagef("nothing was written: %q would start this router again", name)
	}
	if s.Problem != "" {
		return fmt.Errorf("nothing was written: server %q: %s", name, s.Problem)
	}
	return a.addChecked(ctx, o, change{old, text, o.yes}, cfg, s)
}

// addChecked starts the server, writes the file and says how it stands.
func (a *app) addChecked(ctx context.Context, o addOptions, c change, cfg *config.Config, s config.Server) error {
	works := "not started (--no-check)"
	if !o.noCheck {
		a.say("starting '%s' to see that it answers …", s.Name)
		t, err := a.checked(ctx, cfg, s)
		if err != nil {
			return fmt.Errorf("nothing was written: %w", err)
		}
		works = "ok, " + plural(t.count(), "tool")
	}
	if err := a.write(c); err != nil {
		return err
	}
	a.print("added '%s' to %s\n", s.Name, c.old.File)
	a.print("%s: %s\n", s.Name, works)
	a.printFindings(setup.Examine(cfg, s))
	a.say("restart your MCP client, or begin a new session, to have it")
	return nil
}

// newEntry is the server as it is written.
func newEntry(o addOptions, name string, words []string) (json.RawMessage, error) {
	var e struct {
		Command     string            `json:"command"`
		Args        []string          `json:"args,omitempty"`
		Env         map[string]string `json:"env,omitempty"`
		Description string            `json:"description,omitempty"`
	}
	if strings.TrimSpace(name) == "" || strings.ContainsFunc(name, unicode.IsControl) {
		return nil, usagef("%q is no name for a server: use letters, digits, - and _", name)
	}
	if e.Command = words[0]; e.Command == "" {
		return nil, usagef("the command is empty: put the server's command line behind --")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if config.IsSelf(e.Command, words[1:], self) {
		return nil, usagef("%s would start this router again: add the servers that it is to route to", strings.Join(words, " "))
	}
	if strings.ContainsAny(e.Command, `/\`) && !filepath.IsAbs(e.Command) {
		if e.Command, err = filepath.Abs(e.Command); err != nil { // the router starts elsewhere
			return nil, err
		}
	}
	e.Args, e.Description = words[1:], o.description
	for _, pair := range o.env {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return nil, usagef("--env %q: write NAME=VALUE", pair)
		}
		if e.Env == nil {
			e.Env = map[string]string{}
		}
		e.Env[k] = v
	}
	return plainJSON(e)
}

// plainJSON writes < > & as themselves.
func plainJSON(v jsonValue) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// count is how many tools the server has.
func (t *trial) count() (n int) {
	for range t.Tools.All() {
		n++
	}
	return n
}

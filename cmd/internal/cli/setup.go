package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"toolguardian/proxy/config"
	"toolguardian/proxy/setup"
)

// setupName is the name under which the binary is its own setup command.
const setupName = "tool-guardian-setup"

func (a *app) setupCommand() *cobra.Command {
	return group("setup", "Add, import, list, remove and check the servers behind the router",
		a.setupAdd(), a.setupImport(), a.setupList(), a.setupRemove(), a.setupDoctor())
}

// change is an edit of the configuration file that waits for a yes.
type change struct {
	old  setup.Text
	text []byte // what the file will be
	yes  bool   // nobody has to be asked
}

// consent is refused at once where nobody could give it later.
func (a *app) consent(yes bool) error {
	if yes || terminal(a.In) {
		return nil
	}
	return usagef("nothing was written: stdin is no terminal to ask at; add --yes to agree beforehand")
}

// write asks, writes and names the backup.
func (a *app) write(c change) error {
	if !c.yes && !a.agreed("write %s? [y/N] ", c.old.File) {
		return fmt.Errorf("nothing was written: it was not agreed to")
	}
	backup, err := c.old.Write(a.Now(), c.text)
	if err != nil {
		return err
	}
	if backup != "" {
		a.say("the file as it was: %s", backup)
	}
	return nil
}

// agreed asks on stderr; only an explicit yes is one.
func (a *app) agreed(format string, args ...any) bool {
	fmt.Fprintf(a.Err, format, args...)
	line, err := bufio.NewReader(a.In).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return (err == nil || line != "") && (answer == "y" || answer == "yes")
}

// target is the file that setup edits: the one the router would use, or the
// one that a first server makes.
func (a *app) target(o routeOptions) (setup.Text, error) {
	home, err := a.home()
	if err != nil {
		return setup.Text{}, err
	}
	path := o.config
	if path == "" {
		path = a.Getenv("TOOL_GUARDIAN_CONFIG")
	}
	if path == "" {
		cfg, err := a.loadConfig(o, home)
		if err != nil {
			return setup.Text{}, err
		}
		if path = cfg.File; path == "" {
			path = filepath.Join(home, "mcp.json")
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return setup.Text{}, err
	}
	return setup.Read(path)
}

// pending reads a configuration as it would be once text is written.
func (a *app) pending(o routeOptions, file string, text []byte) (*config.Config, error) {
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	where, err := a.where(o, home)
	if err != nil {
		return nil, err
	}
	where.Flag, where.Pending = file, text
	return config.Load(where)
}

// where says where configurations are looked for.
func (a *app) where(o routeOptions, home string) (config.Options, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return config.Options{}, err
	}
	self, err := os.Executable()
	return config.Options{Flag: o.config, EnvFile: o.envFile, Environ: a.Environ(), Cwd: cwd, Home: home, Self: self}, err
}

func server(cfg *config.Config, name string) (config.Server, bool) {
	for _, s := range cfg.Servers {
		if s.Name == name {
			return s, true
		}
	}
	return config.Server{}, false
}

func (a *app) setupRemove() *cobra.Command {
	var o routeOptions
	var yes bool
	c := &cobra.Command{
		Use: "remove NAME", Short: "Take a server out of the configuration", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.removeServer(o, args[0], yes) },
	}
	o.flags(c)
	c.Flags().BoolVar(&yes, "yes", false, "write without asking")
	return c
}

func (a *app) removeServer(o routeOptions, name string, yes bool) error {
	if err := a.consent(yes); err != nil {
		return err
	}
	old, err := a.target(o)
	if err != nil {
		return err
	}
	text, err := old.Remove(name)
	if errors.Is(err, setup.ErrAbsent) {
		names, _ := old.Names()
		return fmt.Errorf("%w; there: %s", err, strings.Join(append(names, "nothing")[:max(len(names), 1)], ", "))
	}
	if err != nil {
		return err
	}
	if err := a.write(change{old, text, yes}); err != nil {
		return err
	}
	a.print("removed '%s' from %s\n", name, old.File)
	a.say("restart your MCP client, or begin a new session, to do without it")
	return nil
}

// checked is a server that was started before it is written, and its findings.
func (a *app) checked(ctx context.Context, cfg *config.Config, s config.Server) (trial, error) {
	trials, err := a.try(ctx, cfg, []config.Server{s})
	if err != nil {
		return trial{}, err
	}
	return trials[0], trials[0].Err
}

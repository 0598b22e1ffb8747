package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/config"
	"toolguardian/proxy/wire"
)

func (a *app) setupList() *cobra.Command {
	var o routeOptions
	c := &cobra.Command{
		Use: "list", Short: "Show the servers, their commands and the groups their tools are in", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.listServers(o) },
	}
	o.flags(c)
	return c
}

type listedServer struct {
	Name    string   `json:"name"`
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
	Groups  []string `json:"groups"`
	State   string   `json:"state"` // enabled, disabled or unusable
	Problem string   `json:"problem,omitempty"`
}

func (a *app) listServers(o routeOptions) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	cfg, err := a.loadConfig(o, home)
	if err != nil {
		return err
	}
	groups, err := catalogue.ParseGroups(wire.Get(cfg.ToolGuardian, "groups"))
	if err != nil {
		return usagef("toolGuardian.%v", err)
	}
	list := []listedServer{}
	for _, s := range cfg.Servers {
		list = append(list, listOne(s, groups))
	}
	a.printServers(list)
	return nil
}

func listOne(s config.Server, groups []catalogue.Group) listedServer {
	l := listedServer{Name: s.Name, Command: s.Line, URL: s.URL, Groups: groupsOf(s.Name, groups), State: "enabled", Problem: s.Problem}
	switch {
	case s.Disabled:
		l.State = "disabled"
	case s.Problem != "":
		l.State = "unusable"
	}
	return l
}

// groupsOf names the groups that a server's tools are in, as far as that can be
// told without starting it: with a selector of single tools, the rest may be
// among the leftovers.
func groupsOf(name string, groups []catalogue.Group) (in []string) {
	if len(groups) == 0 {
		return []string{name}
	}
	whole := false
	for _, g := range groups {
		for _, selector := range g.Selectors {
			if selector != name && !strings.HasPrefix(selector, name+".") {
				continue
			}
			whole = whole || selector == name
			if !slices.Contains(in, g.Name) {
				in = append(in, g.Name)
			}
		}
	}
	if !whole {
		in = append(in, "other")
	}
	return in
}

func (a *app) printServers(list []listedServer) {
	if a.json {
		a.printJSON(list)
		return
	}
	if len(list) == 0 {
		a.say("no servers yet: setup add NAME -- COMMAND…, or setup import")
		return
	}
	t := a.table("name", "command", "groups", "state")
	for _, s := range list {
		command := s.URL
		if len(s.Command) > 0 {
			command = commandLine(s.Command)
		}
		t.row(s.Name, command, strings.Join(s.Groups, ", "), s.State)
	}
	t.flush()
	for _, s := range list {
		if s.Problem != "" {
			a.print("%s: %s\n", s.Name, s.Problem)
		}
	}
}

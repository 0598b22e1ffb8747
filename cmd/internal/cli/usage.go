package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/proxy/config"
	"toolguardian/proxy/journal"
)

func (a *app) usageCommand() *cobra.Command {
	var o routeOptions
	var since string
	c := &cobra.Command{
		Use: "usage", Short: "Count what the router did and saved, from the call log", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.usage(o, since) },
	}
	o.flags(c)
	c.Flags().StringVar(&since, "since", "", "only the last 7d, 24h, … (default: the whole log)")
	return c
}

// usage is the report. Tokens are characters / 3.5; null where no start has
// recorded what the catalogue costs.
type usage struct {
	Window   string        `json:"window"`
	Sessions int           `json:"sessions"`
	Calls    int           `json:"calls"` // of the router's tools
	Errors   int           `json:"errors"`
	Servers  []serverUsage `json:"servers"`
	Shaped   int           `json:"shaping_saved_chars"`

	Avoided   *int     `json:"catalogue_tokens_avoided"`
	Catalogue *int     `json:"catalogue_tokens"` // of every server's tools
	Router    *int     `json:"router_tokens"`    // of the router's own
	Unused    []string `json:"unused_servers"`   // configured, and no call_tool
	Droppable *int     `json:"unused_tokens"`    // of what the unused servers cost
}

type serverUsage struct {
	Name   string `json:"name"`
	Calls  int    `json:"calls"`
	Errors int    `json:"errors"`
	In     int    `json:"chars_in"`  // of the results as they came
	Out    int    `json:"chars_out"` // as the client got them
}

func (a *app) usage(o routeOptions, since string) error {
	from, window, err := a.window(since)
	if err != nil {
		return err
	}
	home, err := a.home()
	if err != nil {
		return err
	}
	cfg, err := a.loadConfig(o, home)
	if err != nil {
		return err
	}
	path, set := cfg.Setting("TOOL_GUARDIAN_CALL_LOG")
	if !set {
		path = filepath.Join(home, "calls.jsonl")
	}
	if path == "" {
		a.say("the call log is off, TOOL_GUARDIAN_CALL_LOG being empty: there is nothing to count")
	}
	t := tally{from: from, servers: map[string]*serverUsage{}, called: map[string]bool{}, sessions: map[string]sessionSeen{}}
	if err := a.readCalls(path, &t); err != nil {
		return err
	}
	r := t.report(window, cfg, a.lastCosts(home, cfg))
	a.printUsage(r)
	return nil
}

// window is the beginning of --since, the zero time for all.
func (a *app) window(since string) (from time.Time, text string, err error) {
	if since == "" {
		return from, "whole call log", nil
	}
	length, err := time.ParseDuration(since)
	if days, ok := strings.CutSuffix(since, "d"); ok {
		var n float64
		n, err = strconv.ParseFloat(days, 64)
		length = time.Duration(n * float64(24*time.Hour))
	}
	if err != nil || length <= 0 {
		return from, "", usagef("--since %q: use a number of days or hours, such as 7d or 24h", since)
	}
	return a.Now().Add(-length), "last " + since, nil
}

// readCalls reads the log, the one set aside before it first.
func (a *app) readCalls(path string, t *tally) error {
	if path == "" {
		return nil
	}
	for _, p := range []string{path + ".1", path} {
		if err := t.readFile(p); err != nil {
			return err
		}
	}
	if t.bad > 0 {
		a.say("%s: %s could not be read and are left out", path, plural(t.bad, "line"))
	}
	return nil
}

// lastCosts are what the last run recorded; nil where none did. Nothing is
// written, not even where there is no state file yet.
func (a *app) lastCosts(home string, cfg *config.Config) *costs {
	path, set := cfg.Setting("TOOL_GUARDIAN_STATE")
	if !set {
		path = filepath.Join(home, "state.json")
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	state, err := journal.OpenState(path)
	if err != nil {
		a.say("tool-guardian: %v", err)
	}
	if c, ok := journal.Get[costs](state, costsMember); ok && len(c.Servers) > 0 {
		return &c
	}
	return nil
}

func (t *tally) report(window string, cfg *config.Config, c *costs) usage {
	r := usage{Window: window, Sessions: t.started(), Calls: t.calls, Errors: t.errors, Shaped: t.shaped,
		Servers: []serverUsage{}, Unused: []string{}}
	for _, name := range slices.Sorted(maps.Keys(t.servers)) {
		r.Servers = append(r.Servers, *t.servers[name])
	}
	droppable := 0
	for _, s := range enabled(cfg) {
		if !t.called[s.Name] {
			r.Unused = append(r.Unused, s.Name)
			if c != nil {
				droppable += c.Servers[s.Name]
			}
		}
	}
	slices.Sort(r.Unused)
	if c != nil {
		total := c.total()
		avoided := r.Sessions * max(total-c.Router, 0)
		r.Avoided, r.Catalogue, r.Router, r.Droppable = &avoided, &total, &c.Router, &droppable
	}
	return r
}

func (a *app) printUsage(r usage) {
	if a.json {
		a.printJSON(r)
		return
	}
	if r.Calls == 0 {
		a.print("tool-guardian usage (%s): no calls in window\n", r.Window)
		return
	}
	a.print("tool-guardian usage (%s): %d session(s), %d router call(s), %d error(s)\n", r.Window, r.Sessions, r.Calls, r.Errors)
	width := 0
	for _, s := range r.Servers {
		width = max(width, len(s.Name))
	}
	for _, s := range r.Servers {
		a.print("  %-*s  calls %d  errors %d  chars in %s  out %s\n", width, s.Name, s.Calls, s.Errors, grouped(s.In), grouped(s.Out))
	}
	a.print("result shaping saved %s chars\n", grouped(r.Shaped))
	a.printAvoided(r)
}

func (a *app) printAvoided(r usage) {
	if r.Avoided == nil {
		a.print("catalogue tokens avoided: unknown (no run of the router has recorded what the tools cost)\n")
	} else {
		a.print("catalogue tokens avoided: ~%s\n", grouped(*r.Avoided))
	}
	if len(r.Unused) == 0 {
		return
	}
	a.print("unused servers: %s\n", strings.Join(r.Unused, ", "))
	if r.Droppable != nil && *r.Droppable > 0 {
		a.print("dropping the unused servers would shrink the full catalogue by ~%s tokens (%d%% of ~%s)\n",
			grouped(*r.Droppable), 100**r.Droppable / *r.Catalogue, grouped(*r.Catalogue))
	}
}

// grouped writes 20005 as 20,005.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

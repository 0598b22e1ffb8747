package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"toolguardian/cmd/internal/cl100k"
	"toolguardian/proxy"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/config"
	"toolguardian/proxy/wire"
)

func (a *app) selftestCommand() *cobra.Command {
	var o routeOptions
	c := &cobra.Command{
		Use: "selftest", Short: "Start every server, show the catalogue and what the router saves", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.selftest(c.Context(), o) },
	}
	o.flags(c)
	return c
}

// flags are those of every command that reads the configuration.
func (o *routeOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&o.config, "config", "", "the file with mcpServers (default ~/.tool-guardian/mcp.json)")
	c.Flags().StringVar(&o.envFile, "env-file", "", "the .env to read (default: searched upward from the config)")
}

// selftest is the report. Each figure is there twice: by a real tokenizer and
// by the estimate of characters / 3.5.
type selftest struct {
	Tokenizer string           `json:"tokenizer"`
	Servers   []selftestServer `json:"servers"`
	Direct    figures          `json:"direct"` // every server's tools loaded by the client
	Router    figures          `json:"router"` // the router's own instead
	Silenced  []string         `json:"silenced_by_read_only"`
	Failed    int              `json:"failed"`
	catalogue string
}

type selftestServer struct {
	Name     string  `json:"name"`
	State    string  `json:"state"`
	Protocol string  `json:"protocol,omitempty"`
	Error    string  `json:"error,omitempty"`
	Tools    int     `json:"tools"`
	Shown    figures `json:"shown"` // the functions a model is shown
	Whole    figures `json:"whole"` // the whole tools array
}

// figures are tokens of one text by both counts.
type figures struct {
	Estimate int `json:"estimate"` // characters / 3.5
	Cl100k   int `json:"cl100k_base"`
}

func (f *figures) add(g figures) {
	f.Estimate += g.Estimate
	f.Cl100k += g.Cl100k
}

func (a *app) selftest(ctx context.Context, o routeOptions) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	cfg, err := a.loadConfig(o, home)
	if err != nil {
		return err
	}
	servers := enabled(cfg)
	if len(servers) == 0 {
		return fmt.Errorf("no server is configured, so that nothing was tested: tool-guardian setup add NAME -- COMMAND…, or setup import")
	}
	own, err := a.ownTools(home, cfg)
	if err != nil {
		return err
	}
	trials, err := a.try(ctx, cfg, servers)
	if err != nil {
		return err
	}
	r, err := report(trials, own)
	if err != nil {
		return err
	}
	a.printSelftest(r)
	if r.Failed > 0 {
		return verdict(Failed)
	}
	return nil
}

// ownTools are the router's definitions as this configuration, and what the
// last run left, shape them.
func (a *app) ownTools(home string, cfg *config.Config) ([]json.RawMessage, error) {
	state, err := a.openState(home, cfg)
	if err != nil {
		return nil, err
	}
	o := proxy.Options{Config: cfg, Policy: a.loadPolicy(home, cfg)}
	recall(state, &o)
	if o.Spills, err = a.openSpills(home, cfg); err != nil {
		return nil, err
	}
	if err := o.ReadSettings(routerSettings(cfg.Setting)); err != nil {
		return nil, usagef("%v", err)
	}
	o.Evidence = proxy.EvidenceOff
	r, err := proxy.New(o)
	if err != nil {
		return nil, err
	}
	list, err := r.ListTools(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	return wire.Elements(list)
}

func report(trials []trial, own []json.RawMessage) (r selftest, err error) {
	count := cl100k.New()
	r.Tokenizer = cl100k.Name
	if r.Router, err = shown(count, own); err != nil {
		return r, err
	}
	entries := make([]catalogue.Server, len(trials))
	for i := range trials {
		t := &trials[i]
		entries[i] = t.entry()
		s, err := t.measure(count)
		if err != nil {
			return r, err
		}
		if t.Err != nil {
			r.Failed++
		} else if s.Tools > 0 && !t.reads() {
			r.Silenced = append(r.Silenced, t.Name)
		}
		r.Servers = append(r.Servers, s)
		r.Direct.add(s.Shown)
	}
	r.catalogue, _ = catalogue.New(entries, catalogue.Options{}).List()
	return r, nil
}

func (t *trial) measure(count cl100k.Counter) (s selftestServer, err error) {
	s = selftestServer{Name: t.Name, State: string(t.Status.State), Protocol: t.Status.Protocol}
	if t.Err != nil {
		s.Error = t.reason()
		return s, nil
	}
	var raw []json.RawMessage
	for tool := range t.Tools.All() {
		raw = append(raw, tool.Raw)
	}
	s.Tools = len(raw)
	if s.Shown, err = shown(count, raw); err == nil && len(raw) > 0 {
		s.Whole, err = whole(count, raw)
	}
	return s, err
}

// reads says whether one of its tools claims to be read-only.
func (t *trial) reads() bool {
	for tool := range t.Tools.All() {
		if tool.ReadOnly {
			return true
		}
	}
	return false
}

func shown(count cl100k.Counter, raw []json.RawMessage) (f figures, err error) {
	f.Estimate = catalogue.Price(raw)
	f.Cl100k, err = count.Functions(raw)
	return f, err
}

// whole are the figures of a tools array, as some clients load it.
func whole(count cl100k.Counter, raw []json.RawMessage) (f figures, err error) {
	var array bytes.Buffer
	for i, d := range raw {
		array.WriteByte("[,"[min(i, 1)])
		if err := json.Compact(&array, d); err != nil {
			return f, err
		}
	}
	array.WriteByte(']')
	f.Estimate = catalogue.Tokens(utf8.RuneCount(array.Bytes()))
	f.Cl100k, err = count.Text(array.String())
	return f, err
}

func (a *app) printSelftest(r selftest) {
	if a.json {
		a.printJSON(r)
		return
	}
	a.print("%s\n\n", r.catalogue)
	a.print("token counts: characters / 3.5, and %s; of the functions a model is shown\n", r.Tokenizer)
	a.print("characters / 3.5: %s\n", saved(r.Router.Estimate, r.Direct.Estimate))
	a.print("%s: %s\n", r.Tokenizer, saved(r.Router.Cl100k, r.Direct.Cl100k))
	for _, s := range r.Servers {
		if s.Error != "" {
			a.print("[%s] failed: %s\n", s.Name, s.Error)
			continue
		}
		a.print("[%s] %s, ~%d tokens (%s %d; the whole tools/list ~%d, %d)\n", s.Name, plural(s.Tools, "tool"),
			s.Shown.Estimate, r.Tokenizer, s.Shown.Cl100k, s.Whole.Estimate, s.Whole.Cl100k)
	}
	for _, name := range r.Silenced {
		a.print("[%s] would have no tool under a policy with readOnly: none says that it only reads\n", name)
	}
	a.sayUpdates()
}

// saved compares the router's own cost with that of everything behind it.
func saved(own, direct int) string {
	text := fmt.Sprintf("router tools cost ~%d tokens vs ~%d for the full set behind them", own, direct)
	if own >= direct {
		return text + fmt.Sprintf(" -> ~%d tokens more on every request; it pays off with more servers", own-direct)
	}
	return text + fmt.Sprintf(" -> ~%d tokens freed on every request (%d%% smaller)", direct-own, 100*(direct-own)/direct)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sayUpdates ends a report: where other versions look for a newer release,
// this one reaches no network unasked.
func (a *app) sayUpdates() {
	if a.Getenv("GUARDIAN_NO_UPDATE_CHECK") == "" {
		a.print("update: not checked: no network is reached unasked\n")
	}
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"toolguardian/policy"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/config"
	"toolguardian/proxy/setup"
	"toolguardian/proxy/wire"
)

func (a *app) setupDoctor() *cobra.Command {
	var o routeOptions
	var noStart bool
	c := &cobra.Command{
		Use: "doctor [NAME…]", Short: "Check the configuration and every server, with what to do about each problem", Args: cobra.ArbitraryArgs,
		Long: "Check the configuration file, the .env, each server's command and variables, start every server,\n" +
			"and print a fix: line for what is wrong. Notes on what differs from other versions follow.",
		RunE: func(c *cobra.Command, names []string) error { return a.doctor(c.Context(), o, names, !noStart) },
	}
	o.flags(c)
	c.Flags().BoolVar(&noStart, "no-start", false, "start no server")
	return c
}

// diagnosis is the doctor's report.
type diagnosis struct {
	Config   string          `json:"config"`
	EnvFile  string          `json:"env_file,omitempty"`
	Well     []string        `json:"ok"` // servers that answered, with what they have
	Findings []setup.Finding `json:"findings"`
}

func (a *app) doctor(ctx context.Context, o routeOptions, names []string, start bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	cfg, err := a.loadConfig(o, home)
	if err != nil {
		return brokenConfig(a, err)
	}
	servers, err := chosen(cfg, names)
	if err != nil {
		return err
	}
	d := diagnosis{Config: cfg.File, EnvFile: cfg.EnvFile, Well: []string{}, Findings: setup.ExamineFiles(cfg)}
	rules, found := a.examinePolicy(home, cfg)
	d.Findings = append(d.Findings, found...)
	if len(servers) == 0 {
		d.Findings = append(d.Findings, setup.Finding{Weight: setup.Problem, Text: "no server is configured", Fix: "tool-guardian setup import, or setup add NAME -- COMMAND…"})
	}
	var alive []config.Server
	for _, s := range servers {
		found := setup.Examine(cfg, s)
		if d.Findings = append(d.Findings, found...); !slices.ContainsFunc(found, func(f setup.Finding) bool { return f.Dead }) {
			alive = append(alive, s)
		}
	}
	if start {
		trials, err := a.try(ctx, cfg, alive)
		if err != nil {
			return err
		}
		for i := range trials {
			d.judge(&trials[i], rules, policyFile(home, cfg))
		}
	}
	if len(names) == 0 {
		d.Findings = append(d.Findings, setup.Departures()...)
	}
	return a.printDiagnosis(d)
}

// brokenConfig adds a fix to the error of a file that cannot be read.
func brokenConfig(a *app, err error) error {
	var broken *config.FileError
	if errors.As(err, &broken) {
		a.print("problem: %v\n  fix: correct %s there; nothing is changed in it\n", err, broken.File)
		return verdict(Failed)
	}
	return err
}

// chosen are the named servers, or all that are not disabled.
func chosen(cfg *config.Config, names []string) (out []config.Server, err error) {
	if len(names) == 0 {
		return enabled(cfg), nil
	}
	for _, name := range names {
		s, ok := server(cfg, name)
		if !ok {
			return nil, usagef("server %q is not configured in %s: setup list shows which are", name, cfg.File)
		}
		out = append(out, s)
	}
	return out, nil
}

func policyFile(home string, cfg *config.Config) string {
	named, _ := cfg.Setting("TOOL_GUARDIAN_POLICY")
	return cmp.Or(named, filepath.Join(home, "policy.json"))
}

// examinePolicy reads the policy and says what keeps it from being read.
func (a *app) examinePolicy(home string, cfg *config.Config) (*policy.Policy, []setup.Finding) {
	path := policyFile(home, cfg)
	named, _ := cfg.Setting("TOOL_GUARDIAN_POLICY")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && named == "" {
		return policy.AllowAll(), nil
	}
	var p *policy.Policy
	if err == nil {
		p, err = policy.Parse(b)
	}
	if err != nil {
		return policy.DenyAll(err.Error()), []setup.Finding{{Weight: setup.Problem,
			Text: fmt.Sprintf("the policy file cannot be read, so that every call is denied: %v", err), Fix: "correct " + path}}
	}
	return p, nil
}

// judge says how a server that was started stands.
func (d *diagnosis) judge(t *trial, rules *policy.Policy, file string) {
	add := func(w setup.Weight, text, fix string) {
		d.Findings = append(d.Findings, setup.Finding{Weight: w, Server: t.Name, Text: text, Fix: fix})
	}
	if t.Err != nil {
		add(setup.Problem, t.reason(), "run it by hand and see what it says: "+commandLine(t.Line))
		return
	}
	d.Well = append(d.Well, fmt.Sprintf("%s: %s, protocol %s", t.Name, plural(t.count(), "tool"), t.Status.Protocol))
	if n := t.Status.Noise; n > 0 {
		add(setup.Note, fmt.Sprintf("it wrote %s to stdout that are no messages; they are skipped", plural(n, "line")), "have it log to stderr: look for an option of the server's")
	}
	for _, flag := range t.Status.Flags {
		add(setup.Note, flag, "tell the server's authors")
	}
	if names := t.unasked(rules); len(names) > 0 {
		add(setup.Note, "it says of these tools that they destroy, and no rule asks before they run: "+strings.Join(names, ", "),
			fmt.Sprintf(`to be asked, put "servers": {%s: {"ask": ["^(%s)$"]}} into %s`, wire.Quote(t.Name), patterns(names), file))
	}
}

// commandLine joins words for a shell, quoted where they must be.
func commandLine(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		switch out[i] = w; {
		case strings.ContainsFunc(w, unicode.IsControl):
			out[i] = strconv.Quote(w) // a shell would not take it, but a line is one
		case w == "" || strings.ContainsAny(w, " \"'\\$`;&|<>*?(){}[]#!~"):
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// patterns joins names for a regular expression in a JSON text.
func patterns(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		q := string(wire.Quote(regexp.QuoteMeta(n)))
		quoted[i] = q[1 : len(q)-1]
	}
	return strings.Join(quoted, "|")
}

// unasked are the tools that their server calls destructive and the policy
// lets run.
func (t *trial) unasked(rules *policy.Policy) (names []string) {
	for tool := range t.Tools.All() {
		d := rules.Decide(policy.Call{Server: t.Name, Tool: tool.Name, ReadOnlyHint: tool.ReadOnly})
		if d.Effect == policy.Allow && destructive(tool) {
			names = append(names, tool.Name)
		}
	}
	return names
}

// destructive reads a server's claim; where it makes none, nothing is said.
func destructive(t catalogue.Tool) bool {
	return string(wire.Get(t.Raw, "annotations", "destructiveHint")) == "true" && !t.ReadOnly
}

func (a *app) printDiagnosis(d diagnosis) error {
	failed := OK
	for _, f := range d.Findings {
		if f.Weight == setup.Problem {
			failed = Failed
		}
	}
	if a.json {
		a.printJSON(d)
		return verdict(failed)
	}
	for _, w := range d.Well {
		a.print("ok: %s\n", w)
	}
	a.printFindings(d.Findings)
	a.sayUpdates()
	return verdict(failed)
}

// printFindings shows problems first.
func (a *app) printFindings(found []setup.Finding) {
	for _, w := range []setup.Weight{setup.Problem, setup.Note} {
		for _, f := range found {
			if f.Weight != w {
				continue
			}
			who := ""
			if f.Server != "" {
				who = f.Server + ": "
			}
			a.print("%s: %s%s\n  fix: %s\n", w, who, f.Text, f.Fix)
		}
	}
}

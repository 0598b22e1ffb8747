package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime/debug"

	"toolguardian/policy"
	"toolguardian/proxy"
	"toolguardian/proxy/backend"
	"toolguardian/proxy/config"
	"toolguardian/proxy/front"
	"toolguardian/proxy/journal"
)

// routeOptions are the root command's flags.
type routeOptions struct {
	config, envFile string
	version         bool
}

// route is the router over stdio.
func (a *app) route(ctx context.Context, f routeOptions) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	cfg, err := a.loadConfig(f, home)
	if err != nil {
		return err
	}
	state, err := a.openState(home, cfg)
	if err != nil {
		return err
	}
	sup := backend.NewSupervisor("", a.logger())
	defer sup.Close()
	o := proxy.Options{
		Config: cfg, Supervisor: sup, Verdicts: journal.Verdicts{State: state, Logger: a.logger()},
		Version: Version, Now: a.Now, Logger: a.logger(), Policy: a.loadPolicy(home, cfg),
	}
	recall(state, &o)
	if o.Spills, err = a.openSpills(home, cfg); err != nil {
		return err
	}
	if err := o.ReadSettings(routerSettings(cfg.Setting)); err != nil {
		return usagef("%v", err)
	}
	routed, evidence, err := a.attachEvidence(ctx, &o, state)
	if err != nil {
		return err
	}
	o.Calls = a.openCalls(home, cfg)
	defer o.Calls.Close()
	err = errors.Join(a.serve(routed, o, state), evidence.Close())
	if refused := context.Cause(routed); refused != nil && ctx.Err() == nil {
		return refused
	}
	return without(err, context.Cause(ctx))
}

// without drops the cause from the errors joined in err: a router that was told
// to stop, and stopped, has not failed.
func without(err, cause error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var kept []error
		for _, e := range joined.Unwrap() {
			kept = append(kept, without(e, cause))
		}
		return errors.Join(kept...)
	}
	if cause != nil && errors.Is(err, cause) {
		return nil
	}
	return err
}

func (a *app) serve(ctx context.Context, o proxy.Options, state *journal.State) error {
	remember := func(r *proxy.Router) {
		if err := errors.Join(keep(state, r), keepCosts(ctx, state, r)); err != nil {
			a.say("tool-guardian: what the servers showed is not remembered: %v", err)
		}
	}
	o.Learnt = func(r *proxy.Router) {
		debug.FreeOSMemory() // reading definitions takes several times what they need,
		remember(r)
		debug.FreeOSMemory() // and so does writing them
	}
	r, err := proxy.New(o)
	if err != nil {
		return err
	}
	fo := front.Options{
		Handler: r, Info: front.Info{Name: "tool-guardian", Title: "Tool Guardian", Version: Version},
		Logger: a.logger(), Principal: principal(),
	}
	if terminal(a.In) {
		fo.Terminal = a.Err
	}
	f, err := front.New(fo)
	if err != nil {
		return err
	}
	err = r.Serve(ctx, f, a.In, a.Out)
	remember(r)
	return err
}

func (a *app) loadConfig(f routeOptions, home string) (*config.Config, error) {
	where, err := a.where(f, home)
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load(where)
	if errors.Is(err, config.ErrMissing) {
		return nil, usagef("%v", err)
	}
	if err != nil {
		return nil, err
	}
	a.sayConfig(cfg, home)
	return cfg, nil
}

// sayConfig names the files in use, and what was passed over.
func (a *app) sayConfig(cfg *config.Config, home string) {
	switch {
	case cfg.File == "":
		a.say("config: none found; put your servers into %s, as your MCP client has them under mcpServers", filepath.Join(home, "mcp.json"))
	case cfg.EnvFile != "":
		a.say("config: %s, variables from %s", cfg.File, cfg.EnvFile)
	default:
		a.say("config: %s", cfg.File)
	}
	for _, n := range cfg.Notes {
		a.say("%s", n)
	}
}

// openState opens state.json; a state of a newer version is used as far as it
// can be read, and said.
func (a *app) openState(home string, cfg *config.Config) (*journal.State, error) {
	path, set := cfg.Setting("TOOL_GUARDIAN_STATE")
	if !set {
		path = filepath.Join(home, "state.json")
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, err
		}
	}
	state, err := journal.OpenState(path)
	if errors.Is(err, journal.ErrNewer) {
		a.say("tool-guardian: %v; nothing is remembered this time", err)
		return state, nil
	}
	return state, err
}

// loadPolicy reads the policy file. One that cannot be read denies everything.
func (a *app) loadPolicy(home string, cfg *config.Config) *policy.Policy {
	named, _ := cfg.Setting("TOOL_GUARDIAN_POLICY")
	path := cmp.Or(named, filepath.Join(home, "policy.json"))
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && named == "" {
		return policy.AllowAll()
	}
	var p *policy.Policy
	if err == nil {
		p, err = policy.Parse(b)
	}
	if err != nil {
		a.say("tool-guardian: policy file unreadable: %v; every call is denied until %s is repaired and the router restarted", err, path)
		return policy.DenyAll(fmt.Sprintf("policy file unreadable: %v", err))
	}
	return p
}

// principal names who uses the stdio connection: the user of the process.
func principal() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprintf("uid:%d", os.Getuid())
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return u.Username + "@" + host
}

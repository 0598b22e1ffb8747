package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"toolguardian/proxy"
	"toolguardian/proxy/backend"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/config"
)

// trial is one configured server, started to see whether it works.
type trial struct {
	config.Server
	Status backend.Status // of a server that could be started
	Tools  *catalogue.Tools
	Err    error // why it is not up
}

// failure is an entry that cannot be started at all.
type failure struct{ server, problem string }

func (f failure) Error() string { return fmt.Sprintf("server %q: %s", f.server, f.problem) }

// try starts servers side by side, waits until each is up or has failed, and
// ends them. No tool is called and nothing is remembered. ctx ends the waiting.
func (a *app) try(ctx context.Context, cfg *config.Config, servers []config.Server) ([]trial, error) {
	var limits proxy.Options
	if err := limits.ReadSettings(routerSettings(cfg.Setting)); err != nil {
		return nil, usagef("%v", err)
	}
	quiet := slog.New(slog.DiscardHandler) // a trial's error is told where it is shown
	sup := backend.NewSupervisor("", quiet)
	defer sup.Close()
	trials := make([]trial, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		trials[i].Server = s
		if s.Problem != "" {
			trials[i].Status.State, trials[i].Err = backend.Unsupported, failure{s.Name, s.Problem}
			continue
		}
		all.Go(func() {
			trials[i].run(ctx, a.spec(cfg, s, limits), backend.Options{
				Client: backend.ClientInfo{Name: "tool-guardian", Version: Version}, Supervisor: sup, Logger: quiet, Now: a.Now,
			})
		})
	}
	all.Wait()
	return trials, ctx.Err()
}

// spec says how the router would start the server.
func (a *app) spec(cfg *config.Config, s config.Server, limits proxy.Options) backend.Spec {
	env := cfg.Environ(s)
	return backend.Spec{
		Name: s.Name, Command: s.Command, Args: s.Args, Env: env.Vars, Dir: s.Dir, Protocol: s.Protocol, Hint: env.Hint(),
		StartTimeout: limits.StartTimeout, CallTimeout: limits.CallTimeout, MaxConcurrent: s.MaxConcurrent,
	}
}

func (t *trial) run(ctx context.Context, s backend.Spec, o backend.Options) {
	b := backend.Start(ctx, s, o)
	defer b.Close(context.WithoutCancel(ctx))
	t.Err = b.Ready(ctx)
	t.Status = b.Status()
	if t.Err != nil && t.Status.Err != nil {
		t.Err = t.Status.Err // the reason, where Ready only says that it is down
	}
	t.Tools = catalogue.ReadTools(s.Name, b.Tools())
}

// entry is the server as a catalogue shows it.
func (t *trial) entry() catalogue.Server {
	e := catalogue.Server{Name: t.Name, State: catalogue.State(t.Status.State), Stderr: t.Status.StderrTail, Flags: t.Status.Flags, Tools: t.Tools}
	if t.Err != nil {
		e.Err, e.Stderr = t.reason(), nil // the error holds its stderr
	}
	return e
}

// reason is the error without the server's name, for where that is said.
func (t *trial) reason() string {
	return strings.TrimPrefix(t.Err.Error(), fmt.Sprintf("server %q: ", t.Name))
}

// enabled leaves out what the configuration turns off.
func enabled(cfg *config.Config) (on []config.Server) {
	for _, s := range cfg.Servers {
		if !s.Disabled {
			on = append(on, s)
		}
	}
	return on
}

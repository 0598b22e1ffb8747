package cli

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"toolguardian/proxy"
	"toolguardian/proxy/backend"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/journal"
	"toolguardian/proxy/wire"
)

// costsMember of state.json is what definitions cost in the last run.
const costsMember = "costs"

// costs are tokens of definitions as a model is shown them, by the estimate of
// characters / 3.5.
type costs struct {
	Servers map[string]int `json:"servers"` // of every server that came up
	Router  int            `json:"router"`  // of the router's own tools
}

// total is what the servers' tools cost together.
func (c costs) total() (sum int) {
	for _, tokens := range c.Servers {
		sum += tokens
	}
	return sum
}

// priced watches which backends a router starts, to price their tools at its end.
type priced struct {
	mu      sync.Mutex
	started map[string]proxy.Backend // under mu
}

// watch has the router's backends go through p.
func (p *priced) watch(o *proxy.Options) {
	p.started = map[string]proxy.Backend{}
	o.Start = func(ctx context.Context, s backend.Spec, bo backend.Options) proxy.Backend {
		b := backend.Start(ctx, s, bo)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.started[s.Name] = b
		return b
	}
}

// keep leaves the costs for usage. Servers that did not come up cost nothing.
func (p *priced) keep(ctx context.Context, s *journal.State, r *proxy.Router) error {
	list, err := r.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	own, err := wire.Elements(list)
	if err != nil {
		return err
	}
	c := costs{Servers: map[string]int{}, Router: catalogue.Price(own)}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, b := range p.started {
		if raw := b.Tools(); len(raw) > 0 {
			c.Servers[name] = price(name, raw)
		}
	}
	if len(c.Servers) == 0 {
		return nil // a run without servers says nothing of what is avoided
	}
	if old, known := journal.Get[costs](s, costsMember); known && reflect.DeepEqual(old, c) {
		return nil
	}
	return journal.Update(s, costsMember, func(costs) costs { return c })
}

// price is the cost of what a catalogue shows of raw definitions.
func price(name string, raw []json.RawMessage) int {
	var good []json.RawMessage
	for t := range catalogue.ReadTools(name, raw).All() {
		good = append(good, t.Raw)
	}
	return catalogue.Price(good)
}

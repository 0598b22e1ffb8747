package cli

import (
	"context"
	"reflect"

	"toolguardian/proxy"
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

// keepCosts leaves the costs for usage. Servers that did not come up cost
// nothing.
func keepCosts(ctx context.Context, s *journal.State, r *proxy.Router) error {
	list, err := r.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	own, err := wire.Elements(list)
	if err != nil {
		return err
	}
	c := costs{Servers: r.Prices(), Router: catalogue.Price(own)}
	if len(c.Servers) == 0 {
		return nil // a run without servers says nothing of what is avoided
	}
	if old, known := journal.Get[costs](s, costsMember); known && reflect.DeepEqual(old, c) {
		return nil
	}
	return journal.Update(s, costsMember, func(costs) costs { return c })
}

package proxy

import (
	"context"
	"encoding/json"
	"fmt"

	"toolguardian/proxy/args"
	"toolguardian/proxy/catalogue"
)

// list is list_capabilities.
func (r *Router) list(ctx context.Context, raw json.RawMessage) answer {
	in, err := args.ParseList(raw)
	if err != nil {
		return explain(err)
	}
	r.await(ctx, in.Server, r.o.Wait)
	if in.Server == "" {
		text, next := r.catalogue().List()
		return answer{text: text, next: next}
	}
	return answered(r.catalogue().ListServer(in.Server))
}

// search is search_capabilities.
func (r *Router) search(ctx context.Context, raw json.RawMessage) answer {
	in, err := args.ParseSearch(raw)
	if err != nil {
		return explain(err)
	}
	r.await(ctx, in.Server, r.o.Wait)
	return answered(r.catalogue().Search(in.Query, in.Server, in.Limit))
}

func answered(text, next string, err error) answer {
	if err != nil {
		return explain(err)
	}
	return answer{text: text, next: next}
}

// describeTool is describe_tool. In full, the first block is the definition
// alone, byte for byte.
func (r *Router) describeTool(ctx context.Context, raw json.RawMessage) answer {
	in, err := args.ParseDescribe(raw)
	if err != nil {
		return explain(err)
	}
	r.await(ctx, in.Server, r.o.Wait)
	if t, ok := r.server(in.Server).lookup(in.Tool); ok && !r.visible(t) {
		return denial(r.o.Policy.Decide(nameOf(t)))
	}
	c := r.catalogue()
	t, err := c.FindTool(in.Server, in.Tool)
	if err != nil {
		return explain(err)
	}
	text, next := c.Describe(t)
	if in.Detail == "full" || in.Detail == "" && r.o.DescribeFull {
		return answer{text: string(t.Raw), next: fullNext(t), alone: true}
	}
	return answer{text: text, next: next}
}

func fullNext(t catalogue.Tool) string {
	return fmt.Sprintf("use call_tool with server %s, tool %s, and args as the inputSchema above asks.", t.Server, t.Name)
}

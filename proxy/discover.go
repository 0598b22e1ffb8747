package proxy

import (
	"context"
	"encoding/json"
	"fmt"

	"toolguardian/proxy/args"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/wire"
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
	a := answered(r.catalogue().Search(in.Query, in.Server, in.Limit))
	a.notices = r.stale(in.Server)
	return a
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
	a := answer{notices: r.stale(in.Server)}
	if a.text, a.next = c.Describe(t); in.Detail == "full" || in.Detail == "" && r.o.DescribeFull {
		a.text, a.next, a.alone = string(t.Raw), fullNext(t), true
	}
	return a
}

func fullNext(t catalogue.Tool) string {
	return fmt.Sprintf("use call_tool with server %s, tool %s, and args as the inputSchema above asks.", t.Server, t.Name)
}

// report is the tool of our own that only reports, besides those that look for
// tools; false where this router does not offer it.
func (r *Router) report(name string) (tool func(context.Context, json.RawMessage) answer, offered bool) {
	switch {
	case name == groupsTool:
		return r.groups, true
	case name == retrieveTool && r.retrieve != nil:
		return r.retrieve, true
	case name == skillsTool && len(r.skills.All()) > 0:
		return r.listSkills, true
	case name == skillTool && len(r.skills.All()) > 0:
		return r.readSkill, true
	}
	return nil, false
}

// groups is list_groups_with_costs.
func (r *Router) groups(ctx context.Context, _ json.RawMessage) answer {
	r.await(ctx, "", r.o.Wait)
	own, _ := wire.Elements(r.tools) // written by menu.list
	text, next := r.catalogue().ListGroups(r.file.groups, own)
	return answer{text: text, next: next}
}

func (r *Router) findSkills() {
	r.skills = catalogue.FindSkills(r.o.SkillFolders)
	for _, n := range r.skills.Notes() {
		r.o.Logger.Warn(n)
	}
}

// listSkills is list_skills.
func (r *Router) listSkills(context.Context, json.RawMessage) answer {
	text, next := r.skills.List(r.o.DescWords)
	return answer{text: text, next: next}
}

// readSkill is read_skill: the first block is the skill alone.
func (r *Router) readSkill(_ context.Context, raw json.RawMessage) answer {
	in, err := args.ParseSkill(raw)
	if err != nil {
		return explain(err)
	}
	a := answered(r.skills.Read(in.Name))
	a.alone = true
	return a
}

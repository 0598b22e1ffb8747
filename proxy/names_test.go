package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/wire"
)

// saysWho is a backend whose tools answer with the server's and their own name.
func saysWho(server string, tools ...string) *memory {
	var defs []string
	for _, name := range tools {
		defs = append(defs, fmt.Sprintf(`{"name":%s,"description":"Names itself"}`, appendText(nil, name)))
	}
	m := newMemory(nil, defs...)
	m.answer = func(_ context.Context, _ string, params json.RawMessage, _ backend.Observer) (backend.Reply, error) {
		tool, _ := wire.GetString(params, "name")
		return backend.Reply{Result: json.RawMessage(`{"content":[` + string(textBlock(server+" | "+tool)) + `]}`)}, nil
	}
	return m
}

// Names are data: whatever they hold, and however alike they look once put
// together, each tool is found, described and called under its own.
func TestNamesAreData(t *testing.T) {
	tools := map[string][]string{
		"router": {"list_capabilities", "call_tool"}, "a": {"b.c", "x"}, "a.b": {"c", "x"}, "other": {"toolGuardian"},
		"odd/ 名": {"...", "@", "a/b", "a:b", "_a", "a b (c)", "検索", "検 索", "A", "a", "\"q\"\\", "é", "e\u0301"},
	}
	backends := map[string]*memory{}
	for server, names := range tools {
		backends[server] = saysWho(server, names...)
	}
	o := memories(backends)
	o.Unguarded, o.LookLimit = true, -1
	c := connect(t, newRouter(t, o), latest)
	for server, names := range tools {
		listed := joined(t, c.tool(listTool, `{"server":`+string(appendText(nil, server))+`}`))
		for _, name := range names {
			address := fmt.Sprintf(`"server":%s,"tool":%s`, appendText(nil, server), appendText(nil, name))
			if got := texts(t, c.tool(callTool, `{`+address+`}`))[0]; got != server+" | "+name {
				t.Errorf("%s reached %q", address, got)
			}
			if !strings.Contains(listed, server+"."+name) {
				t.Errorf("%s is not listed:\n%s", address, listed)
			}
			full := texts(t, c.tool(describeTool, `{`+address+`,"detail":"full"}`))[0]
			if got, _ := wire.GetString([]byte(full), "name"); got != name {
				t.Errorf("%s is described as %s", address, full)
			}
			query := string(appendText(nil, name))
			if found := joined(t, c.tool(searchTool, `{"query":`+query+`,"limit":50}`)); !strings.Contains(found, server+"."+name) {
				t.Errorf("searching %s does not find %s:\n%s", query, address, found)
			}
		}
	}
	// Two that read alike are told apart in words.
	found := joined(t, c.tool(searchTool, `{"query":"names itself","limit":50}`))
	for _, want := range []string{"a.b.c: ", "a.b.c (server a.b, tool c): "} {
		if !strings.Contains(found, want) {
			t.Errorf("no line %q in\n%s", want, found)
		}
	}
}

// Schemas that others stumble over are listed, searched, priced and described,
// and the definition is byte for byte the backend's.
func TestSchemasAreShownAsTheyCame(t *testing.T) {
	definitions := map[string]string{
		"tree":    `{"name":"tree","outputSchema":{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}},"inputSchema":{"type":"object"}}`,
		"cycle":   `{"name":"cycle","inputSchema":{"type":"object","properties":{"n":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}}`,
		"sibling": `{"name":"sibling","inputSchema":{"type":"object","properties":{"x":{"type":"integer"},"y":{"$ref":"#/properties/x"}}}}`,
		"old":     `{ "name":"old", "inputSchema":{"definitions":{"d":{"type":"string"}},"properties":{"v":{"$ref":"#/definitions/d"}}} , "x-more":1.0}`,
		"deep":    `{"name":"deep","inputSchema":{"properties":{"d":` + strings.Repeat(`{"properties":{"d":`, 200) + `{}` + strings.Repeat(`}}`, 200) + `}}}`,
	}
	m := newMemory(nil)
	for _, d := range definitions {
		m.tools = append(m.tools, json.RawMessage(d))
	}
	c := connect(t, newRouter(t, memories(map[string]*memory{"s": m})), latest)
	listed := joined(t, c.tool(listTool, `{"server":"s"}`))
	for _, want := range []string{"s.tree\n    args: (no arguments)", "s.cycle\n    args: ?n:any", "s.sibling\n    args: ?x:integer, ?y:integer",
		"s.old\n    args: ?v:string", "s.deep\n    args: ?d:object"} {
		if !strings.Contains(listed, want) {
			t.Errorf("the list lacks %q:\n%s", want, listed)
		}
	}
	if priced := joined(t, c.tool(groupsTool, `{}`)); !strings.Contains(priced, "[s] 5 tools, ~") {
		t.Errorf("priced as %s", priced)
	}
	for name, want := range definitions {
		if got := texts(t, c.tool(describeTool, `{"server":"s","tool":"`+name+`","detail":"full"}`))[0]; got != want {
			t.Errorf("described as %s\nwant %s", got, want)
		}
	}
}

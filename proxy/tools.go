package proxy

import (
	"encoding/json"
	"strings"
)

// The tools a client sees.
const (
	listTool     = "list_capabilities"
	searchTool   = "search_capabilities"
	describeTool = "describe_tool"
	callTool     = "call_tool"
)

// definition is a router tool, its members in the order they are sent.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations annotations     `json:"annotations"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// annotations are all written, since each one's default differs.
type annotations struct {
	Title       string `json:"title"`
	ReadOnly    bool   `json:"readOnlyHint"`
	Destructive bool   `json:"destructiveHint"`
	Idempotent  bool   `json:"idempotentHint"`
	OpenWorld   bool   `json:"openWorldHint"`
}

// alwaysLoad asks clients that search tools by themselves to keep ours in
// sight: a router that has to be searched for is of no use.
const alwaysLoad = `{"anthropic/alwaysLoad":true}`

// reports are the annotations of a tool that only looks into memory.
func reports(title string) annotations {
	return annotations{Title: title, ReadOnly: true, Idempotent: true}
}

// definitions are the router's tools, in the order a model meets them.
func definitions(servers string) []definition {
	return []definition{
		{Name: listTool, Annotations: reports("List capabilities"),
			Description: "Start here: what you can do beyond your own tools. Without server, the tool names of every server; " +
				"with server, each of its tools with a summary and an args line. Then use call_tool. " + servers,
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"server":{"type":"string","description":"One server, by the name above."}}}`)},
		{Name: searchTool, Annotations: reports("Search capabilities"),
			Description: "Find tools by keyword when you know the job and not the server: the best matches of all servers, " +
				"each with its args line, ready for call_tool.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"query":{"type":"string","description":"Words for the job, e.g. read file."},` +
				`"server":{"type":"string","description":"Look in this server only."},` +
				`"limit":{"type":"integer","description":"At most this many matches (8)."}},"required":["query"]}`)},
		{Name: describeTool, Annotations: reports("Describe a tool"),
			Description: "The arguments of one tool, for when its args line was not enough. Then use call_tool.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"server":{"type":"string","description":"The server that has the tool."},` +
				`"tool":{"type":"string","description":"Its name, as listed."},` +
				`"detail":{"type":"string","enum":["compact","full"],"description":"full: the whole definition and schema."}},` +
				`"required":["server","tool"]}`)},
		{Name: callTool, Annotations: annotations{Title: "Call a tool", Destructive: true, OpenWorld: true},
			Description: "Run a server's tool and get its result: the step that does the work, with whatever effect that tool has. " +
				"Take the names from list_capabilities or search_capabilities.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"server":{"type":"string","description":"The part before the dot in a listing."},` +
				`"tool":{"type":"string","description":"The part after it."},` +
				`"args":{"type":"object","description":"What its args line asks for; leave out if nothing."}},` +
				`"required":["server","tool"]}`)},
	}
}

const (
	hintChars  = 60  // of one server's description
	hintBudget = 360 // of all descriptions together
)

// serverLine names servers for a description. It holds no state, so that it
// stays the same for a whole run.
func serverLine(names []string, describe func(name string) string) string {
	if len(names) == 0 {
		return "No servers are configured."
	}
	parts, left := make([]string, len(names)), hintBudget
	for i, name := range names {
		parts[i] = name
		hint := clip(describe(name), hintChars)
		if n := len([]rune(hint)); hint != "" && n <= left {
			parts[i], left = name+" ("+hint+")", left-n
		}
	}
	return "Servers: " + strings.Join(parts, ", ") + "."
}

// Hints are what the servers without a description seem to be for, by the
// tools they have now. The caller keeps them for the next run's Options.Hints.
func (r *Router) Hints() map[string]string {
	hints := map[string]string{}
	for _, s := range r.servers {
		if s.b == nil || s.Description != "" {
			continue
		}
		var names []string
		for t := range s.read().All() {
			if r.visible(t) {
				names = append(names, t.Name)
			}
		}
		if len(names) > 0 {
			hints[s.Name] = clip(strings.Join(names, ", "), hintChars)
		}
	}
	return hints
}

// clip is the first n characters of s on one line.
func clip(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= n {
		return string(r)
	}
	return strings.TrimSpace(string(r[:n-1])) + "…"
}

// toolList is the answer to tools/list.
func toolList(servers string) (json.RawMessage, error) {
	defs := definitions(servers)
	for i := range defs {
		defs[i].Meta = json.RawMessage(alwaysLoad)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(defs); err != nil {
		return nil, err
	}
	return json.RawMessage(strings.TrimSpace(b.String())), nil
}

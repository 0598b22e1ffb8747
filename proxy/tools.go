package proxy

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/wire"
)

// The tools a client sees.
const (
	listTool     = "list_capabilities"
	searchTool   = "search_capabilities"
	describeTool = "describe_tool"
	callTool     = "call_tool"
	groupsTool   = "list_groups_with_costs"
	retrieveTool = "retrieve_spill"
	skillsTool   = "list_skills"
	skillTool    = "read_skill"
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

// menu is what the router's own tools depend on. It holds no state of a
// server, so that they stay the same for a whole run.
type menu struct {
	servers []served
	skills  *catalogue.Skills
	spills  bool // a result may be shortened and read back
	terse   bool
	intent  bool // a call may say what it looks for in a long result
}

// menu is what this router offers.
func (r *Router) menu() menu {
	m := menu{skills: r.skills, spills: r.retrieve != nil, terse: r.o.Terse, intent: r.o.Intent}
	for _, s := range r.servers {
		if !r.o.Policy.DeniesServer(s.Name) {
			m.servers = append(m.servers, served{s.Name, s.Description, r.o.Hints[s.Name]})
		}
	}
	return m
}

func (m menu) names() (names []string) {
	for _, d := range m.definitions() {
		names = append(names, d.Name)
	}
	return names
}

// served is a server by its name and what it is for: by its owner's words or,
// where there are none, by the tools of the last run.
type served struct{ name, description, hint string }

// definitions are the router's tools, in the order a model meets them. Each
// parameter is explained once: by its own description, by its enum or, where
// it has neither, by the tool's description naming it. Every word is paid for
// with each request; TestCostOfTheToolList holds the limits.
func (m menu) definitions() []definition {
	if m.terse {
		return m.terseDefinitions()
	}
	defs := []definition{
		{Name: listTool, Annotations: reports("List capabilities"),
			Description: "Start here: what you can do beyond your own tools. Lists the tools of all servers by name, " +
				"or of one with their args lines, ready for call_tool. " + m.serverLine(),
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"server":{"type":"string","description":"Show this one"}}}`)},
		{Name: searchTool, Annotations: reports("Search capabilities"),
			Description: "Find what does a job across all servers: best matches first, each with its args line, ready for call_tool.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"query":{"type":"string","description":"A few words, like read file"},` +
				`"server":{"type":"string","description":"Look only here"},` +
				`"limit":{"type":"integer","description":"Most matches (8)"}},"required":["query"]}`)},
		{Name: describeTool, Annotations: reports("Describe a tool"),
			Description: "When the args line of a server's tool was not enough: what it requires, or its full schema. Then use call_tool.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"},` +
				`"detail":{"type":"string","enum":["compact","full"]}},"required":["server","tool"]}`)},
		{Name: callTool, Annotations: annotations{Title: "Call a tool", Destructive: true, OpenWorld: true},
			Description: "Do the work: run what a list or search showed, with whatever effect it has, and get the result.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"server":{"type":"string","description":"As listed, before the dot"},` +
				`"tool":{"type":"string","description":"As listed, after it"},` +
				`"args":{"type":"object","description":"As its args line says"}` +
				m.intentParameter(`,"description":"What you look for in a long result"`) + `},"required":["server","tool"]}`)},
		{Name: groupsTool, Annotations: reports("List groups with costs"),
			Description: "Only for questions about cost: the tokens that loading all tools would take, by group.",
			InputSchema: json.RawMessage(noParameters)},
	}
	if m.spills {
		defs = append(defs, definition{Name: retrieveTool, Annotations: reports("Retrieve a shortened result"),
			Description: "Read back the original of a shortened result when you need more of it.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"id":{"type":"string","description":"sp_..., from the result"},` +
				`"grep":{"type":"string","description":"Only lines matching this regex"},` +
				`"start_line":{"type":"integer","description":"First line (1)"},` +
				`"max_lines":{"type":"integer","description":"Most lines (400)"}},"required":["id"]}`)})
	}
	return append(defs, m.skillDefinitions("Guides written for tasks like yours. Read the one that fits with read_skill before you begin. Skills: ",
		"The full text of one guide.", `,"description":"As list_skills names it"`)...)
}

// intentParameter is there only when it is read.
func (m menu) intentParameter(description string) string {
	if !m.intent {
		return ""
	}
	return `,"intent":{"type":"string"` + description + `}`
}

func (m menu) intentWords() string {
	if !m.intent {
		return ""
	}
	return "; of a long result show what intent names"
}

const noParameters = `{"type":"object","properties":{}}`

// skillDefinitions are there only when there are skills.
func (m menu) skillDefinitions(list, read, name string) []definition {
	names := m.skills.Names(skillChars)
	if names == "" {
		return nil
	}
	return []definition{
		{Name: skillsTool, Annotations: reports("List skills"), Description: list + names + ".", InputSchema: json.RawMessage(noParameters)},
		{Name: skillTool, Annotations: reports("Read a skill"), Description: read,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"` + name + `}},"required":["name"]}`)},
	}
}

// SkillTokens is what the tools of skills cost a model on every request.
func SkillTokens(skills *catalogue.Skills) (int, error) {
	with, err := menu{skills: skills}.list()
	if err != nil {
		return 0, err
	}
	without, err := menu{}.list()
	if err != nil {
		return 0, err
	}
	return price(with) - price(without), nil
}

func price(list json.RawMessage) int {
	tools, _ := wire.Elements(list) // written by menu.list
	return catalogue.Price(tools)
}

// terseDefinitions are for small windows: a sentence each of at most
// terseChars, which names the parameters.
func (m menu) terseDefinitions() []definition {
	defs := []definition{
		{Name: listTool, Annotations: reports("List capabilities"),
			Description: m.terseList(),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"}}}`)},
		{Name: searchTool, Annotations: reports("Search capabilities"),
			Description: "Find up to limit tools by query, on any server, for call_tool.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"server":{"type":"string"},` +
				`"limit":{"type":"integer"}},"required":["query"]}`)},
		{Name: describeTool, Annotations: reports("Describe a tool"),
			Description: "Show a server's tool in full before call_tool.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"},` +
				`"detail":{"type":"string","enum":["compact","full"]}},"required":["server","tool"]}`)},
		{Name: callTool, Annotations: annotations{Title: "Call a tool", Destructive: true, OpenWorld: true},
			Description: "Do the work: run a server's tool with its args" + m.intentWords() + ".",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string"},"tool":{"type":"string"},` +
				`"args":{"type":"object"}` + m.intentParameter("") + `},"required":["server","tool"]}`)},
	}
	if m.spills {
		defs = append(defs, definition{Name: retrieveTool, Annotations: reports("Retrieve a shortened result"),
			Description: "Read back a shortened result by id: max_lines from start_line, or lines matching grep.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"grep":{"type":"string"},` +
				`"start_line":{"type":"integer"},"max_lines":{"type":"integer"}},"required":["id"]}`)})
	}
	return append(defs, m.skillDefinitions("List guides for tasks: ", "Read a guide by its name.", "")...)
}

const (
	hintChars  = 60  // of what one server is for
	hintBudget = 140 // of all that was guessed, shared evenly
	skillChars = 300 // of the names of skills
	terseChars = 160 // of a description when it is terse
)

// serverLine names the servers for a description.
func (m menu) serverLine() string {
	if len(m.servers) == 0 {
		return "No servers are configured."
	}
	parts, share := make([]string, len(m.servers)), min(hintBudget/len(m.servers), hintChars)
	for i, s := range m.servers {
		hint := clip(s.description, hintChars)
		if hint == "" {
			hint = catalogue.Fit(strings.Split(s.hint, ", "), share)
		}
		if parts[i] = s.name; hint != "" {
			parts[i] += " (" + hint + ")"
		}
	}
	return "Servers: " + strings.Join(parts, ", ") + "."
}

// terseList names as many servers as its length allows.
func (m menu) terseList() string {
	const begin = "Start here: list all tools or a server's"
	if len(m.servers) == 0 {
		return begin + "; none are configured."
	}
	text := begin + ": "
	for i, s := range m.servers {
		next := s.name
		if i > 0 {
			next = ", " + s.name
		}
		rest := len(m.servers) - i
		if len([]rune(text+next))+len(fmt.Sprintf(", +%d more.", rest)) > terseChars {
			return text + fmt.Sprintf(", +%d more.", rest)
		}
		text += next
	}
	return text + "."
}

// Hints are what the servers without a description seem to be for, by the
// tools they have now. The caller keeps them for the next run's Options.Hints.
func (r *Router) Hints() map[string]string {
	hints := map[string]string{}
	for _, s := range r.servers {
		if s.b == nil || s.Description != "" {
			continue
		}
		if hint := catalogue.Hint(s.Name, r.visibleTools(s), hintChars); hint != "" {
			hints[s.Name] = hint
		}
	}
	return hints
}

func (r *Router) visibleTools(s *server) iter.Seq[catalogue.Tool] {
	return func(yield func(catalogue.Tool) bool) {
		for t := range s.read().All() {
			if r.visible(t) && !yield(t) {
				return
			}
		}
	}
}

// clip is the first n characters of s on one line.
func clip(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) <= n {
		return string(r)
	}
	return strings.TrimSpace(string(r[:n-1])) + "…"
}

// list is the answer to tools/list.
func (m menu) list() (json.RawMessage, error) {
	defs := m.definitions()
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

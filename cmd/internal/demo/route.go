package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"toolguardian/proxy/wire"
)

// projects are the folders that the demo's six servers serve.
var projects = map[string]map[string]string{
	"invoices": {
		"2026-01.txt": "Invoice 1041, ACME, 1,200.00 EUR, paid\nInvoice 1042, Harbour Ltd, 310.50 EUR, overdue\n",
		"2026-02.txt": "Invoice 1043, ACME, 990.00 EUR, paid\nInvoice 1044, Mill & Sons, 75.00 EUR, overdue\n",
	},
	"contracts": {"acme.txt": "Term: 24 months. Notice: 3 months.\n"},
	"reports":   {"q1.txt": "Revenue 2,575.50 EUR, two invoices overdue.\n"},
	"minutes":   {"monday.txt": "Decided: remind every overdue customer once.\n"},
	"tickets":   {"17.txt": "Printer on floor 2 is out of paper.\n"},
	"drafts":    {"readme.txt": "Letters wait here until somebody sends them.\n"},
}

// order is how the servers are configured and counted.
var order = []string{"invoices", "contracts", "reports", "minutes", "tickets", "drafts"}

// turn is one thing the scripted model does.
type turn struct{ tool, args string }

var script = []turn{
	{"search_capabilities", `{"query":"search text in invoices"}`},
	{"call_tool", `{"server":"invoices","tool":"search_files","args":{"text":"overdue"}}`},
	{"call_tool", `{"server":"minutes","tool":"read_file","args":{"path":"monday.txt"}}`},
	{"call_tool", `{"server":"drafts","tool":"write_file","args":{"path":"reminder.txt","text":"Dear Harbour Ltd, invoice 1042 is overdue."}}`},
	{"call_tool", `{"server":"drafts","tool":"read_file","args":{"path":"../../agent/evidence/keys/head.key"}}`},
}

// route runs the scripted client against the router.
func (s *story) route(ctx context.Context) error {
	if err := s.layOutProjects(); err != nil {
		return err
	}
	s.shell([]string{"--config", s.path("mcp.json")})
	c, err := connect(s.command(ctx, "--config", s.path("mcp.json")))
	if err != nil {
		return err
	}
	err = s.converse(ctx, c)
	return errors.Join(err, c.close())
}

func (s *story) converse(ctx context.Context, c *client) error {
	router, err := c.toolList()
	if err != nil {
		return err
	}
	for _, t := range script {
		s.line("  model  → %s %s", t.tool, t.args)
		texts, err := c.call(t.tool, t.args)
		if err != nil {
			return err
		}
		s.answer(texts)
	}
	return s.tokens(ctx, router)
}

// answer shows what the model got, shortened for the reader.
func (s *story) answer(texts []string) {
	const most = 4
	lines := strings.Split(strings.TrimSpace(strings.Join(texts, "\n")), "\n")
	mark := "router ←"
	for i, l := range lines {
		if i == most && len(lines) > most+1 {
			s.line("           … %d more lines", len(lines)-most)
			return
		}
		s.line("  %s %s", mark, clip(l, 100))
		mark = "        "
	}
}

// tokens compares what the model is shown with what six servers would show it.
func (s *story) tokens(ctx context.Context, router json.RawMessage) error {
	direct := 0
	for _, name := range order {
		tools, err := listDirect(ctx, s, s.path("files", name))
		if err != nil {
			return err
		}
		direct += estimate(tools)
	}
	with := estimate(router)
	s.line("\n  tokens of tools/list on every request (characters / 3.5): %d without the router, %d with it (%d %% less)",
		direct, with, (direct-with)*100/direct)
	return nil
}

// estimate is the reference's measure of a tools array: its characters, as
// compact JSON and without `_meta`, divided by 3.5 and rounded up.
func estimate(tools json.RawMessage) int {
	items, err := wire.Elements(tools)
	if err != nil {
		return 0
	}
	chars := len("[]") + max(0, len(items)-1)
	for _, item := range items {
		bare, err := wire.Remove(item, func(name string) bool { return name == "_meta" })
		if err != nil {
			bare = item
		}
		var b bytes.Buffer
		if json.Compact(&b, bare) == nil {
			chars += utf8.RuneCount(b.Bytes())
		}
	}
	return (chars*2 + 6) / 7
}

func (s *story) layOutProjects() error {
	type entry struct {
		Command     string   `json:"command"`
		Args        []string `json:"args"`
		Description string   `json:"description"`
	}
	servers := map[string]entry{}
	for name, files := range projects {
		dir := s.path("files", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				return err
			}
		}
		servers[name] = entry{s.Exe, []string{"files", dir}, "the " + name + " folder"}
	}
	b, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.path("mcp.json"), b, 0o600)
}

// clip cuts a line for the reader.
func clip(l string, n int) string {
	r := []rune(l)
	if len(r) <= n {
		return l
	}
	return fmt.Sprintf("%s…", string(r[:n-1]))
}

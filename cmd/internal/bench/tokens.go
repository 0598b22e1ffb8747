package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
	"unicode/utf8"

	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/wire"
)

// TokensOptions of Tokens. Dir may be empty.
type TokensOptions struct {
	Exe      string // tool-guardian itself: the router, and with `bench replay` each server
	Catalogs string // folder with recorded tools/list answers
	Dir      string // where the temporary folder is made; empty: the system's
}

// TokensReport tells what tool definitions cost on every request. Tokens are
// characters / 3.5, rounded up.
type TokensReport struct {
	Servers []ServerTokens `json:"servers"`
	Total   ServerTokens   `json:"total"`
	Router  []RouterTokens `json:"router"`
	Aims    []Aim          `json:"aims"`
}

// ServerTokens are the costs of a server whose tools a client loads directly.
type ServerTokens struct {
	Name      string `json:"name"`
	Tools     int    `json:"tools"`
	Functions int    `json:"functions"` // by the reference's formula: what a model is shown
	Whole     int    `json:"whole"`     // the whole tools array as sent
}

// RouterTokens are the costs of the router's own tools.
type RouterTokens struct {
	Name      string `json:"name"`
	Tools     int    `json:"tools"`
	Functions int    `json:"functions"` // F
	Sent      int    `json:"sent"`      // W: the array as sent, without _meta
}

// Tokens prices recorded catalogues, and what the router shows in their place:
// a real router over stdio, in front of servers that replay them.
func Tokens(ctx context.Context, o TokensOptions) (r TokensReport, err error) {
	all, err := readCatalogs(o.Catalogs)
	if err != nil {
		return r, err
	}
	r.Total.Name = "all"
	for _, c := range all {
		list, err := c.compact()
		if err != nil {
			return r, fmt.Errorf("%s: %w", c.file, err)
		}
		s := ServerTokens{c.name, len(c.list), catalogue.Price(c.list), catalogue.Tokens(utf8.RuneCount(list))}
		r.Servers = append(r.Servers, s)
		r.Total.Tools += s.Tools
		r.Total.Functions += s.Functions
		r.Total.Whole += s.Whole
	}
	dir, err := os.MkdirTemp(o.Dir, "tool-guardian-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	if r.Router, err = routerTokens(ctx, o.Exe, dir, all); err != nil {
		return r, err
	}
	r.aims()
	return r, nil
}

func routerTokens(ctx context.Context, exe, dir string, all []recorded) (out []RouterTokens, err error) {
	many := fmt.Sprintf("servers: %d", len(all))
	for _, c := range []struct {
		name, home string
		servers    []recorded
		settings   []string
	}{
		{"no server", "none", nil, nil},
		{many, "all", all, nil},
		{many + ", second start", "all", all, nil}, // with what they said of themselves
		{"terse, no server", "none", nil, []string{"TOOL_GUARDIAN_TERSE=1"}},
		{"terse, " + many, "all", all, []string{"TOOL_GUARDIAN_TERSE=1"}},
	} {
		home := filepath.Join(dir, c.home)
		if err := writeReplays(home, exe, c.servers); err != nil {
			return nil, err
		}
		list, err := listedTools(ctx, exe, home, c.settings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		t, err := priceOwn(list)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		t.Name = c.name
		out = append(out, t)
	}
	return out, nil
}

// writeReplays makes a home folder whose mcp.json has a server for each
// catalogue.
func writeReplays(home, exe string, all []recorded) error {
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	servers := map[string]server{}
	for _, c := range all {
		file, err := filepath.Abs(c.file)
		if err != nil {
			return err
		}
		servers[c.name] = server{exe, []string{"bench", "replay", file}}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "mcp.json"), config, 0o600)
}

// listedTools runs a router once and returns its tools array, after its
// servers have answered.
func listedTools(ctx context.Context, exe, home string, settings []string) (json.RawMessage, error) {
	cmd := exec.CommandContext(ctx, exe, "--config", filepath.Join(home, "mcp.json"))
	cmd.Dir = home
	cmd.Env = environ(os.Environ(), append(settings, "TOOL_GUARDIAN_HOME="+home, "TOOL_GUARDIAN_EVIDENCE=off")...)
	cmd.WaitDelay = 5 * time.Second
	said := &tail{}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	list, err := converse(in, out)
	in.Close()
	_, drained := io.Copy(io.Discard, out)
	if err = errors.Join(err, drained, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("%w; its last words: %s", err, said)
	}
	return list, nil
}

// converse is a session: the tools array, once list_capabilities has waited
// for every server.
func converse(in io.Writer, out io.Reader) (tools json.RawMessage, err error) {
	w, r := wire.NewWriter(in), wire.NewReader(out, 0)
	ask := func(id int, method, params string) (json.RawMessage, error) {
		if err := w.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)); err != nil {
			return nil, err
		}
		for {
			m, err := r.Next()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", method, err)
			}
			if m.Kind() == wire.Response && m.Result != nil {
				return m.Result, nil
			} else if m.Kind() == wire.Response {
				return nil, fmt.Errorf("%s was refused: %s", method, m.Err)
			}
		}
	}
	const hello = `{"protocolVersion":"` + echoRevision + `","capabilities":{},"clientInfo":{"name":"tool-guardian-bench","version":"1"}}`
	if _, err := ask(1, "initialize", hello); err != nil {
		return nil, err
	}
	if err := w.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		return nil, err
	}
	result, err := ask(2, "tools/list", `{}`)
	if err != nil {
		return nil, err
	}
	tools = append(tools, wire.Get(result, "tools")...) // the reader's buffer is used again
	_, err = ask(3, "tools/call", `{"name":"list_capabilities","arguments":{}}`)
	return tools, err
}

// priceOwn prices the router's own tools.
func priceOwn(list json.RawMessage) (t RouterTokens, err error) {
	tools, err := wire.Elements(list)
	if err != nil {
		return t, err
	}
	t = RouterTokens{Tools: len(tools), Functions: catalogue.Price(tools)}
	chars := len("[]") + max(len(tools)-1, 0)
	for _, d := range tools {
		bare, err := wire.Remove(d, func(name string) bool { return name == "_meta" })
		if err != nil {
			return t, err
		}
		chars += utf8.RuneCount(bare)
	}
	t.Sent = catalogue.Tokens(chars)
	return t, nil
}

// aims are those of the router's limits: as functions, and as sent.
func (r *TokensReport) aims() {
	for i, t := range r.Router {
		functions, sent := 750.0, 1000.0
		if i >= 3 {
			functions, sent = 450, 600
		}
		r.Aims = append(r.Aims, atMost("functions, "+t.Name, float64(t.Functions), functions, "tokens"),
			atMost("as sent, "+t.Name, float64(t.Sent), sent, "tokens"))
	}
}

// WriteText renders the report for people.
func (r TokensReport) WriteText(w io.Writer) error {
	p := newPage(w, thisMachine(), "tokens of tool definitions on every request (characters / 3.5)")
	p.line("server\ttools\tas functions\twhole tools/list")
	for _, s := range append(r.Servers, r.Total) {
		p.line("%s\t%d\t%d\t%d", s.Name, s.Tools, s.Functions, s.Whole)
	}
	p.line("\nthe router in their place\ttools\tas functions\tas sent, without _meta")
	for _, t := range r.Router {
		p.line("%s\t%d\t%d\t%d", t.Name, t.Tools, t.Functions, t.Sent)
	}
	p.line("")
	if len(r.Router) > 2 && r.Total.Functions > 0 {
		own := r.Router[2].Functions
		p.line("every request: %d tokens of tool schemas without the router, %d with it (%.1f %% less)", r.Total.Functions, own,
			100*(1-ratio(float64(own), float64(r.Total.Functions))))
	}
	return p.aims(r.Aims)
}

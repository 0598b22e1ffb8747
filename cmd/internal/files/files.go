package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"

	"toolguardian/proxy/front"
	"toolguardian/proxy/wire"
)

//go:embed tools.json
var tools []byte

// maxHits bounds what search_files returns.
const maxHits = 100

// Serve speaks MCP over in and out for the files below dir until in ends.
func Serve(ctx context.Context, dir, version string, in io.Reader, out io.Writer) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the folder to serve: %w", err)
	}
	defer root.Close()
	s, err := front.New(front.Options{
		Handler: &handler{root},
		Info:    front.Info{Name: "tool-guardian-files", Title: "Files in one folder", Version: version},
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return s.ServeStdio(ctx, in, out)
}

type handler struct{ root *os.Root }

func (h *handler) OpenSession(context.Context, *front.Session) error             { return nil }
func (h *handler) CloseSession(context.Context, *front.Session, front.End) error { return nil }
func (h *handler) SetLogLevel(context.Context, *front.Session, string) error     { return nil }

func (h *handler) ListTools(context.Context, *front.Session) (json.RawMessage, error) {
	return bytes.TrimSpace(tools), nil
}

// CallTool runs one tool. A failure of the file system is a result with
// isError, as MCP asks for errors that a model should read.
func (h *handler) CallTool(ctx context.Context, _ *front.Session, c front.Call) (json.RawMessage, error) {
	run, ok := map[string]func(context.Context, arguments) (string, error){
		"list_files": h.list, "read_file": h.read, "write_file": h.write, "search_files": h.search,
	}[c.Name]
	if !ok {
		return nil, &wire.Error{Code: -32602, Message: "unknown tool: " + c.Name}
	}
	var args arguments
	if len(c.Arguments) > 0 {
		if err := json.Unmarshal(c.Arguments, &args); err != nil {
			return nil, &wire.Error{Code: -32602, Message: "arguments: " + err.Error()}
		}
	}
	text, err := run(ctx, args)
	if err != nil {
		text = err.Error()
	}
	return json.Marshal(result{Content: []block{{"text", text}}, IsError: err != nil})
}

type arguments struct{ Path, Text, Under string }

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type result struct {
	Content []block `json:"content"`
	IsError bool    `json:"isError,omitempty"`
}

func (h *handler) list(ctx context.Context, a arguments) (string, error) {
	var b strings.Builder
	err := h.walk(ctx, cmp.Or(a.Under, "."), func(name string, d fs.DirEntry) error {
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s\t%d bytes\n", name, info.Size())
		return nil
	})
	return b.String(), err
}

func (h *handler) read(_ context.Context, a arguments) (string, error) {
	b, err := h.root.ReadFile(a.Path)
	return string(b), err
}

func (h *handler) write(_ context.Context, a arguments) (string, error) {
	if dir := path.Dir(a.Path); dir != "." {
		if err := h.root.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
	}
	if err := h.root.WriteFile(a.Path, []byte(a.Text), 0o600); err != nil {
		return "", err
	}
	return fmt.Sprintf("wrote %d bytes to %s", len(a.Text), a.Path), nil
}

func (h *handler) search(ctx context.Context, a arguments) (string, error) {
	var b strings.Builder
	hits := 0
	err := h.walk(ctx, ".", func(name string, _ fs.DirEntry) error {
		data, err := h.root.ReadFile(name)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, len(data)+1)
		for n := 1; lines.Scan(); n++ {
			if !strings.Contains(lines.Text(), a.Text) {
				continue
			}
			if hits++; hits > maxHits {
				fmt.Fprintf(&b, "more than %d hits; search for something rarer\n", maxHits)
				return fs.SkipAll
			}
			fmt.Fprintf(&b, "%s:%d: %s\n", name, n, lines.Text())
		}
		return lines.Err()
	})
	return b.String(), err
}

// walk visits the regular files below a folder in name order.
func (h *handler) walk(ctx context.Context, under string, visit func(string, fs.DirEntry) error) error {
	return fs.WalkDir(h.root.FS(), under, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !d.Type().IsRegular():
			return nil
		}
		return visit(name, d)
	})
}

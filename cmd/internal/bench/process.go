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
	"strings"
	"sync"
	"time"
)

// side is one way to reach the echo server: a process and a client of it.
type side struct {
	name string
	cmd  *exec.Cmd
	in   io.Closer
	err  *tail
	*client
}

// directSide is the echo server alone.
func directSide(ctx context.Context, exe string) (*side, error) {
	return startSide(ctx, "direct", exec.CommandContext(ctx, exe, "bench", "echo"), directShape())
}

// relaySide is the echo server behind a process that only copies.
func relaySide(ctx context.Context, exe string) (*side, error) {
	return startSide(ctx, "relay", exec.CommandContext(ctx, exe, "bench", "relay"), directShape())
}

// routedSide is a router in front of it, in the home folder below dir.
func routedSide(ctx context.Context, exe, dir, evidence string) (*side, error) {
	home := filepath.Join(dir, "home-"+evidence)
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	config, err := json.Marshal(map[string]any{
		"mcpServers": map[string]server{echoServer: {Command: exe, Args: []string{"bench", "echo"}}},
		// What is shortened is not passed on: the figures are of passing on.
		"toolGuardian": map[string]any{"ladder": map[string]any{"exempt_tools": []string{echoTool}}},
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(home, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "--config", file)
	cmd.Dir = home
	cmd.Env = environ(os.Environ(), "TOOL_GUARDIAN_HOME="+home, "TOOL_GUARDIAN_EVIDENCE="+evidence)
	return startSide(ctx, "evidence "+evidence, cmd, routedShape())
}

// environ is env without settings of ours, so that a figure is of the
// defaults, and with some more.
func environ(env []string, more ...string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, "TOOL_GUARDIAN_") && !strings.HasPrefix(e, "TG_") {
			out = append(out, e)
		}
	}
	return append(out, more...)
}

// startSide starts the process and opens the session.
func startSide(ctx context.Context, name string, cmd *exec.Cmd, call shape) (*side, error) {
	s := &side{name: name, cmd: cmd, err: &tail{}}
	cmd.Stderr = s.err
	cmd.WaitDelay = 5 * time.Second
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
	s.in, s.client = in, newClient(in, out, call)
	if err := s.hello(); err != nil {
		return nil, errors.Join(s.explain(err), s.close(), context.Cause(ctx))
	}
	return s, nil
}

// explain adds what the process said on stderr.
func (s *side) explain(err error) error {
	if said := s.err.String(); said != "" {
		return fmt.Errorf("%s: %w; its last words: %s", s.name, err, said)
	}
	return fmt.Errorf("%s: %w", s.name, err)
}

// close ends the session by closing its input and waits for the process.
func (s *side) close() error {
	s.in.Close()
	if _, err := io.Copy(io.Discard, s.out); err != nil {
		return err
	}
	if err := s.cmd.Wait(); err != nil {
		return s.explain(err)
	}
	return nil
}

// tail keeps the last bytes of a stream.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(len(t.b)-tailBytes, 0):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}

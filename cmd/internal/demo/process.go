package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a child that runs until it is told to stop.
type process struct {
	cmd  *exec.Cmd
	errs *tail
}

// stop ends the child the way an operator would. A nil process is stopped.
func (p *process) stop() error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return nil // it has ended by itself
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, p.errs)
	}
	return nil
}

// command prepares one run of our binary below the story's folder.
func (s *story) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, s.Exe, args...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "TOOL_GUARDIAN_HOME="+s.path("agent"), "TOOL_GUARDIAN_CONFIG=", "TOOL_GUARDIAN_POLICY=",
		"TOOL_GUARDIAN_ENV=", "TOOL_GUARDIAN_EVIDENCE=on", "TOOL_GUARDIAN_STATE="+s.path("agent", "state.json"))
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	return c
}

// background starts a child.
func (s *story) background(ctx context.Context, args ...string) (*process, error) {
	s.shell(args)
	p := &process{s.command(ctx, args...), &tail{}}
	p.cmd.Stderr = p.errs
	return p, p.cmd.Start()
}

// run shows a command and what it prints, and gives its stdout and exit code.
func (s *story) run(ctx context.Context, args ...string) (string, int, error) {
	s.shell(args)
	out, code, err := s.quiet(ctx, args...)
	s.indent(out)
	return out, code, err
}

// quiet runs a command without showing it. An exit code is no error.
func (s *story) quiet(ctx context.Context, args ...string) (string, int, error) {
	c := s.command(ctx, args...)
	var out bytes.Buffer
	errs := &tail{}
	c.Stdout, c.Stderr = &out, errs
	err := c.Run()
	if exit := c.ProcessState; exit != nil && exit.Exited() {
		if code := exit.ExitCode(); code != 0 && out.Len() == 0 {
			return "", code, fmt.Errorf("%s: exit %d: %s", strings.Join(args, " "), code, errs)
		}
		return out.String(), exit.ExitCode(), nil
	}
	return out.String(), -1, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, errs)
}

// shell prints a command as a user would type it, with paths inside the
// story's folder made relative.
func (s *story) shell(args []string) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = strings.ReplaceAll(a, s.dir+string(os.PathSeparator), "")
		if strings.ContainsAny(words[i], " {}\"'") {
			words[i] = "'" + words[i] + "'"
		}
		if strings.HasPrefix(words[i], "tg1.") {
			words[i] = words[i][:12] + "…"
		}
	}
	command := "$ tool-guardian " + strings.Join(words, " ")
	const most = 120
	if len(command) > most {
		command = strings.ReplaceAll(command, " --", " \\\n    --")
	}
	s.line("%s", command)
}

func (s *story) indent(text string) {
	for line := range strings.Lines(strings.ReplaceAll(text, s.dir+string(os.PathSeparator), "")) {
		s.line("  %s", strings.TrimRight(line, "\n"))
	}
}

// tail keeps the last bytes written to it.
type tail struct {
	mu sync.Mutex
	b  []byte // under mu
}

const tailBytes = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if cut := len(t.b) - tailBytes; cut > 0 {
		t.b = t.b[cut:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}

// await polls a condition that another process brings about.
func await(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}

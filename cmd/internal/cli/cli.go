package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"toolguardian/proxy/backend"
)

// Code is an exit code. The numbers are part of the command line's contract.
type Code int

const (
	OK         Code = 0 // done, or a verdict of PASS
	Failed     Code = 1 // failed, or a verdict of FAIL
	Incomplete Code = 2 // a verdict of INCOMPLETE or UNPINNED
	Usage      Code = 3 // the words of the call, or a named file, are wrong
)

// exitError carries an exit code, and whether anything is still to be said.
type exitError struct {
	code Code
	err  error // nil: the command has already printed its verdict
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usagef is an error of the caller's words; it exits with [Usage].
func usagef(format string, args ...any) error {
	return &exitError{Usage, fmt.Errorf(format, args...)}
}

// verdict ends a command whose output already says everything.
func verdict(c Code) error {
	if c == OK {
		return nil
	}
	return &exitError{code: c}
}

// Streams are the process's three streams and its environment, so that a
// test can run a command without a process.
type Streams struct {
	Name     string // the program's, as it was called
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Environ  func() []string
	Now      func() time.Time
}

// System is the real process.
func System() Streams {
	return Streams{Name: os.Args[0], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Environ: os.Environ, Now: time.Now}
}

// app is what every command shares.
type app struct {
	Streams
	json bool // --json
}

// terminal tells whether a stream is a terminal that a person looks at.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if a.Getenv("TOOL_GUARDIAN_DEBUG") == "1" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}

// say writes one line for the person to stderr.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.Err, format+"\n", args...) }

// print writes data to stdout.
func (a *app) print(format string, args ...any) { fmt.Fprintf(a.Out, format, args...) }

// Main runs one command and returns its exit code.
// SIGINT and SIGTERM cancel the command's context; it then finishes what it promised.
func Main(args []string, s Streams) int {
	if backend.SupervisorMain() {
		return 0
	}
	if program(s.Name) == setupName {
		args = append([]string{"setup"}, args...)
	}
	in, restore := pollable(s.In)
	defer restore()
	s.In = in
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return int(run(ctx, args, s))
}

// program is a program's name without folder and Windows ending.
func program(path string) string {
	return strings.TrimSuffix(path[strings.LastIndexAny(path, `/\`)+1:], ".exe")
}

func run(ctx context.Context, args []string, s Streams) Code {
	a := &app{Streams: s}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	err := root.ExecuteContext(ctx)
	var ee *exitError
	switch {
	case err == nil:
		return OK
	case errors.As(err, &ee):
		if ee.err != nil {
			a.fail(ee.err)
		}
		return ee.code
	case isUsage(err):
		a.fail(err)
		a.say("tool-guardian: --help lists the commands and their words")
		return Usage
	default:
		a.fail(err)
		return Failed
	}
}

func (a *app) fail(err error) { a.say("tool-guardian: %v", err) }

// isUsage recognises the errors that cobra makes of unknown commands and flags:
// it has no sentinels for them, and its own commands set none of these prefixes.
func isUsage(err error) bool {
	for _, p := range []string{"unknown command", "unknown flag", "unknown shorthand", "flag needs an argument",
		"invalid argument", "accepts ", "requires ", "required flag", "if any flags in the group", "at least one of the flags in the group"} {
		if strings.HasPrefix(err.Error(), p) {
			return true
		}
	}
	return false
}

// group makes a command that only holds others; called alone it shows its help.
func group(use, short string, sub ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return c.Help()
	}}
	c.AddCommand(sub...)
	return c
}

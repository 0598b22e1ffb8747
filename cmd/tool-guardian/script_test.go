//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/rogpeppe/go-internal/testscript"

	"toolguardian/cmd/internal/cli"
)

// deadline bounds every wait for another process. It is never waited out.
const deadline = 20 * time.Second

// TestMain lets the scripts run this test binary as tool-guardian itself.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tool-guardian":       func() { os.Exit(cli.Main(os.Args[1:], cli.System())) },
		"tool-guardian-setup": func() { os.Exit(cli.Main(os.Args[1:], cli.System())) },
	})
}

func TestScripts(t *testing.T) {
	hostile := filepath.Join(t.TempDir(), "hostile")
	if out, err := exec.Command("go", "build", "-o", hostile, "toolguardian/testdata/hostile").CombinedOutput(); err != nil {
		t.Fatalf("build the hostile server: %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(hostile))
			e.Setenv("GORACE", os.Getenv("GORACE")) // how long a process of a -race build lingers
			return setup(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await":    await,
			"until":    until,
			"capture":  capture,
			"code":     code,
			"ended":    ended,
			"hold":     hold,
			"release":  release,
			"relay":    relay,
			"get":      get,
			"witness":  startWitness,
			"mcp":      mcp,
			"replace":  replace,
			"append":   appendBytes,
			"cut":      cut,
			"lines":    keepLines,
			"tree":     copyTree,
			"json":     checkJSON,
			"protocol": protocolOnly,
			"nowhere":  nowhere,
		},
	})
}

// world is what one script has running.
type world struct {
	clients map[string]*client
	held    map[string]*flock.Flock
}

type worldKey struct{}

// setup gives each script a home of its own below its work folder.
func setup(e *testscript.Env) error {
	w := &world{clients: map[string]*client{}, held: map[string]*flock.Flock{}}
	e.Values[worldKey{}] = w
	e.Defer(func() {
		for _, c := range w.clients {
			c.kill()
		}
	})
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("TOOL_GUARDIAN_HOME", filepath.Join(e.WorkDir, "agent"))
	e.Setenv("GOCOVERDIR", os.Getenv("GOCOVERDIR"))
	return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o700)
}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

// await FILE [PATTERN] waits until the file is there and, with a pattern,
// until a part of it matches.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: await FILE [PATTERN]")
	}
	pattern := regexp.MustCompile(strings.Join(args[1:], ""))
	var last []byte
	if !poll(func() bool {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		last = b
		return err == nil && pattern.Match(b)
	}) {
		ts.Fatalf("%s: no %q within %s; it holds\n%s", args[0], pattern, deadline, last)
	}
}

// until PATTERN WORDS… runs tool-guardian again and again until a line of its
// stdout matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN WORDS…")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	if !poll(func() bool {
		ts.Exec("tool-guardian", args[1:]...)
		return pattern.MatchString(ts.ReadFile("stdout"))
	}) {
		ts.Fatalf("tool-guardian %s printed no %q within %s", strings.Join(args[1:], " "), pattern, deadline)
	}
}

// poll asks until the answer is yes; no after the deadline.
func poll(done func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); ; <-tick.C {
		if done() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// capture NAME PATTERN [FILE] sets a variable to the first group of the
// pattern in the file, by default the last command's stdout.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: capture NAME PATTERN [FILE]")
	}
	file := append(args, "stdout")[2]
	m := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile(file))
	if len(m) < 2 {
		ts.Fatalf("%s has no %q with a group", file, args[1])
	}
	ts.Setenv(args[0], m[1])
}

// code N [WORDS…] runs tool-guardian and demands this exit code.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: code N [WORDS…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitCode(ts.Exec("tool-guardian", args[1:]...)); got != want {
		ts.Fatalf("tool-guardian %s: exit %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// witness makes and starts a witness in $WORK/witness, enrols the script's
// chain there by token, and sets URL, LOG, COSIGNER, CHAIN, ORIGIN and PINS:
// the story of story.txtar, for the scripts that begin after it.
func startWitness(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: witness")
	}
	run := func(words ...string) { ts.Check(ts.Exec("tool-guardian", words...)) }
	run("witness", "init", "--data", "witness", "--origin", "witness.test.invalid/log")
	capture(ts, false, []string{"LOG", `^log +(\S+)`})
	capture(ts, false, []string{"COSIGNER", `^cosigner +(\S+)`})
	background(ts, "witness", "serve", "--data", "witness", "--head-file", "head", "--listen", "127.0.0.1:0",
		"--addr-file", "url", "--stamp-every", "200ms")
	await(ts, false, []string{"url"})
	capture(ts, false, []string{"URL", `(\S+)`, "url"})
	run("witness", "token", "--data", "witness")
	run("anchor", "enroll", "--witness", ts.Getenv("URL"), "--token", strings.TrimSpace(ts.ReadFile("stdout")))
	capture(ts, false, []string{"CHAIN", `^chain +(\S+)`})
	capture(ts, false, []string{"ORIGIN", `^chain +([^+]+)`})
}

// background runs tool-guardian until the script ends.
func background(ts *testscript.TestScript, words ...string) {
	log, err := os.Create(ts.MkAbs("witness.err"))
	ts.Check(err)
	cmd := command(ts, nil, words)
	cmd.Stderr = log
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			ts.Logf("%s: %v", strings.Join(words, " "), err)
		}
		log.Close()
	})
}

// command prepares a run of tool-guardian in the script's folder and environment.
func command(ts *testscript.TestScript, env, words []string) *exec.Cmd {
	exe, err := exec.LookPath("tool-guardian")
	ts.Check(err)
	cmd := exec.Command(exe, words...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "TOOL_GUARDIAN_HOME", "TMPDIR", "GOCOVERDIR"} {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s", name, ts.Getenv(name)))
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

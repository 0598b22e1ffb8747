//go:build unix

package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/wire"
)

// hostile is the test server's binary, built once.
var hostile string

// routerEnv makes this test binary a router with one backend, to be killed.
const routerEnv = "BACKEND_TEST_ROUTER"

func TestMain(m *testing.M) {
	if backend.SupervisorMain() {
		return
	}
	if spec := os.Getenv(routerEnv); spec != "" {
		os.Exit(routerMain(spec))
	}
	if os.Getenv(sdkEnv) != "" {
		os.Exit(sdkMain())
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	hostile = filepath.Join(dir, "hostile")
	build := exec.Command("go", "build", "-o", hostile, "../../testdata/hostile")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the test server: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// routerMain runs a backend until it is killed. It prints a line when it is up.
func routerMain(raw string) int {
	var spec backend.Spec
	if err := json.Unmarshal([]byte(raw), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	sup := backend.NewSupervisor("", nil)
	b := backend.Start(context.Background(), spec, backend.Options{Supervisor: sup})
	if err := b.Ready(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("up", b.Status().PID)
	<-time.After(time.Minute) // the parent ends this process long before
	return 1
}

// script is a spec that runs the hostile server with a script.
func script(text string, args ...string) backend.Spec {
	return backend.Spec{Name: "hostile", Command: hostile, Args: append([]string{"-e", text}, args...)}
}

// start runs a backend that ends with the test.
func start(t testing.TB, spec backend.Spec) *backend.Backend {
	t.Helper()
	return startWith(t, spec, backend.Options{})
}

func startWith(t testing.TB, spec backend.Spec, o backend.Options) *backend.Backend {
	t.Helper()
	sup := backend.NewSupervisor("", slog.New(slog.DiscardHandler))
	o.Supervisor = sup
	o.Client = backend.ClientInfo{Name: "tool-guardian", Version: "test"}
	b := backend.Start(context.Background(), spec, o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		b.Close(ctx)
		if ctx.Err() != nil {
			t.Error("Close did not end in ten seconds")
		}
		sup.Close()
	})
	return b
}

// up starts a backend and waits until it is UP.
func up(t testing.TB, spec backend.Spec) *backend.Backend {
	t.Helper()
	b := start(t, spec)
	ready(t, b)
	return b
}

func ready(t testing.TB, b *backend.Backend) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.Ready(ctx); err != nil {
		t.Fatalf("not ready: %v", err)
	}
}

func callParams(tool, args string) json.RawMessage {
	return json.RawMessage(`{"name":` + strconv.Quote(tool) + `,"arguments":` + args + `}`)
}

func call(b *backend.Backend, tool, args string) (backend.Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return b.Request(ctx, "tools/call", callParams(tool, args), backend.Observer{})
}

func mustCall(t testing.TB, b *backend.Backend, tool, args string) backend.Reply {
	t.Helper()
	r, err := call(b, tool, args)
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	return r
}

// said is the text of a result's first block.
func said(t testing.TB, r backend.Reply) string {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("error reply: %v", r.Err)
	}
	blocks, err := wire.Elements(wire.Get(r.Result, "content"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("no content in %.200s", r.Result)
	}
	text, _ := wire.GetString(blocks[0], "text")
	return text
}

// eventually polls a condition that another process or goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// callError asserts the reason and whether anything was sent.
func callError(t testing.TB, err, reason error, sent bool) *backend.CallError {
	t.Helper()
	var e *backend.CallError
	if !errors.As(err, &e) || !errors.Is(err, reason) {
		t.Fatalf("error is %v, want %v", err, reason)
	}
	if e.Sent != sent || errors.Is(err, backend.ErrNotSent) == sent {
		t.Errorf("sent = %v, want %v: %v", e.Sent, sent, err)
	}
	return e
}

// recorded are the lines the server received.
func recorded(t testing.TB, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func linesWith(lines []string, part string) []string {
	var out []string
	for _, l := range lines {
		if strings.Contains(l, part) {
			out = append(out, l)
		}
	}
	return out
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// outcome is what one run of a command left behind.
type outcome struct {
	code     Code
	out, err string
}

// try runs a command inside this process, in a home of its own.
func try(t *testing.T, args ...string) outcome {
	t.Helper()
	home := t.TempDir()
	env := map[string]string{"TOOL_GUARDIAN_HOME": home, "HOME": home}
	var out, errs bytes.Buffer
	code := run(t.Context(), args, Streams{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now,
		Getenv:  func(name string) string { return env[name] },
		Environ: func() []string { return []string{"TOOL_GUARDIAN_HOME=" + home, "HOME=" + home} },
	})
	return outcome{code, out.String(), errs.String()}
}

func TestWrongWordsExitWithUsage(t *testing.T) {
	for _, args := range [][]string{
		{"no-such-command"},
		{"receipts", "no-such-command"},
		{"--no-such-flag"},
		{"-z"},
		{"receipts", "list", "--last"},
		{"receipts", "list", "--last", "many"},
		{"receipts", "list", "stray"},
		{"receipts", "show"},
		{"receipts", "show", "1", "2"},
		{"receipts", "show", "-1"},
		{"receipts", "show", "first"},
		{"receipts", "proof", "x"},
		{"receipts", "open", "1"},
		{"receipts", "open", "1", "args_sent"},
		{"receipts", "open", "1", "no_field", "--from", "f"},
		{"anchor", "enroll"},
		{"anchor", "enroll", "--witness", "http://127.0.0.1:1"},
		{"anchor", "enroll", "--witness", "http://127.0.0.1:1", "--witness-key", "nonsense"},
		{"anchor", "push", "--timeout", "soon"},
		{"verify", "a", "b"},
		{"verify", "--witness-key", "nonsense"},
		{"verify", "--chain-key", "nonsense"},
		{"verify", "--policy", "no-such-file"},
		{"verify", "--chain-policy", "no-such-file"},
		{"verify", "--tsa-ca", "no-such-file"},
		{"verify", "--max-lag", "-1"},
		{"verify", "no-such-folder"},
		{"witness", "init"},
		{"witness", "serve"},
		{"witness", "token"},
		{"witness", "agents", "add"},
		{"tsa", "serve"},
		{"tsa", "verify"},
		{"files"},
		{"version", "stray"},
		{"--config", "no-such-file"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			got := try(t, args...)
			if got.code != Usage {
				t.Errorf("exit %d, want %d; stderr: %s", got.code, Usage, got.err)
			}
			if got.out != "" {
				t.Errorf("stdout holds %q: it is for data", got.out)
			}
			if !strings.HasPrefix(got.err, "tool-guardian: ") {
				t.Errorf("stderr does not say who speaks: %q", got.err)
			}
		})
	}
}

// A folder without a chain fails the commands that read one, and says where
// it looked.
func TestNoChainYet(t *testing.T) {
	for _, args := range [][]string{
		{"receipts", "list"}, {"receipts", "show", "0"}, {"receipts", "proof", "0"},
		{"chain", "status"}, {"anchor", "status"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			got := try(t, args...)
			if got.code != Failed || got.out != "" || !strings.Contains(got.err, "evidence") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// walk visits every command that a user can call.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		walk(sub, visit)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	var paths [][]string
	root := (&app{Streams: System()}).root()
	walk(root, func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%q: its short text is %q", c.CommandPath(), c.Short)
		}
		if c.Args == nil {
			t.Errorf("%q takes any arguments", c.CommandPath())
		}
		paths = append(paths, strings.Fields(c.CommandPath())[1:])
	})
	for _, path := range paths {
		got := try(t, append(path, "--help")...)
		if got.code != OK || !strings.Contains(got.out, "Usage:") {
			t.Errorf("%v --help: %+v", path, got)
		}
	}
}

// The names are a contract: scripts of users call them.
func TestCommandNames(t *testing.T) {
	var names []string
	walk((&app{Streams: System()}).root(), func(c *cobra.Command) {
		if !c.Hidden && c.Runnable() && c.HasParent() {
			names = append(names, strings.TrimPrefix(c.CommandPath(), "tool-guardian "))
		}
	})
	for _, want := range []string{
		"receipts list", "receipts show", "receipts proof", "receipts open",
		"chain status", "chain verify", "chain repair",
		"anchor", "anchor enroll", "anchor status", "anchor push",
		"witness init", "witness serve", "witness token", "witness agents add", "witness agents list", "witness status", "witness fsck",
		"tsa serve", "tsa request", "tsa verify", "verify", "demo", "version", "files",
		"bench calls", "bench witness", "bench verify",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %q among %q", want, names)
		}
	}
}

func TestStopIsNoFailure(t *testing.T) {
	stop, other := errors.New("told to stop"), errors.New("disk gone")
	for _, tc := range []struct {
		name       string
		err, cause error
		want       error
	}{
		{"nothing", nil, nil, nil},
		{"nothing, stopped", nil, stop, nil},
		{"the stop", stop, stop, nil},
		{"the stop, wrapped", fmt.Errorf("serve: %w", stop), stop, nil},
		{"the stop and a failure", errors.Join(errors.Join(stop, nil), other), stop, other},
		{"a failure", other, stop, other},
		{"a failure, not stopped", errors.Join(other), nil, other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := without(tc.err, tc.cause)
			if !errors.Is(got, tc.want) || (got == nil) != (tc.want == nil) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if tc.cause != nil && errors.Is(got, tc.cause) {
				t.Errorf("got %v: the stop is still in it", got)
			}
		})
	}
}

func TestListenMeansLoopback(t *testing.T) {
	for addr, wantErr := range map[string]bool{":0": false, "127.0.0.1:0": false, "[::1]": true, "8790": true, "": true} {
		ln, err := listenOptions{addr: addr}.open()
		if (err != nil) != wantErr {
			t.Errorf("%q: %v", addr, err)
		}
		if err != nil {
			var ee *exitError
			if !errors.As(err, &ee) || ee.code != Usage {
				t.Errorf("%q: %v is no usage error", addr, err)
			}
			continue
		}
		if !strings.HasPrefix(ln.Addr().String(), "127.0.0.1:") {
			t.Errorf("%q listens on %s", addr, ln.Addr())
		}
		ln.Close()
	}
}

func TestHome(t *testing.T) {
	for _, tc := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"TOOL_GUARDIAN_HOME": "/a/b", "HOME": "/h"}, "/a/b"},
		{map[string]string{"HOME": "/h"}, "/h/.tool-guardian"},
	} {
		a := &app{Streams: Streams{Getenv: func(n string) string { return tc.env[n] }}}
		if got, err := a.home(); err != nil || got != filepath.FromSlash(tc.want) {
			t.Errorf("%v: %q, %v", tc.env, got, err)
		}
	}
}

// A policy that cannot be read denies: it must never look as if all was allowed.
func TestUnreadablePolicyDenies(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "policy.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	code := run(context.Background(), nil, Streams{
		In:  strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"),
		Out: new(bytes.Buffer), Err: &errs, Now: time.Now,
		Getenv:  func(name string) string { return map[string]string{"TOOL_GUARDIAN_HOME": home}[name] },
		Environ: func() []string { return []string{"TOOL_GUARDIAN_EVIDENCE=off"} },
	})
	if code != OK || !strings.Contains(errs.String(), "every call is denied") {
		t.Errorf("exit %d, stderr %s", code, errs.String())
	}
}

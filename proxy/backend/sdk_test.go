//go:build unix

package backend_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"toolguardian/proxy/backend"
)

// sdkEnv makes this test binary a server built with the public Go SDK, as a
// second opinion on what we send.
const sdkEnv = "BACKEND_TEST_SDK"

type sumArgs struct {
	A int `json:"a"`
	B int `json:"b"`
}

func sdkMain() int {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "sum"}, func(ctx context.Context, r *mcp.CallToolRequest, a sumArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(a.A + a.B)}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		s.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "grown"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "block"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "block was cancelled")
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "steps"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		//lint:ignore SA1019 servers of today still log, and the router passes it on
		r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "working"})
		r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		return &mcp.CallToolResult{}, nil, nil
	})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestAgainstTheSDK(t *testing.T) {
	for want, forced := range map[string]string{"2025-11-25": "", "2024-11-05": "2024-11-05", "2026-07-28": "2026-07-28"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			b := up(t, backend.Spec{Name: "sdk", Command: exe, Env: []string{sdkEnv + "=1"}, Protocol: forced})
			if got := b.Status(); got.Protocol != want || !strings.Contains(string(got.ServerInfo), `"sdk"`) {
				t.Errorf("protocol %s, server %s", got.Protocol, got.ServerInfo)
			}
			if got := said(t, mustCall(t, b, "sum", `{"a":2,"b":40}`)); got != "42" {
				t.Errorf("sum is %q", got)
			}
			if got := said(t, mustCall(t, b, "grow", `{}`)); got != "grown" {
				t.Errorf("grow said %q", got)
			}
			eventually(t, "the new tool", func() bool { return len(names(b)) == 5 })
			sdkCancel(t, b)
			sdkSteps(t, b)
		})
	}
}

// sdkCancel cancels once the tool runs: a cancel that overtakes its request's
// start is lost in the SDK.
func sdkCancel(t *testing.T, b *backend.Backend) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := b.Request(ctx, "tools/call", callParams("block", `{}`), backend.Observer{Progress: func(json.RawMessage) { cancel() }})
	callError(t, err, backend.ErrCancelled, true)
	eventually(t, "the server's own cancel", func() bool {
		return strings.Contains(strings.Join(b.Status().StderrTail, "\n"), "block was cancelled")
	})
}

func sdkSteps(t *testing.T, b *backend.Backend) {
	if r, err := b.Request(t.Context(), "logging/setLevel", []byte(`{"level":"debug"}`), backend.Observer{}); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	var progress, logs int
	o := backend.Observer{Progress: func(json.RawMessage) { progress++ }, Log: func(json.RawMessage) { logs++ }}
	if r, err := b.Request(t.Context(), "tools/call", callParams("steps", `{}`), o); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	if progress != 1 || logs != 1 {
		t.Errorf("%d progress, %d log messages; want one each", progress, logs)
	}
}

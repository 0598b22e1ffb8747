package front_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"toolguardian/proxy/front"
)

// sdkClient connects the official Go SDK, an implementation that owes us
// nothing, to a server over real pipes.
func sdkClient(t *testing.T, h *scripted, revision string, o *mcp.ClientOptions) (*mcp.ClientSession, *front.Server, chan error) {
	t.Helper()
	srv, err := front.New(front.Options{Handler: h, Info: front.Info{Name: "guardian", Title: "The Guardian", Version: "0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	serverIn, clientOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	clientIn, serverOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() {
		err := srv.ServeStdio(t.Context(), serverIn, serverOut)
		serverOut.Close()
		serverIn.Close()
		served <- err
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1.8.0"}, o)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: clientIn, Writer: clientOut},
		&mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		clientOut.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { clientOut.Close() })
	return session, srv, served
}

func TestOfficialClient(t *testing.T) {
	for _, revision := range mcp.SupportedProtocolVersions() {
		t.Run(revision, func(t *testing.T) { officialClient(t, revision) })
	}
}

func officialClient(t *testing.T, revision string) {
	h := newScripted()
	changed, steps := make(chan struct{}, 1), make(chan float64, 3)
	session, srv, served := sdkClient(t, h, revision, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			steps <- r.Params.Progress
		},
	})
	init := session.InitializeResult()
	if init.ProtocolVersion != revision || init.ServerInfo.Name != "guardian" || !init.Capabilities.Tools.ListChanged || init.Instructions != "" {
		t.Errorf("initialize: %+v", init)
	}
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "echo" {
		t.Errorf("tools: %+v, %v", tools, err)
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": 1}})
	if err != nil || result.Content[0].(*mcp.TextContent).Text != "ECHO" {
		t.Errorf("call: %+v, %v", result, err)
	}
	var refused *jsonrpc.Error
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "fail"}); !errors.As(err, &refused) || refused.Code != -32050 {
		t.Errorf("error: %v", err)
	}
	params := &mcp.CallToolParams{Name: "steps"}
	params.SetProgressToken("tok")
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Error(err)
	}
	if got := []float64{await(t, "step", steps), await(t, "step", steps), await(t, "step", steps)}; !slices.Equal(got, []float64{1, 2, 3}) {
		t.Errorf("progress: %v", got)
	}
	cancelOfficial(t, session, h)
	srv.ToolsChanged()
	await(t, "the changed list", changed)
	closed := make(chan error, 1)
	go func() { closed <- session.Close() }()
	if err := await(t, "the client's end", closed); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := await(t, "ServeStdio", served); err != nil {
		t.Errorf("ServeStdio: %v", err)
	}
	events := h.taken()
	if last := events[len(events)-1]; last != "close "+revision+" closed" {
		t.Errorf("at the end: %q", last)
	}
}

// cancelOfficial cancels a call and waits until the handler has seen it.
func cancelOfficial(t *testing.T, session *mcp.ClientSession, h *scripted) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-h.started
		cancel()
	}()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "hold"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
}

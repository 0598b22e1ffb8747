package backend

import (
	"context"
	"encoding/json"
)

// Backend is one server. Its methods may be called from any goroutine.
type Backend struct{}

// Start begins to run a backend and returns at once, in state STARTING. The
// backend ends with ctx or by Close.
func Start(ctx context.Context, s Spec, o Options) *Backend { return &Backend{} }

// Name is the configured name.
func (b *Backend) Name() string { return "" }

// Status is a snapshot.
func (b *Backend) Status() Status { return Status{} }

// Ready waits while the backend is STARTING. It returns nil when it is UP, and
// else why it is not.
func (b *Backend) Ready(ctx context.Context) error { return nil }

// Tools are the definitions of all pages, in order, as they came.
func (b *Backend) Tools() []json.RawMessage { return nil }

// Request sends one request and waits for its answer; an error is a
// *CallError. Params are an object or nil.
func (b *Backend) Request(ctx context.Context, method string, params json.RawMessage, o Observer) (Reply, error) {
	return Reply{}, ErrDown
}

// Close ends the process and everything it started.
func (b *Backend) Close(ctx context.Context) {}

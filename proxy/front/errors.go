package front

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"toolguardian/proxy/wire"
)

var (
	// ErrCancelled is the cause of a call's context when the client sent
	// notifications/cancelled for it.
	ErrCancelled = errors.New("cancelled by the client")
	// ErrClosed is the cause when the client's stream ended before the call.
	ErrClosed = errors.New("the client closed the connection")
)

func badParams(format string, args ...any) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

func invalidRequest(format string, args ...any) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

func noMethod(method string) *wire.Error {
	return &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("there is no method %q here", method)}
}

// unsupported is MCP 2026-07-28's UnsupportedProtocolVersionError.
func unsupported(requested json.RawMessage) *wire.Error {
	data := append([]byte(`{"supported":`), quoteAll(supported())...)
	data = append(append(append(data, `,"requested":`...), requested...), '}')
	return &wire.Error{
		Code:    wire.CodeUnsupportedVersion,
		Message: "unsupported protocol version; use one of data.supported",
		Data:    data,
	}
}

func quoteAll(words []string) []byte {
	list := []byte{'['}
	for i, word := range words {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, wire.Quote(word)...)
	}
	return append(list, ']')
}

// rpcError is how any error is told to the client.
func rpcError(ctx context.Context, err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("the server is stopping")
	}
	return &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
}

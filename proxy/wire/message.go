package wire

import (
	"encoding/json"
	"fmt"
)

// Kind says what a message is, by which members it has.
type Kind int

const (
	Malformed    Kind = iota // neither a method nor a result nor an error
	Request                  // method and id
	Notification             // method, no id
	Response                 // result or error
)

// Message is one JSON-RPC message. Every slice in it points into Raw, which
// the holder owns.
type Message struct {
	Raw       []byte
	ID        ID
	Method    string
	Params    json.RawMessage // nil: absent
	Result    json.RawMessage // nil: absent; null is the four bytes
	Err       json.RawMessage // nil: absent
	NoVersion bool            // jsonrpc is missing or not "2.0"

	idSpan Span
}

// Kind tells a request from a notification and a response.
func (m Message) Kind() Kind { return Malformed }

// Parse splits one JSON object into its top-level members. The error is a
// *LineError that carries what could be read.
func Parse(raw []byte) (Message, error) { return Message{Raw: raw}, nil }

// Elements splits a JSON array (a batch) into its elements.
func Elements(raw []byte) ([]json.RawMessage, error) { return nil, nil }

// WithID returns the message's bytes with another id; all others are equal.
func (m Message) WithID(id ID) []byte { return nil }

// CheckStrict refuses what two parsers could read differently: a member twice
// in the envelope or, at any depth, in params.
func CheckStrict(m Message) error { return nil }

// Error is a JSON-RPC error object.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // nil: absent
	Raw     json.RawMessage // as received; sent as it is when set
}

// Codes of JSON-RPC 2.0 and of MCP.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeUnsupportedVersion = -32022
)

func (e *Error) Error() string { return fmt.Sprintf("%s (JSON-RPC error %d)", e.Message, e.Code) }

// ParseError reads an error object leniently.
func ParseError(raw json.RawMessage) *Error { return &Error{Raw: raw} }

// NewRequest forms a request; nil params are left out.
func NewRequest(id ID, method string, params json.RawMessage) []byte { return nil }

// NewNotification forms a notification; nil params are left out.
func NewNotification(method string, params json.RawMessage) []byte { return nil }

// Reply forms a response with a result.
func Reply(id ID, result json.RawMessage) []byte { return nil }

// ReplyError forms an error response; an absent id is written as null.
func ReplyError(id ID, e *Error) []byte { return nil }

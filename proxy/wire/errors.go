package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Codes of JSON-RPC 2.0 (section 5.1) and of MCP.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeBusy               = -32000 // ours, of the range left to implementations
	CodeUnsupportedVersion = -32022 // MCP 2026-07-28; data.supported names the right ones
)

// errDeep marks a scan that stopped at MaxDepth: valid so far, but refused.
var errDeep = errors.New("nested too deep")

func scanCode(err error) int {
	if errors.Is(err, errDeep) {
		return CodeInvalidRequest
	}
	return CodeParse
}

// Error is a JSON-RPC error object.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // nil: absent
	Raw     json.RawMessage // as received, nil for one of ours
}

func (e *Error) Error() string { return fmt.Sprintf("%s (JSON-RPC error %d)", e.Message, e.Code) }

// ParseError reads an error member leniently: what is no object with a whole
// number as code becomes CodeInternal, with the best text there is. Raw keeps
// the bytes.
func ParseError(raw json.RawMessage) *Error {
	e := &Error{Code: CodeInternal, Raw: raw}
	e.Message = text(raw)
	for m, err := range Members(raw) {
		if err != nil {
			break
		}
		switch m.Key {
		case "code":
			e.Code = code(m.Value)
		case "message":
			e.Message = text(m.Value)
		case "data":
			e.Data = m.Value
		}
	}
	if e.Message == "" {
		e.Message = "error without a message"
	}
	return e
}

// text is a string's content, and nothing for any other value.
func text(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return decodeString(raw)
}

func code(raw json.RawMessage) int {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return CodeInternal
	}
	return int(f)
}

// object is the error as it is sent: the bytes received where they are a
// proper error object, else one of ours that holds them as data.
func (e *Error) object() []byte {
	if e.Raw != nil && e.proper() {
		return e.Raw
	}
	b := append([]byte(`{"code":`), strconv.Itoa(e.Code)...)
	b = append(append(b, `,"message":`...), Quote(e.Message)...)
	data := e.Data
	if data == nil {
		data = e.Raw
	}
	if data != nil {
		b = append(append(b, `,"data":`...), data...)
	}
	return append(b, '}')
}

func (e *Error) proper() bool {
	message := Get(e.Raw, "message")
	return string(Get(e.Raw, "code")) == strconv.Itoa(e.Code) && len(message) > 0 && message[0] == '"'
}

package wire

import (
	"encoding/json"
	"strings"
)

const head = `{"jsonrpc":"2.0"`

// NewRequest forms a request; nil params are left out.
func NewRequest(id ID, method string, params json.RawMessage) []byte {
	b := make([]byte, 0, len(head)+len(id.raw)+len(method)+len(params)+32)
	b = append(append(b, head+`,"id":`...), id.raw...)
	return appendCall(b, method, params)
}

// NewNotification forms a notification; nil params are left out.
func NewNotification(method string, params json.RawMessage) []byte {
	b := make([]byte, 0, len(head)+len(method)+len(params)+32)
	return appendCall(append(b, head...), method, params)
}

func appendCall(b []byte, method string, params json.RawMessage) []byte {
	b = appendQuoted(append(b, `,"method":`...), method)
	if params != nil {
		b = append(append(b, `,"params":`...), params...)
	}
	return append(b, '}')
}

// Reply forms a response; the result's bytes pass as they are.
func Reply(id ID, result json.RawMessage) []byte {
	return appendReply(id, "result", result)
}

// ReplyError forms an error response. An absent id is written as null
// (JSON-RPC 2.0, section 5). A proper error object in e.Raw passes as it is.
func ReplyError(id ID, e *Error) []byte {
	return appendReply(id, "error", e.object())
}

func appendReply(id ID, name string, value []byte) []byte {
	if id.Absent() {
		id = ID{"null"}
	}
	b := make([]byte, 0, len(head)+len(id.raw)+len(value)+24)
	b = append(append(b, head+`,"id":`...), id.raw...)
	b = append(append(append(b, `,"`...), name...), `":`...)
	return append(append(b, value...), '}')
}

// Quote is s as a JSON string. Only what the grammar asks for is escaped;
// invalid UTF-8, which could only be of our own making, becomes U+FFFD.
func Quote(s string) json.RawMessage { return appendQuoted(nil, s) }

func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	s = strings.ToValidUTF8(s, "\uFFFD")
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < 0x20:
			b = append(b, `\u00`...)
			b = append(b, hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

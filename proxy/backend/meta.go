package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"toolguardian/proxy/wire"
)

// Keys of `_meta` that belong to one hop (MCP 2026-07-28, basic/_meta).
const (
	metaProgress = "progressToken"
	metaReserved = "io.modelcontextprotocol/"
	metaVersion  = metaReserved + "protocolVersion"
	metaClient   = metaReserved + "clientInfo"
	metaCaps     = metaReserved + "clientCapabilities"
	metaLogLevel = metaReserved + "logLevel"
)

// envelope is what every request to a stateless server carries in `_meta`:
// members without braces.
func envelope(c ClientInfo) []byte {
	info, err := json.Marshal(c)
	if err != nil {
		info = []byte(`{"name":"","version":""}`)
	}
	return fmt.Appendf(nil, `%q:%q,%q:%s,%q:{}`, metaVersion, Stateless, metaClient, info, metaCaps)
}

// withMeta adds members to params._meta and leaves every other byte as it is.
// Members of one hop that params already hold belong to another and go.
func withMeta(params json.RawMessage, members []byte) (json.RawMessage, error) {
	if len(members) == 0 {
		return params, nil
	}
	if params == nil {
		return bytes.Join([][]byte{[]byte(`{"_meta":{`), members, []byte(`}}`)}, nil), nil
	}
	for m, err := range wire.Members(params) {
		if err != nil {
			return nil, err
		}
		if m.Key == "_meta" {
			return mergeMeta(params, m, members)
		}
	}
	first := append(append([]byte(`"_meta":{`), members...), '}')
	return insertFirst(params, first), nil
}

func mergeMeta(params json.RawMessage, at wire.Member, members []byte) (json.RawMessage, error) {
	old := bytes.TrimSpace(at.Value)
	if len(old) == 0 || old[0] != '{' {
		return wire.Replace(params, at.Span, append(append([]byte{'{'}, members...), '}')), nil
	}
	kept, err := wire.Remove(old, ofOneHop)
	if err != nil {
		return nil, err
	}
	return wire.Replace(params, at.Span, insertFirst(kept, members)), nil
}

func ofOneHop(key string) bool {
	return key == metaProgress || strings.HasPrefix(key, metaReserved)
}

// insertFirst puts members before the others of an object.
func insertFirst(object, members []byte) []byte {
	open := bytes.IndexByte(object, '{') + 1
	rest := object[open:]
	out := make([]byte, 0, len(object)+len(members)+1)
	out = append(out, object[:open]...)
	out = append(out, members...)
	if trimmed := bytes.TrimSpace(rest); len(trimmed) > 0 && trimmed[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// progressMember asks for progress under a token of ours: the request's id.
func progressMember(id int64) []byte {
	return strconv.AppendInt([]byte(`"`+metaProgress+`":`), id, 10)
}

// logMember asks a stateless server for the log messages of one request.
func logMember(level string) []byte {
	return fmt.Appendf(nil, `%q:%s`, metaLogLevel, wire.Quote(level))
}

func joinMembers(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	return bytes.Join([][]byte{a, b}, []byte{','})
}

package front

import (
	"encoding/json"
	"slices"

	"toolguardian/proxy/wire"
)

const (
	stateless      = "2026-07-28"
	newestStateful = "2025-11-25"
	withBatches    = "2025-03-26" // the only revision that had them
	withTitle      = "2025-06-18" // the first with serverInfo.title
)

// statefulRevisions are those that initialize can agree on.
var statefulRevisions = []string{newestStateful, "2025-06-18", withBatches, "2024-11-05"}

func supported() []string { return append([]string{stateless}, statefulRevisions...) }

// negotiate is the revision that initialize answers with (MCP lifecycle,
// version negotiation).
func negotiate(asked string) string {
	if slices.Contains(statefulRevisions, asked) {
		return asked
	}
	return newestStateful
}

// Reserved names in _meta.
const (
	reserved         = "io.modelcontextprotocol/"
	metaVersion      = reserved + "protocolVersion"
	metaClient       = reserved + "clientInfo"
	metaCapabilities = reserved + "clientCapabilities"
	metaLevel        = reserved + "logLevel"
	metaServer       = reserved + "serverInfo"
	metaSubscription = reserved + "subscriptionId"
	metaProgress     = "progressToken"
)

// envelope is what a stateless request says of itself in _meta.
type envelope struct {
	stateless bool
	level     string // the lowest level of log message that is wanted; "": none
	client    ClientInfo
	caps      json.RawMessage
}

// readEnvelope reads params._meta. stateful says that initialize has been
// seen, so that a stateful revision named here is only a repetition.
func readEnvelope(meta json.RawMessage, stateful bool) (envelope, *wire.Error) {
	raw := wire.Get(meta, metaVersion)
	if raw == nil {
		return envelope{}, nil
	}
	version, ok := wire.GetString(meta, metaVersion)
	switch {
	case !ok:
		return envelope{}, badParams("_meta %q must be a string", metaVersion)
	case version == stateless:
		return readStateless(meta)
	case stateful && slices.Contains(statefulRevisions, version):
		return envelope{}, nil
	}
	return envelope{}, unsupported(raw)
}

func readStateless(meta json.RawMessage) (envelope, *wire.Error) {
	e := envelope{stateless: true, caps: wire.Get(meta, metaCapabilities)}
	if !isObject(e.caps) {
		return e, badParams("_meta %q must be an object in every request of %s", metaCapabilities, stateless)
	}
	if info := wire.Get(meta, metaClient); info != nil {
		if !isObject(info) {
			return e, badParams("_meta %q must be an object", metaClient)
		}
		e.client = readClient(info)
	}
	e.level, _ = wire.GetString(meta, metaLevel)
	return e, nil
}

func readClient(info json.RawMessage) ClientInfo {
	name, _ := wire.GetString(info, "name")
	version, _ := wire.GetString(info, "version")
	return ClientInfo{Name: name, Version: version}
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

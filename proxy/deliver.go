package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"toolguardian/proxy/wire"
)

// errNoResult is a result that is no JSON object.
var errNoResult = errors.New("the result is no object")

// result is a backend's result, with where its parts stand.
type result struct {
	raw        json.RawMessage
	content    json.RawMessage // nil: absent or null
	at         wire.Span       // of content; empty: absent
	structured json.RawMessage // nil: absent or null
	failed     bool            // isError
	incomplete bool            // resultType other than complete: there is more to come
}

func readResult(raw json.RawMessage) (r result, err error) {
	r.raw = raw
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return r, errNoResult
	}
	for m, err := range wire.Members(r.raw) {
		if err != nil {
			return r, err
		}
		null := string(m.Value) == "null"
		switch m.Key {
		case "content":
			if r.at = m.Span; !null {
				r.content = m.Value
			}
		case "structuredContent":
			if !null {
				r.structured = m.Value
			}
		case "isError":
			r.failed = string(m.Value) == "true"
		case "resultType":
			r.incomplete = string(m.Value) != `"complete"`
		}
	}
	return r, nil
}

// What an outcome names as changed between received and delivered.
const (
	addedNext       = "next step added"
	addedNotice     = "notice added"
	addedEmpty      = "said to be empty"
	addedStructured = "structuredContent added as text"
	wrappedContent  = "content wrapped in an array"
	addedMembers    = "members of the revision added"
	sentAgain       = "sent again"
	notDelivered    = "not delivered"
)

// deliver adds to a result what the router says: blocks of its own around the
// backend's, whose bytes stay as they came. Text and structuredContent both
// pass where the backend sent both; structuredContent alone is also put into a
// text block, for clients that show nothing else.
func (r result) deliver(notices []string, next string) (json.RawMessage, []string, error) {
	if r.incomplete {
		return r.raw, nil, nil
	}
	blocks, changes := r.blocks()
	before, after := noticeBlocks(notices), [][]byte{nextStep(next)}
	if len(notices) > 0 {
		changes = append(changes, addedNotice)
	}
	switch {
	case len(blocks) == 0 && r.structured != nil:
		blocks, changes = textBlock(string(r.structured)), append(changes, addedStructured)
	case r.empty(blocks):
		before, changes = append(before, textBlock("[the tool returned an empty result]")), append(changes, addedEmpty)
	}
	changes = append(changes, addedNext)
	if r.at == (wire.Span{}) {
		out, err := wire.Set(r.raw, appendArray(nil, before, blocks, after), "content")
		return out, changes, err
	}
	out := make([]byte, 0, len(r.raw)+len(blocks)-(r.at.End-r.at.Start)+added)
	out = append(out, r.raw[:r.at.Start]...)
	out = appendArray(out, before, blocks, after)
	return append(out, r.raw[r.at.End:]...), changes, nil
}

// added is room for what the router usually adds, so that a large result is
// copied once.
const added = 256

// blocks are the backend's content blocks, without the array's brackets. A
// text or a lone block where an array belongs is wrapped, anything else is shown as text.
func (r result) blocks() (inner []byte, changes []string) {
	if r.content == nil {
		return nil, nil
	}
	switch r.content[0] {
	case '[':
		return bytes.TrimSpace(r.content[1 : len(r.content)-1]), nil
	case '"':
		text := append([]byte(`{"type":"text","text":`), r.content...)
		return append(text, '}'), []string{wrappedContent}
	case '{':
		return r.content, []string{wrappedContent}
	}
	return textBlock(string(r.content)), []string{wrappedContent}
}

// maxEmpty bounds how many bytes of content are looked at for being empty.
const maxEmpty = 512

// empty says that a result has nothing to read.
func (r result) empty(blocks []byte) bool {
	if r.structured != nil || len(blocks) > maxEmpty {
		return false
	}
	list, err := wire.Elements(append(append([]byte{'['}, blocks...), ']'))
	if err != nil {
		return false
	}
	for _, b := range list {
		kind, _ := wire.GetString(b, "type")
		if text, _ := wire.GetString(b, "text"); kind != "text" || strings.TrimSpace(text) != "" {
			return false
		}
	}
	return true
}

// appendArray appends an array of blocks.
func appendArray(out []byte, before [][]byte, middle []byte, after [][]byte) []byte {
	out = append(out, '[')
	first := len(out)
	add := func(b []byte) {
		if len(b) == 0 {
			return
		}
		if len(out) > first {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	for _, b := range before {
		add(b)
	}
	add(middle)
	for _, b := range after {
		add(b)
	}
	return append(out, ']')
}

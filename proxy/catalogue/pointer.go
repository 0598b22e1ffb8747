package catalogue

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// eachMember visits an object's members in order. It stops silently where the
// bytes are no object: the caller shows what was read.
func eachMember(obj json.RawMessage, visit func(name string, value json.RawMessage)) {
	d := json.NewDecoder(bytes.NewReader(obj))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return
		}
		visit(name, value)
	}
}

// resolve follows a local reference ("#/$defs/X", RFC 6901 in a fragment).
// References to other documents are not followed.
func resolve(root json.RawMessage, ref string) (json.RawMessage, bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, false
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, false
	}
	if fragment == "" {
		return root, true
	}
	steps, ok := strings.CutPrefix(fragment, "/")
	if !ok {
		return nil, false
	}
	at := root
	for step := range strings.SplitSeq(steps, "/") {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		if at = child(at, step); at == nil {
			return nil, false
		}
	}
	return at, true
}

func child(at json.RawMessage, step string) (found json.RawMessage) {
	if at = bytes.TrimSpace(at); len(at) == 0 {
		return nil
	}
	if at[0] == '[' {
		var list []json.RawMessage
		i, err := strconv.Atoi(step)
		if err != nil || json.Unmarshal(at, &list) != nil || i < 0 || i >= len(list) {
			return nil
		}
		return list[i]
	}
	eachMember(at, func(name string, value json.RawMessage) {
		if name == step {
			found = value
		}
	})
	return found
}

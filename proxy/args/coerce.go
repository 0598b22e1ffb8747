package args

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"toolguardian/proxy/wire"
)

// coerce replaces the values whose type alone is wrong and whose meaning is
// plain, each by its own bytes; nil where there are none. Whether the result
// fits is for the schema to say.
func coerce(args json.RawMessage, value any, faults []fault) json.RawMessage {
	type change struct {
		at   wire.Span
		with []byte
	}
	var changes []change
	for _, f := range faults {
		with := meant(find(value, f.at), f.want)
		if with == nil {
			continue
		}
		if at, ok := locate(args, f.at); ok {
			changes = append(changes, change{at, with})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	slices.SortFunc(changes, func(a, b change) int { return b.at.Start - a.at.Start })
	for _, c := range changes {
		args = wire.Replace(args, c.at, c.with)
	}
	return args
}

// meant is the JSON that a value stands for among the wanted types, where only
// one of them is possible: a number or a boolean written as text, or a number
// where text belongs.
func meant(value any, want []string) []byte {
	switch v := value.(type) {
	case string:
		if slices.Contains(want, "string") {
			return nil
		}
		numeric := slices.Contains(want, "number") || slices.Contains(want, "integer")
		if numeric && isNumber(v) {
			return []byte(v)
		}
		if slices.Contains(want, "boolean") && (v == "true" || v == "false") {
			return []byte(v)
		}
	case json.Number:
		if slices.Contains(want, "string") {
			return []byte(`"` + string(v) + `"`)
		}
	}
	return nil
}

// isNumber says whether s is a number as JSON writes it, and a short one.
func isNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') || !modestNumber(s) {
		return false
	}
	last := s[len(s)-1]
	return last >= '0' && last <= '9' && json.Valid([]byte(s))
}

// locate finds the bytes of the value at a place.
func locate(raw json.RawMessage, at []string) (wire.Span, bool) {
	span := wire.Span{Start: 0, End: len(raw)}
	for _, step := range at {
		inner, ok := locateStep(raw[span.Start:span.End], step)
		if !ok {
			return span, false
		}
		span = wire.Span{Start: span.Start + inner.Start, End: span.Start + inner.End}
	}
	return span, true
}

func locateStep(raw json.RawMessage, step string) (wire.Span, bool) {
	if first := bytes.TrimLeft(raw, " \t\r\n"); len(first) > 0 && first[0] == '[' {
		return locateItem(raw, step)
	}
	var found wire.Span
	ok := false
	for m, err := range wire.Members(raw) {
		if err != nil {
			return found, false
		}
		if m.Key == step {
			found, ok = m.Span, true
		}
	}
	return found, ok
}

func locateItem(raw json.RawMessage, step string) (wire.Span, bool) {
	n, err := strconv.Atoi(step)
	if err != nil {
		return wire.Span{}, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return wire.Span{}, false
	}
	for i := 0; d.More(); i++ {
		var item json.RawMessage
		if d.Decode(&item) != nil {
			break
		}
		if end := int(d.InputOffset()); i == n {
			return wire.Span{Start: end - len(item), End: end}, true
		}
	}
	return wire.Span{}, false
}

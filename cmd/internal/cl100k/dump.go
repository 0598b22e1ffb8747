package cl100k

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// FunctionsText is the text of tool definitions by the reference's formula: the
// functions a model is shown, as Python's json.dumps writes them. outputSchema,
// annotations, icons and _meta are not among them.
func FunctionsText(definitions []json.RawMessage) string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range definitions {
		if i > 0 {
			b.WriteString(", ")
		}
		function(&b, d)
	}
	b.WriteByte(']')
	return b.String()
}

func function(b *strings.Builder, definition json.RawMessage) {
	var d struct {
		Name        json.RawMessage `json:"name"`
		Description json.RawMessage `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(definition, &d) // what cannot be read is not shown
	b.WriteString(`{"type": "function", "function": {"name": `)
	dump(b, d.Name, `""`)
	b.WriteString(`, "description": `)
	dump(b, d.Description, `""`)
	b.WriteString(`, "parameters": `)
	dump(b, d.InputSchema, `{}`)
	b.WriteString(`}}`)
}

// dump writes a JSON text with json.dumps's separators and ASCII escapes,
// numbers as they stand; instead where it is absent.
func dump(b *strings.Builder, raw json.RawMessage, instead string) {
	if len(raw) == 0 {
		raw = json.RawMessage(instead)
	}
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; c {
		case ' ', '\t', '\r', '\n':
		case ':', ',':
			b.WriteByte(c)
			b.WriteByte(' ')
		case '"':
			size := stringSize(raw[i:])
			dumpString(b, raw[i:i+size])
			i += size - 1
		default:
			b.WriteByte(c)
		}
	}
}

// stringSize is the length of the JSON string at the beginning of raw.
func stringSize(raw []byte) int {
	for i := 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func dumpString(b *strings.Builder, raw []byte) {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		b.Write(raw)
		return
	}
	b.WriteByte('"')
	for _, r := range s {
		switch e, ok := escapes[r]; {
		case ok:
			b.WriteString(e)
		case r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		case r < ' ', r > '~':
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

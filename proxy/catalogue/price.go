package catalogue

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Tokens estimates what characters cost a model: 3.5 a token, rounded up.
func Tokens(chars int) int { return (2*chars + 6) / 7 }

// Price is what definitions cost in a model's context by the reference's
// formula, in tokens: the characters of Python's json.dumps of the functions a
// model is shown, / 3.5. outputSchema, annotations, icons and _meta are not
// among them.
func Price(definitions []json.RawMessage) int {
	if len(definitions) == 0 {
		return 0
	}
	chars := len("[]") + (len(definitions)-1)*len(", ")
	for _, d := range definitions {
		chars += shownChars(d)
	}
	return Tokens(chars)
}

func shownChars(definition json.RawMessage) int {
	var d struct {
		Name        json.RawMessage `json:"name"`
		Description json.RawMessage `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	_ = json.Unmarshal(definition, &d) // what cannot be read is not shown
	return len(`{"type": "function", "function": {"name": , "description": , "parameters": }}`) +
		dumped(d.Name, `""`) + dumped(d.Description, `""`) + dumped(d.InputSchema, `{}`)
}

// dumped is the length of a JSON text as json.dumps writes it with its default
// separators, of instead where it is absent. Numbers count as they are written.
func dumped(raw json.RawMessage, instead string) (n int) {
	if len(raw) == 0 {
		raw = json.RawMessage(instead)
	}
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case ' ', '\t', '\r', '\n':
		case ':', ',':
			n += 2
		case '"':
			chars, size := dumpedString(raw[i:])
			n += chars
			i += size - 1
		default:
			n++
		}
	}
	return n
}

// dumpedString is the length of the JSON string at the beginning of raw as
// json.dumps writes it, and the bytes it takes in raw.
func dumpedString(raw []byte) (chars, size int) {
	chars, size = len(`""`), 1
	for size < len(raw) && raw[size] != '"' {
		r, n := decoded(raw[size:])
		chars += dumpedRune(r)
		size += n
	}
	return chars, min(size+1, len(raw))
}

// decoded reads one character of a string's inside: of a pair of surrogate
// escapes each by itself, as Python writes them.
func decoded(raw []byte) (r rune, size int) {
	if raw[0] != '\\' || len(raw) < 2 {
		return utf8.DecodeRune(raw)
	}
	if raw[1] != 'u' || len(raw) < 6 {
		switch raw[1] {
		case 'b', 'f', 'n', 'r', 't':
			return '\n', 2
		}
		return rune(raw[1]), 2
	}
	code, _ := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(code), 6
}

func dumpedRune(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\t', r == '\r', r == '\b', r == '\f':
		return 2
	case r >= 0x10000:
		return len(`\ud83d\ude00`)
	case r < ' ', r > '~':
		return len(`\u0000`)
	}
	return 1
}

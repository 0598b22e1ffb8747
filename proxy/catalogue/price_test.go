package catalogue

import (
	"encoding/json"
	"testing"
)

// The lengths are those that Python's json.dumps gives.
func TestDumped(t *testing.T) {
	for text, want := range map[string]int{
		`{}`: 2, `[]`: 2, `{"a":1}`: 8, `{ "a" : [1 , 2.5] , "b":null }`: 26, `"é"`: 8, `"\u00e9"`: 8, `"😀"`: 14, `"\ud83d\ude00"`: 14,
		`"\/"`: 3, `"\n\t\""`: 8, `"\u0001"`: 8, `"\u000a"`: 4, `"\u0041"`: 3, "\"\x7f\"": 8, `"a, b: c"`: 9, `""`: 2, ``: 2, `true`: 4,
	} {
		if got := dumped(json.RawMessage(text), "{}"); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestPrice(t *testing.T) {
	// [{"type": "function", "function": {"name": "a", "description": "", "parameters": {}}}]
	one := json.RawMessage(`{"outputSchema":{"x":1},"name":"a","_meta":{}}`)
	for n, want := range []int{0, Tokens(86), Tokens(172)} {
		if got := Price([]json.RawMessage{one, one}[:n]); got != want {
			t.Errorf("%d definitions: %d, want %d", n, got, want)
		}
	}
	for chars, want := range map[int]int{0: 0, 1: 1, 3: 1, 4: 2, 7: 2, 8: 3, 70: 20, 71: 21} {
		if got := Tokens(chars); got != want {
			t.Errorf("%d characters: %d tokens, want %d", chars, got, want)
		}
	}
}

func FuzzPrice(f *testing.F) {
	for _, s := range []string{`{"name":"a\ud83d","description":"\u`, `{"name":"x","inputSchema":{"a":"\\"}}`, `{`, ``, `"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if p := Price([]json.RawMessage{raw}); p <= 0 || p > Tokens(100+12*len(raw)) {
			t.Fatalf("%q costs %d", raw, p)
		}
		dumped(raw, "{}")
	})
}

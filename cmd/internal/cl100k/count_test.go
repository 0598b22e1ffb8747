package cl100k

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"toolguardian/proxy/catalogue"
)

// Counts that OpenAI's own tokenizer gives for these texts.
func TestKnownCounts(t *testing.T) {
	c := New()
	for text, want := range map[string]int{
		"":                             0,
		"hello world":                  2,
		"tiktoken is great!":           6,
		"antidisestablishmentarianism": 6,
	} {
		if n, err := c.Text(text); err != nil || n != want {
			t.Errorf("%q: %d tokens (%v), want %d", text, n, err, want)
		}
	}
}

const odd = `{"name":"a\"b","description":"\u00e9 \ud83d\ude00 tab\t del\u007f <b>","inputSchema":{"type":"object","n":[1, 2.50e1 ,true]},"outputSchema":{"x":1}}`

func TestFunctionsText(t *testing.T) {
	got := FunctionsText([]json.RawMessage{json.RawMessage(odd), json.RawMessage(`{"name":"b"}`)})
	want := `[{"type": "function", "function": {"name": "a\"b", "description": "\u00e9 \ud83d\ude00 tab\t del\u007f <b>", ` +
		`"parameters": {"type": "object", "n": [1, 2.50e1, true]}}}, ` +
		`{"type": "function", "function": {"name": "b", "description": "", "parameters": {}}}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n, err := New().Functions(nil); n != 0 || err != nil {
		t.Errorf("no definitions: %d, %v", n, err)
	}
}

// The catalogue prices by counting, this package by writing: they must agree.
func TestTextAgreesWithThePrice(t *testing.T) {
	check := func(name string, defs []json.RawMessage) {
		if got, want := catalogue.Tokens(utf8.RuneCountInString(FunctionsText(defs))), catalogue.Price(defs); got != want {
			t.Errorf("%s: the text makes %d tokens, its price is %d", name, got, want)
		}
	}
	check("odd", []json.RawMessage{json.RawMessage(odd)})
	shared := os.Getenv("TOOL_GUARDIAN_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	files, _ := filepath.Glob(filepath.Join(shared, "catalogs/reference/*.json"))
	if len(files) == 0 {
		t.Skipf("no recorded catalogues below %s", shared)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		check(filepath.Base(f), list.Tools)
	}
}

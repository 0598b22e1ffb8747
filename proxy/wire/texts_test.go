package wire

import (
	"encoding/json"
	"fmt"
	"testing"
)

// Texts finds what a walk through the members and elements finds.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"},{"type":"image","text":"b"},{"text":"c","type":"text"},5,{}],"isError":false}`,
		`{"content":[{"type":"text","text":"a"}],"content":null}`, `{"content":[{"type":"text","text":"a"}]`, `{"content":"a"}`, ` [ ] `,
		`{"c\u006fntent" : [ { "type":"text" , "text":"\n" , "text":5 , "x":[{"text":"y"}] } ] } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, want := fmt.Sprintf("%q", Texts(raw)), fmt.Sprintf("%q", walkTexts(raw)); got != want {
			t.Errorf("%q: %s, want %s", raw, got, want)
		}
	})
}

func walkTexts(raw []byte) (all []json.RawMessage) {
	for _, err := range Members(raw) {
		if err != nil {
			return nil
		}
	}
	blocks, err := Elements(Get(raw, "content"))
	if err != nil {
		return nil
	}
	for _, b := range blocks {
		if string(Get(b, "type")) != `"text"` {
			continue
		}
		var text json.RawMessage
		for m := range Members(b) {
			if m.Key == "text" && m.Value[0] == '"' {
				text = m.Value
			}
		}
		if text != nil {
			all = append(all, text)
		}
	}
	return all
}

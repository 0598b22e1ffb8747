package front

import (
	"encoding/json"
	"testing"
)

func TestComplete(t *testing.T) {
	const us = `{"name":"x","title":"X","version":"1"}`
	info := Info{Name: "x", Title: "X", Version: "1"}
	for _, tt := range []struct {
		name, in, want string
		stateless      bool
	}{
		{"stateful", `{"content":[]}`, `{"content":[]}`, false},
		{"bare", `{ "content":[1.0] }`, `{ "content":[1.0] ,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":` + us + `}}`, true},
		{"more to come", `{"resultType":"input_required","_meta":{"a":1}}`, `{"resultType":"input_required","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":` + us + `}}`, true},
		{"somebody is named", `{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"y"}}}`,
			`{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"y"}}}`, true},
		{"no object", `5`, `5`, true},
		{"nothing", ``, ``, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Session{Stateless: tt.stateless, info: info}
			got := Complete(s, json.RawMessage(tt.in))
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if again := Complete(s, got); string(again) != string(got) {
				t.Errorf("the second time %s", again)
			}
		})
	}
}

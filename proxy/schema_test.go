//go:build unix

package proxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"toolguardian/receipts"
)

// A server whose tools have schemas that were seen to break routers: a
// reference to a sibling, cycles, an old draft, one that leads elsewhere.
const schemaTools = `{"name":"filter","inputSchema":{"type":"object","properties":{"params":{"type":"object","properties":{"filters":{"type":"array","items":{"type":"object","properties":{"op":{"enum":["eq","lt","gt"]},"n":{"type":"integer"}},"required":["op"]}}}}}}},` +
	`{"name":"sibling","inputSchema":{"type":"object","properties":{"x":{"type":"integer"},"y":{"$ref":"#/properties/x"}}}},` +
	`{"name":"cycle","inputSchema":{"type":"object","properties":{"node":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"n":{"type":"integer"},"next":{"$ref":"#/$defs/node"}}}}}},` +
	`{"name":"old","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"n":{"type":"integer"}},"properties":{"n":{"$ref":"#/definitions/n"}},"required":["n"]}},` +
	`{"name":"elsewhere","inputSchema":{"type":"object","properties":{"n":{"$ref":"https://example.com/n.json"}},"required":["n"]}}`

func schemaServer(t *testing.T, set func(*Options)) (*client, *recorder) {
	t.Helper()
	r, rec := processes(t, map[string]string{"s": fmt.Sprintf(onList, schemaTools)}, set)
	return connect(t, r, latest), rec
}

func TestArgumentsThatCannotWork(t *testing.T) {
	c, rec := schemaServer(t, nil)
	const bad = `{"params":{"filters":[{"op":"eq"},{"op":"lt"},{"op":"like","n":"2"}]}}`
	said := texts(t, c.tool("call_tool", `{"server":"s","tool":"filter","args":`+bad+`}`))
	want := "BAD_ARGUMENTS: s.filter was not called, because its arguments cannot work.\n" +
		"argument 'params.filters[2].op' must be one of: eq, lt, gt\n" +
		`args that would fit: {"params":{"filters":[{"op":"eq"},{"op":"lt"},{"n":2,"op":"eq"}]}}`
	if len(said) != 2 || said[0] != want || !strings.HasPrefix(said[1], "NEXT STEP: ") {
		t.Errorf("told %q\nwant %q", said, want)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if got, want := rec.kinds(t), []string{"session-open", "refused", "session-close"}; !slices.Equal(got, want) {
		t.Errorf("receipts %q, want %q", got, want)
	}
	refused := rec.only(t, receipts.KindRefused)
	refused.commits(t, receipts.FieldArgsReceived, []byte(bad))
	if refused.member("reason") != `"schema"` || refused.member("call", "tool") != `"filter"` {
		t.Errorf("receipt %s", refused.predicate)
	}
}

func TestArgumentsOfEverySchema(t *testing.T) {
	c, rec := schemaServer(t, nil)
	for _, tt := range []struct{ tool, in, got string }{
		{"filter", `{"params": {"filters":[ {"op":"eq","n": "2"} ], "more":1.0}}`, `{"params": {"filters":[ {"op":"eq","n": 2} ], "more":1.0}}`},
		{"sibling", `{"y":"5"}`, `{"y":5}`},
		{"cycle", `{"node":{"next":{"next":{"n":"3"}}}}`, `{"node":{"next":{"next":{"n":3}}}}`},
		{"old", `{"n":"9007199254740993"}`, `{"n":9007199254740993}`},
		{"elsewhere", `{}`, `{}`},
	} {
		if got := texts(t, c.tool("call_tool", `{"server":"s","tool":"`+tt.tool+`","args":`+tt.in+`}`)); got[0] != tt.got {
			t.Errorf("%s: the backend got %q, want %q", tt.tool, got, tt.got)
		}
	}
	for _, tt := range []struct{ tool, in, want string }{
		{"sibling", `{"y":"five"}`, "argument 'y' must be a whole number"},
		{"cycle", `{"node":{"next":{"n":[]}}}`, "argument 'node.next.n' must be a whole number"},
		{"old", `{}`, "argument 'n' is missing"},
	} {
		if got := joined(t, c.tool("call_tool", `{"server":"s","tool":"`+tt.tool+`","args":`+tt.in+`}`)); !strings.Contains(got, tt.want) {
			t.Errorf("%s: told %q, want %q", tt.tool, got, tt.want)
		}
	}
	var decisions int
	for _, r := range rec.all(t) {
		if r.Kind == receipts.KindDecision {
			if decisions++; decisions == 1 {
				r.commits(t, receipts.FieldArgsSent, []byte(`{"params": {"filters":[ {"op":"eq","n": 2} ], "more":1.0}}`))
				r.commits(t, receipts.FieldArgsReceived, []byte(`{"params": {"filters":[ {"op":"eq","n": "2"} ], "more":1.0}}`))
			}
		}
	}
	if decisions != 5 {
		t.Errorf("%d decisions, want 5", decisions)
	}
}

func TestChecksCanBeTurnedOff(t *testing.T) {
	c, _ := schemaServer(t, func(o *Options) {
		if err := o.ReadSettings(settings("TG_VALIDATE_ARGS=0")); err != nil {
			t.Fatal(err)
		}
	})
	if got := texts(t, c.tool("call_tool", `{"server":"s","tool":"old","args":{"n":"x"}}`)); got[0] != `{"n":"x"}` {
		t.Errorf("the backend got %q", got)
	}
}

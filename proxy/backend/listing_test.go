//go:build unix

package backend_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/wire"
)

func names(b *backend.Backend) []string {
	var out []string
	for _, t := range b.Tools() {
		name, _ := wire.GetString(t, "name")
		out = append(out, name)
	}
	return out
}

// page is a script block that answers one page of n tools.
func page(cursor, next string, first, n int) string {
	var tools []string
	for i := first; i < first+n; i++ {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d"}`, i))
	}
	end := ""
	if next != "" {
		end = fmt.Sprintf(`,"nextCursor":%q`, next)
	}
	return strings.TrimSpace("on tools/list "+cursor) + "\n" +
		fmt.Sprintf(`> {"jsonrpc":"2.0","id":$ID,"result":{"tools":[%s]%s}}`, strings.Join(tools, ","), end) + "\n"
}

// R2: all pages are read.
func TestAllPages(t *testing.T) {
	b := up(t, script(page("", "b", 0, 100)+page("b", "c", 100, 100)+page("c", "", 200, 100)))
	got := names(b)
	if len(got) != 300 || got[0] != "t0" || got[299] != "t299" {
		t.Errorf("%d tools: %.80v", len(got), got)
	}
	if f := b.Status().Flags; len(f) != 0 {
		t.Errorf("flags: %v", f)
	}
}

// R3: a cursor that comes again ends the reading, and what was read stays.
func TestRepeatedCursor(t *testing.T) {
	b := up(t, script(page("", "b", 0, 2)+page("b", "c", 2, 2)+page("c", "b", 4, 2)))
	if got := strings.Join(names(b), " "); got != "t0 t1 t2 t3 t4 t5" {
		t.Errorf("tools %s", got)
	}
	wantFlag(t, b, "a cursor came twice")
}

// B10: a server that never comes to an end.
func TestEndlessPages(t *testing.T) {
	b := up(t, script("on tools/list\n"+`> {"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"t$COUNT"}],"nextCursor":"c$COUNT"}}`))
	if got := len(b.Tools()); got != 1000 {
		t.Errorf("%d tools", got)
	}
	wantFlag(t, b, "1000 pages")
}

func TestPageThatFails(t *testing.T) {
	b := up(t, script(page("", "b", 0, 2)+"on tools/list b\n"+`> {"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"no page"}}`))
	if got := strings.Join(names(b), " "); got != "t0 t1" {
		t.Errorf("tools %s", got)
	}
	wantFlag(t, b, "no page")
}

func wantFlag(t *testing.T, b *backend.Backend, part string) {
	t.Helper()
	if f := strings.Join(b.Status().Flags, "\n"); !strings.Contains(f, part) {
		t.Errorf("flags %q lack %q", f, part)
	}
}

// B10 and the rows on definitions: odd ones are flagged, good ones pass as the
// bytes they are.
func TestOddTools(t *testing.T) {
	defs := []string{
		`{"name":"definitions","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"type":"string"}}}}`,
		`{"name":"anyOf","inputSchema":{"anyOf":[{"type":"object"}],"if":{},"then":{}}}`,
		`{"name":"null","inputSchema":null}`,
		`{"name":"absent"}`,
		`{"inputSchema":{"type":"object"}}`,
		`"no object"`,
		`{"name":7}`,
		`{"name":"absent","description":"the second of that name"}`,
		`{"name":"ro","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","x-mcp-header":"a b"}}`,
		`{"name":"task","execution":{"taskSupport":"required"}}`,
		`{"name":"files.read/v1:ä","outputSchema":{"$ref":"#/$defs/N","$defs":{"N":{"properties":{"n":{"$ref":"#/$defs/N"}}}}}}`,
		`{"name":"text","inputSchema":"object"}`,
	}
	b := up(t, script("on tools/list\n"+`> {"jsonrpc":"2.0","id":$ID,"result":{"tools":[`+strings.Join(defs, ",")+`],"nextCursor":null}}`))
	keep := []int{0, 1, 2, 3, 8, 9, 10, 11}
	tools := b.Tools()
	if len(tools) != len(keep) {
		t.Fatalf("%d tools, want %d: %s", len(tools), len(keep), names(b))
	}
	for i, k := range keep {
		if string(tools[i]) != defs[k] {
			t.Errorf("tool %d is %s, want %s", i, tools[i], defs[k])
		}
	}
	for _, part := range []string{"without a name", `"absent" is listed twice`, `"task" only runs as a task`, `"text" has an inputSchema`} {
		wantFlag(t, b, part)
	}
	if got := len(b.Status().Flags); got != 6 {
		t.Errorf("%d flags, want 6: %q", got, b.Status().Flags)
	}
}

func TestTaskOnlyToolIsNotSent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	b := up(t, script("on tools/list\n"+`> {"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"task","execution":{"taskSupport":"required"}},{"name":"echo"}]}}`, "-record", file))
	_, err := call(b, "task", `{}`)
	callError(t, err, backend.ErrTaskOnly, false)
	mustCall(t, b, "echo", `{}`)
	if got := linesWith(recorded(t, file), `"task"`); len(got) != 0 {
		t.Errorf("it was sent: %s", got)
	}
}

func TestNullTools(t *testing.T) {
	b := up(t, script("on tools/list\n"+`> {"jsonrpc":"2.0","id":$ID,"result":{"tools":null,"nextCursor":null}}`))
	if len(b.Tools()) != 0 || len(b.Status().Flags) != 0 {
		t.Errorf("tools %v flags %v", names(b), b.Status().Flags)
	}
}

// A server without the tools capability is asked all the same.
func TestUndeclaredTools(t *testing.T) {
	initialize := "on initialize\n" + `> {"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}` + "\n"
	b := up(t, script(initialize+page("", "", 0, 1)))
	if got := strings.Join(names(b), " "); got != "t0" {
		t.Errorf("tools %q", got)
	}
	wantFlag(t, b, "announced none")
	b = up(t, script(initialize+"on tools/list\n"+`> {"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"none"}}`))
	if st := b.Status(); st.State != backend.Up || len(b.Tools()) != 0 || len(st.Flags) != 0 {
		t.Errorf("%+v", st)
	}
}

// list_changed makes it read again.
func TestListChanged(t *testing.T) {
	once := filepath.Join(t.TempDir(), "once")
	seen := make(chan int, 10)
	spec := script("on tools/list\nonce " + once + "\n" + `> {"jsonrpc":"2.0","id":$ID,"result":{"tools":[{"name":"first"}]}}` +
		"\non tools/call\n" + `> {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\ndefault")
	b := startWith(t, spec, backend.Options{OnCatalogue: func(b *backend.Backend) { seen <- len(b.Tools()) }})
	ready(t, b)
	if n := <-seen; n != 1 {
		t.Fatalf("%d tools at first", n)
	}
	mustCall(t, b, "echo", `{}`)
	if n := <-seen; n < 5 {
		t.Errorf("%d tools after the change", n)
	}
}

// A burst of changes is one reading, or few, and never none.
func TestListChangedBurst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	note := `> {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"
	spec := script("on tools/call\n"+strings.Repeat(note, 200)+"default", "-record", file)
	seen := make(chan struct{}, 300)
	b := startWith(t, spec, backend.Options{OnCatalogue: func(*backend.Backend) { seen <- struct{}{} }})
	ready(t, b)
	<-seen
	mustCall(t, b, "echo", `{}`)
	<-seen
	if n := len(linesWith(recorded(t, file), "tools/list")); n < 2 || n > 5 {
		t.Errorf("%d readings for 200 notices", n-1)
	}
}

func TestCatalogueIsReadyWhenReadyReturns(t *testing.T) {
	var told bool
	b := startWith(t, script(""), backend.Options{OnCatalogue: func(*backend.Backend) { told = true }})
	if err := b.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !told {
		t.Error("Ready returned before the catalogue was handed out")
	}
}

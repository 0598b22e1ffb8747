//go:build unix

package proxy

import (
	"fmt"
	"strings"
	"testing"
)

// Every page of a real server's tools is indexed: 3 × 100 of them.
func TestEveryPageIsFound(t *testing.T) {
	page := func(from int, cursor, next string) string {
		var tools []string
		for i := from; i < from+100; i++ {
			tools = append(tools, fmt.Sprintf(`{"name":"tool_%d"}`, i))
		}
		return fmt.Sprintf("on tools/list%s\n> "+`{"jsonrpc":"2.0","id":$ID,"result":{"tools":[%s]%s}}`+"\n", cursor, strings.Join(tools, ","), next)
	}
	r, _ := processes(t, map[string]string{"many": page(0, "", `,"nextCursor":"p2"`) + page(100, " p2", `,"nextCursor":"p3"`) + page(200, " p3", "")}, nil)
	c := connect(t, r, latest)
	if all := joined(t, c.tool(listTool, `{}`)); !strings.HasPrefix(all, "[many] 300 tools: tool_0, ") || !strings.Contains(all, "tool_299") {
		t.Errorf("listed %.200s", all)
	}
	if found := joined(t, c.tool(searchTool, `{"query":"tool_287","limit":1}`)); !strings.HasPrefix(found, "many.tool_287\n") {
		t.Errorf("found %s", found)
	}
	if priced := joined(t, c.tool(groupsTool, `{}`)); !strings.HasPrefix(priced, "[many] 300 tools, ~") {
		t.Errorf("priced %s", priced)
	}
}

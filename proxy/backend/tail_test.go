package backend

import (
	"fmt"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	var many strings.Builder
	for i := range 50 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	for name, c := range map[string]struct {
		in    string
		n     int
		first string
	}{
		"nothing":              {"", 0, ""},
		"blank lines":          {"\n \r\n\n", 0, ""},
		"no end of line":       {"oops", 1, "oops"},
		"carriage return":      {"oops\r\n", 1, "oops"},
		"colours and controls": {"\x1b[31mred\x1b[0m\x00\n", 1, "[31mred[0m"},
		"invalid UTF-8":        {"a\xff\n", 1, "a\ufffd"},
		"the last ones":        {many.String(), 20, "line 30"},
		"endless line":         {strings.Repeat("x", 1<<20), 1, strings.Repeat("x", tailWidth)},
		"long, then short":     {strings.Repeat("x", 9000) + "\nend\n", 2, strings.Repeat("x", tailWidth)},
	} {
		var tl tail
		tl.readFrom(strings.NewReader(c.in))
		got := tl.snapshot()
		if len(got) != c.n || c.n > 0 && got[0] != c.first {
			t.Errorf("%s: %d lines %.60q, want %d from %.60q", name, len(got), got, c.n, c.first)
		}
	}
}

package shape

import (
	"fmt"
	"strings"
	"testing"
)

func TestArrayIsSummedUp(t *testing.T) {
	var items []string
	for i := range 400 {
		item := fmt.Sprintf("{ \"id\" : %d,\n  \"name\": \"a b\\\"%d\" }", i, i)
		if i%100 == 7 {
			item = strings.TrimSuffix(item, " }") + `, "error": {"id": [1, 2]} }`
		}
		items = append(items, item)
	}
	r := checkSound(t, ladder(t), "t", "[\n"+strings.Join(items, ",\n")+"\n]\n", false)
	want := "JSON array of 400 items\nkeys: id, name, error (4 of 400)\nfirst 5 items:\n"
	for i := range 5 {
		want += fmt.Sprintf(`{"id":%d,"name":"a b\"%d"}`+"\n", i, i)
	}
	want += "[390 items left out]\nlast 5 items:\n"
	for i := 395; i < 400; i++ {
		want += fmt.Sprintf(`{"id":%d,"name":"a b\"%d"}`+"\n", i, i)
	}
	if r.Text != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
}

func TestArrayItemsAreBounded(t *testing.T) {
	item := `{"name":"` + strings.Repeat("ü", 100_000) + `"}`
	r := checkSound(t, ladder(t), "t", "["+strings.Repeat(item+",", 10)+item+"]", false)
	if r.Rule != RuleJSON || r.Shown > 10*(maxLine+60)+200 {
		t.Errorf("%s: 11 items of 100,000 characters became %d", r.Rule, r.Shown)
	}
	if !strings.Contains(r.Text, "[... shortened, 100011 characters in all]") {
		t.Errorf("it is not said:\n%.700s", r.Text)
	}
}

func TestArrayOfManyKinds(t *testing.T) {
	text := "[" + strings.Repeat(`"a string of some length",[1,{"k":2}],{"a":1},null,-1.5e3,`, 300) + "true]"
	r := checkSound(t, ladder(t), "t", text, false)
	if want := "JSON array of 1501 items: 300 objects, 300 arrays, 300 strings, 601 other values\nkeys: a\n"; !strings.HasPrefix(r.Text, want) {
		t.Errorf("%s: %.300s", r.Rule, r.Text)
	}
}

func TestManyKeysAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&b, `,{"key%d":1}`, i)
	}
	r := checkSound(t, ladder(t), "t", "["+b.String()[1:]+"]", false)
	if r.Rule != RuleJSON || r.Shown > 2_000 || !strings.Contains(r.Text, " and more than 960 others\n") {
		t.Errorf("%s: %.1500s", r.Rule, r.Text)
	}
}

func TestTableIsSummedUp(t *testing.T) {
	r := checkSound(t, ladder(t), "t", csv(1500), false)
	rows := strings.Split(strings.TrimSuffix(csv(1500), "\r\n"), "\r\n")
	want := "CSV, 1500 rows of 4 columns\nheader:\n" + rows[0] + "\nfirst 5 rows:\n" + strings.Join(rows[1:6], "\n") +
		"\n[1490 rows left out]\nlast 5 rows:\n" + strings.Join(rows[1496:], "\n") + "\n"
	if r.Text != want {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
}

func TestTableRowsAreBounded(t *testing.T) {
	text := "a,b\n" + strings.Repeat("1,"+strings.Repeat("x", 5_000)+"\n", 50)
	r := checkSound(t, ladder(t), "t", text, false)
	if r.Rule != RuleCSV || r.Shown > 10*(maxLine+60)+200 {
		t.Errorf("%s: %d characters", r.Rule, r.Shown)
	}
}

func TestTableMayEndWithARemark(t *testing.T) {
	r := ladder(t).Text("t", "a,b,c\n"+strings.Repeat("1,2,3\n", 2000)+"(2000 rows)\n", false)
	if r.Rule != RuleCSV || !strings.HasSuffix(r.Text, "\n(2000 rows)\n") {
		t.Errorf("%s: %s", r.Rule, r.Text)
	}
}

func TestClean(t *testing.T) {
	pad := strings.Repeat("x", 300)
	for _, tt := range []struct {
		name, in, want string
		lossy          bool
	}{
		{"colours and titles of lines", "\x1b[1;32mok\x1b[0m \x1b[2K\x1b(Bdone\x1b[m\n" + pad, "ok done\n" + pad, false},
		{"returns", "a\r\nb\rc\r\n" + pad, "a\nb\rc\n" + pad, false},
		{"links lose their address", "\x1b]8;;http://example.org\x1b\\text\x1b]8;;\x07 of\n" + pad, "text of\n" + pad, true},
		{"what only looks like colours", "\x1b \x1b[12 \x1b]never ends\n" + pad + "\x1b", "", false},
		{"padding", "a" + strings.Repeat(" ", 300) + "\nb\t\nc", "a\nb\nc", true},
		{"a little padding is not worth it", "a" + strings.Repeat(" ", 100) + "\n" + pad, "", false},
		{"repeats", strings.Repeat("again\n", 100) + "b\nb\n", "again  [x100]\nb\nb\n", true},
		{"blank lines", "a" + strings.Repeat("\n", 300) + "b\n" + strings.Repeat("\n \n", 9), "a\n\nb\n\n", true},
		{"json keeps its lines", "[\n" + strings.Repeat("0,\n", 300) + "0]", "", false},
		{"json with returns", "{\r\n" + strings.Repeat("\r\n", 300) + "}", "{\n" + strings.Repeat("\n", 300) + "}", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.want = tt.in
			}
			r := checkSound(t, ladder(t, small), "t", tt.in, false)
			if r.Text != tt.want || r.Lossy != tt.lossy {
				t.Errorf("%s, lossy %v: %q\nwant %q", r.Rule, r.Lossy, r.Text, tt.want)
			}
		})
	}
}

// Each doubling of a text may cost about twice the time, for every rule. What
// is quadratic takes minutes here.
func TestHostileTextsAreQuick(t *testing.T) {
	n := 1 << 20
	if testing.Short() {
		n = 256 << 10
	}
	for name, part := range map[string]string{
		"hunks":           "--- a\n+++ b\n@@ -1,9 +1,9 @@\n",
		"hunk of context": " c\n",
		"open brackets":   "[",
		"brackets":        "[]",
		"quotes":          "\"",
		"backslashes":     "\\",
		"escaped quotes":  "\\\"",
		"commands":        "\x1b]",
		"sequences":       "\x1b[1;",
		"commas":          ",\"\n",
		"cells":           "a,\"b\"\n",
		"errors":          "error: \n",
		"blank":           " \n",
		"newlines":        "\n",
		"empty objects":   "{},",
		"new keys":        `{"`,
	} {
		text := strings.Repeat(part, n/len(part))
		for _, full := range []string{text, "[" + text + "]", "--- a\n+++ b\n@@ -1,999999 +1,999999 @@\n" + text, "a,b\n" + text} {
			checkSound(t, ladder(t), "t", full, false)
		}
		t.Log(name)
	}
}

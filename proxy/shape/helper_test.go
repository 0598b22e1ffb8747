package shape

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func ladder(t testing.TB, change ...func(*Options)) *Ladder {
	t.Helper()
	o := Defaults()
	for _, c := range change {
		c(&o)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// log has n lines that differ.
func log(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "step %d of the build took %d ms in worker %d\n", i+1, i*7%1000, i%4)
	}
	return b.String()
}

func jsonArray(n int) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`{"id":%d,"name":"item, \"%d\" ]","tags":["a",{"id":0}]}`, i, i))
	}
	return "[\n" + strings.Join(items, ",\n") + "\n]"
}

func csv(n int) string {
	var b strings.Builder
	b.WriteString("id,name,\"price, net\",note\r\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,\"Item, \"\"%d\"\"\",%d.50,\"two\nlines (%d\"\r\n", i, i, i, i)
	}
	return b.String()
}

// gitDiff has n files of one hunk with two changes and much context.
func gitDiff(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "diff --git a/f%d.go b/f%d.go\nindex 1..2 100644\n--- a/f%d.go\n+++ b/f%d.go\n@@ -1,24 +1,24 @@ func f%d() {\n", i, i, i, i, i)
		for j := range 10 {
			fmt.Fprintf(&b, " context line %d before the change\n", j)
		}
		fmt.Fprintf(&b, "-old %d\n+new %d\n", i, i)
		for j := range 12 {
			fmt.Fprintf(&b, " context line %d behind the change\n", j)
		}
		fmt.Fprintf(&b, "-older %d\n+newer %d\n", i, i)
	}
	return b.String()
}

// checkSound is what holds of every result of every text.
func checkSound(t *testing.T, l *Ladder, tool, text string, failed bool) Result {
	t.Helper()
	r := l.Text(tool, text, failed)
	if r.Changed != (r.Text != text) {
		t.Errorf("changed is %v", r.Changed)
	}
	if r.Lossy && !r.Changed {
		t.Error("lossy and not changed")
	}
	if n := len([]rune(strings.ToValidUTF8(r.Text, "\uFFFD"))); utf8.ValidString(text) && (r.Shown != n || r.Shown > r.Of || r.Of != utf8.RuneCountInString(text)) {
		t.Errorf("%s: shown %d of %d, the text has %d of %d", r.Rule, r.Shown, r.Of, n, utf8.RuneCountInString(text))
	}
	if utf8.RuneCountInString(r.Text) > utf8.RuneCountInString(text) {
		t.Errorf("%s: longer than what came", r.Rule)
	}
	if again := l.Text(tool, text, failed); again != r {
		t.Errorf("%s: another result the second time", r.Rule)
	}
	if !r.Lossy && r.Changed {
		bare, _ := stripANSI(text)
		if strings.ReplaceAll(bare, "\r\n", "\n") != strings.ReplaceAll(r.Text, "\r\n", "\n") {
			t.Errorf("%s: not called lossy, and more than colours and returns changed", r.Rule)
		}
	}
	return r
}

func quoted(t testing.TB, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

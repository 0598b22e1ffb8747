package shape

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

const giant = 34 << 20

// giantLines are single lines as long as the longest real result, each of a
// kind that another rule has to look at.
func giantLines() map[string]string {
	entry := `{"name":"file-0123.js","type":"file","children":[{"name":"LICENSE","type":"file"}]},`
	fill := func(s string) string { return strings.Repeat(s, giant/len(s)) }
	return map[string]string{
		"letters":        fill("x"),
		"json array":     "[" + strings.TrimSuffix(fill(entry), ",") + "]",
		"json object":    `{"a":[` + strings.TrimSuffix(fill(entry), ",") + "]}",
		"broken array":   "[" + fill(entry),
		"two scripts":    fill("aé漢😀 "),
		"commas":         fill("a,b c,"),
		"quotes":         fill(`"a" `),
		"escapes":        fill("\x1b[32mok\x1b[0m "),
		"like a diff":    "--- a @@ -1 +1 @@ " + fill("@@ -1"),
		"single bracket": "[" + fill("x"),
	}
}

// sink keeps copies alive, so that they are made.
var sink [2][]byte

// copyTwice is the yardstick: two copies into fresh memory.
func copyTwice(s string) time.Duration {
	begin := time.Now()
	sink[0], sink[1] = []byte(s), []byte(s)
	took := time.Since(begin)
	sink = [2][]byte{}
	return took
}

// BenchmarkGiantLine reports how many times copying a line of 34 MB twice it
// takes to shape it, both measured in turns.
func BenchmarkGiantLine(b *testing.B) {
	l, err := New(Defaults())
	if err != nil {
		b.Fatal(err)
	}
	keep := func(Original) (string, error) { return sampleID, nil }
	for name, text := range giantLines() {
		raw, err := json.Marshal(map[string]any{"content": []any{map[string]string{"type": "text", "text": text}}})
		if err != nil {
			b.Fatal(err)
		}
		ratio := func(b *testing.B, shape func()) {
			var shaped, copied time.Duration
			for b.Loop() {
				copied += copyTwice(text)
				begin := time.Now()
				shape()
				shaped += time.Since(begin)
			}
			b.ReportMetric(float64(shaped)/float64(copied), "x-copy-twice")
			b.ReportMetric(float64(copied.Microseconds())/float64(b.N), "µs-copy-twice")
		}
		b.Run(fmt.Sprintf("text/%s", name), func(b *testing.B) {
			ratio(b, func() { l.Text("t", text, false) })
		})
		b.Run(fmt.Sprintf("result/%s", name), func(b *testing.B) {
			ratio(b, func() { l.Apply(Call{Tool: "t"}, raw, keep) })
		})
	}
}

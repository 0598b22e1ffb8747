package shape_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"toolguardian/proxy/shape"
	"toolguardian/proxy/spill"
	"toolguardian/proxy/wire"
)

// What is numbered in a shortened result is read back from the archive under
// that number, with a giant line before it too.
func TestNumbersAreThoseOfTheArchive(t *testing.T) {
	if shape.LinePiece != spill.LinePiece {
		t.Fatalf("the ladder counts pieces of %d, the archive of %d", shape.LinePiece, spill.LinePiece)
	}
	var text strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&text, "event %d\r\n", i)
		if i == 70 {
			text.WriteString(strings.Repeat("é", 7*shape.LinePiece) + "\n")
		}
	}
	l, err := shape.New(shape.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	s, err := spill.New(spill.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	block := `{"type":"text","text":` + string(wire.Quote("first block\n"+strings.Repeat("x", 5_000))) + `}`
	raw := json.RawMessage(`{"content":[` + block + `,{"type":"text","text":` + string(wire.Quote(text.String())) + `}]}`)
	a := l.Apply(shape.Call{Tool: "t"}, raw, func(o shape.Original) (string, error) {
		return s.Put(t.Context(), spill.Original{Tool: "t", Text: o.Text, Raw: o.Raw})
	})
	blocks, err := wire.Elements(wire.Get(a.Raw, "content"))
	if err != nil || len(blocks) != 2 || a.Err != nil {
		t.Fatal(err, a.Err)
	}
	shown, _ := wire.GetString(blocks[1], "text")
	samples := regexp.MustCompile(`(?m)^(\d+): (event \d+)$`).FindAllStringSubmatch(shown, -1)
	if len(samples) != 20 {
		t.Fatalf("%d samples:\n%s", len(samples), shown)
	}
	for _, m := range samples {
		n, _ := strconv.Atoi(m[1])
		got, err := s.Read(t.Context(), spill.Query{ID: a.ID, Start: n, Max: 1})
		if err != nil || strings.TrimSuffix(got.Text, "\r") != m[2] {
			t.Errorf("line %d is %.40q, shown was %q (%v)", n, got.Text, m[2], err)
		}
	}
}

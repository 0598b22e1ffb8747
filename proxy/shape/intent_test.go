package shape

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func handbook() string {
	var b strings.Builder
	for i, word := range strings.Fields("apples boats candles drums engines flowers guitars hammers islands jackets kettles lanterns mirrors needles") {
		for j := range 20 {
			fmt.Fprintf(&b, "paragraph %d about %s: how they are stored and repaired\n", 20*i+j, word)
		}
	}
	return b.String()
}

func apply(t *testing.T, text, intent string) (shown string, a Applied) {
	t.Helper()
	raw := `{"content":[{"type":"text","text":` + quoted(t, text) + `}]}`
	var store archive
	a = ladder(t).Apply(Call{Tool: "t", Intent: intent}, json.RawMessage(raw), store.keep)
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(a.Raw, &r); err != nil {
		t.Fatal(err)
	}
	if a.Changed && len(store.kept) != 1 {
		t.Error("not kept")
	}
	return r.Content[0].Text, a
}

func TestIntentShowsWhatMatches(t *testing.T) {
	shown, a := apply(t, handbook(), "How do I repair an engine?")
	if len(a.Rules) != 1 || a.Rules[0] != RuleIntent || a.ID == "" || !strings.Contains(a.Notice, a.ID) {
		t.Errorf("%v %q", a.Rules, a.Notice)
	}
	for _, want := range []string{"[chunk ", "about engines: how", "\nsearchable terms: "} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is missing in\n%s", want, shown)
		}
	}
	if n := len(chunks(handbook())); !strings.Contains(shown, fmt.Sprintf("/%d]\n", n)) || len(shown) > intentChars+1000 {
		t.Errorf("%d chunks, %d characters:\n%s", n, len(shown), shown)
	}
	if again, _ := apply(t, handbook(), "How do I repair an engine?"); again != shown {
		t.Error("another text the second time")
	}
}

func TestIntentThatMatchesNothing(t *testing.T) {
	plain, _ := apply(t, handbook(), "")
	for _, intent := range []string{"zebra", "what is the", "?!", "x"} {
		if shown, a := apply(t, handbook(), intent); shown != plain || a.Rules[0] != RuleShell {
			t.Errorf("%q: %v", intent, a.Rules)
		}
	}
}

func TestIntentOfASmallResultChangesNothing(t *testing.T) {
	if shown, a := apply(t, "engines are here", "engines"); a.Changed || shown != "engines are here" {
		t.Errorf("%q", shown)
	}
}

func TestLongIntentIsCutAndSaid(t *testing.T) {
	long := "engines " + strings.Repeat("ü", 193) + " boats"
	shown, a := apply(t, handbook(), long)
	if !strings.Contains(a.Notice, "intent cut to its first 200 of 207 characters") || !strings.Contains(shown, "about engines") || strings.Contains(shown, "19 about boats") {
		t.Errorf("%q\n%s", a.Notice, shown)
	}
}

func TestChunksAreTheText(t *testing.T) {
	for _, text := range []string{"", "\n", log(500), strings.Repeat("é", 10_000), strings.Repeat("x", chunkChars) + "\n" + strings.Repeat("y", 2*chunkChars+1) + "\nz"} {
		list := chunks(text)
		if strings.Join(list, "") != text {
			t.Errorf("%.20q: the chunks are another text", text)
		}
		for _, c := range list {
			if n := chars(c); n == 0 || n > chunkChars+1 {
				t.Errorf("%.20q: a chunk of %d", text, n)
			}
		}
	}
}

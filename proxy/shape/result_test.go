package shape

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// archive is a Keep that remembers.
type archive struct{ kept []Original }

func (a *archive) keep(o Original) (string, error) {
	a.kept = append(a.kept, o)
	return sampleID, nil
}

const image = `{"type":"image","data":"QUJD\nRA==" , "mimeType":"image/png","x":1.0}`
const link = `{"type":"resource_link","uri":"a","n":9007199254740993}`
const embedded = `{"type":"resource","resource":{"uri":"a","text":"` + "\\ud800" + `"}}`

func TestOtherBlocksAndMembersPassByteForByte(t *testing.T) {
	text := log(1000)
	raw := `{ "_meta":{"k":1e400},"content":[ ` + image + ` , {"annotations":{"a" :1.0},"text":` + quoted(t, text) + `,"type":"text","_meta":{}},` +
		link + `,` + embedded + `],"structuredContent":{"content":` + quoted(t, text) + `},"isError":false,"é":[1, 2]}`
	var a archive
	got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(raw), a.keep)
	want := `{"_meta":{"k":1e400},"content":[` + image + `,{"annotations":{"a" :1.0},"text":` + quoted(t, ladder(t).Text("t", text, false).Text) +
		`,"type":"text","_meta":{}},` + link + `,` + embedded + `],"isError":false,"é":[1, 2]}`
	if string(got.Raw) != want {
		t.Errorf("got\n%s\nwant\n%s", got.Raw, want)
	}
	if !got.Changed || got.ID != sampleID || got.Err != nil || !slices.Equal(got.Rules, []Rule{RuleShell}) {
		t.Errorf("%+v", got)
	}
	if len(a.kept) != 1 || a.kept[0].Text != text || string(a.kept[0].Raw) != raw || a.kept[0].Of != len(text) || a.kept[0].Shown != got.Shown {
		t.Errorf("%d kept", len(a.kept))
	}
	if want := fmt.Sprintf("[shown %d of %d characters (shell); the whole is kept as %s for retrieve_spill]", got.Shown, len(text), sampleID); got.Notice != want {
		t.Errorf("notice %q, want %q", got.Notice, want)
	}
}

func TestUntouchedResultsAreTheSameBytes(t *testing.T) {
	long := quoted(t, log(1000))
	text := func(s string) string { return `{"type":"text","text":` + s + `}` }
	for name, tt := range map[string]struct{ tool, raw string }{
		"small":                 {"t", `{"content":[` + text(`"a"`) + `]}`},
		"exempt":                {"read_file", `{"content":[` + text(long) + `]}`},
		"no text":               {"t", `{"content":[{"type":"image","data":` + long + `}]}`},
		"embedded text":         {"t", `{"content":[{"type":"resource","resource":{"text":` + long + `}}]}`},
		"text of another type":  {"t", `{"content":[{"type":"audio","text":` + long + `}]}`},
		"text twice":            {"t", `{"content":[{"type":"text","text":` + long + `,"text":` + long + `}]}`},
		"type twice":            {"t", `{"content":[{"type":"text","text":` + long + `,"type":"image"}]}`},
		"text is a list":        {"t", `{"content":[{"type":"text","text":[` + long + `]}]}`},
		"content twice":         {"t", `{"content":[` + text(long) + `],"content":[]}`},
		"content is a block":    {"t", `{"content":` + text(long) + `}`},
		"more to come":          {"t", `{"resultType":"input_required","content":[` + text(long) + `]}`},
		"no object":             {"t", `[` + text(long) + `]`},
		"cut off":               {"t", `{"content":[` + text(long) + `]`},
		"something behind":      {"t", `{"content":[` + text(long) + `]}x`},
		"text and structure":    {"t", `{"content":[` + text(`"short"`) + `],"structuredContent":{"a":` + long + `}}`},
		"nothing to be shorter": {"t", `{"content":[` + text(quoted(t, strings.Repeat("x", 7000))) + `]}`},
		"only just shorter":     {"t", `{"isError":true,"content":[` + text(quoted(t, strings.Repeat("x", 400))) + `]}`},
	} {
		var a archive
		raw := json.RawMessage(tt.raw)
		got := ladder(t).Apply(Call{Tool: tt.tool}, raw, a.keep)
		if string(got.Raw) != tt.raw || &got.Raw[0] != &raw[0] || got.Changed || got.Notice != "" || got.ID != "" || len(a.kept) > 0 {
			t.Errorf("%s: changed %v by %v: %.200s", name, got.Changed, got.Rules, got.Raw)
		}
	}
}

func TestNothingIsDroppedThatIsNotKept(t *testing.T) {
	raw := json.RawMessage(`{"content":[{"type":"text","text":` + quoted(t, log(1000)) + `}]}`)
	full := errors.New("no space")
	got := ladder(t).Apply(Call{Tool: "t"}, raw, func(Original) (string, error) { return "", full })
	if &got.Raw[0] != &raw[0] || got.Changed || !errors.Is(got.Err, full) || got.Notice != "" {
		t.Errorf("%+v", got)
	}
	if got := ladder(t).Apply(Call{Tool: "t"}, raw, nil); &got.Raw[0] != &raw[0] {
		t.Error("shortened without an archive")
	}
}

func TestErrorStaysAnError(t *testing.T) {
	raw := `{"isError":true,"content":[{"type":"text","text":` + quoted(t, strings.Repeat("x", 900)) + `}],"structuredContent":{"code":7}}`
	var a archive
	got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(raw), a.keep)
	if want := `{"isError":true,"content":[{"type":"text","text":"` + strings.Repeat("x", 200) + ` [... 600 characters left out ...] ` + strings.Repeat("x", 100) + `"}]}`; string(got.Raw) != want {
		t.Errorf("got %s", got.Raw)
	}
	if len(a.kept) != 1 || string(a.kept[0].Raw) != raw {
		t.Error("the structure is not kept")
	}
}

func TestColoursAloneNeedNoArchive(t *testing.T) {
	text := "\x1b[32mok\x1b[0m " + strings.Repeat("x", 3000)
	raw := `{"content":[{"type":"text","text":` + quoted(t, text) + `}]}`
	var a archive
	got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(raw), a.keep)
	if !got.Changed || got.Notice != "" || len(a.kept) > 0 || strings.Contains(string(got.Raw), "u001b") {
		t.Errorf("%d kept, notice %q: %.100s", len(a.kept), got.Notice, got.Raw)
	}
	with := strings.TrimSuffix(raw, "}") + `,"structuredContent":{}}`
	if got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(with), a.keep); got.Changed {
		t.Error("the structure was dropped for a few colours")
	}
	many := `{"content":[{"type":"text","text":` + quoted(t, strings.Repeat(text, 9)+strings.Repeat("\x1b[32mok", 50)) + `}],"structuredContent":{}}`
	a = archive{}
	if got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(many), a.keep); got.Changed && len(a.kept) != 1 {
		t.Error("the structure was dropped and not kept")
	}
}

func TestStructureAlone(t *testing.T) {
	raw := `{"structuredContent":` + jsonArray(400) + `,"isError":false}`
	var a archive
	got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(raw), a.keep)
	want := `{"isError":false,"content":[{"type":"text","text":` + quoted(t, ladder(t).Text("t", jsonArray(400), false).Text) + `}]}`
	if string(got.Raw) != want || len(a.kept) != 1 || a.kept[0].Text != jsonArray(400) {
		t.Errorf("got %s", got.Raw)
	}
}

func TestLoneSurrogates(t *testing.T) {
	part := `\ud800 \udc00 \uD83D\uDE00 \ud83dx \u00e9\n`
	raw := `{"content":[{"type":"text","text":"` + strings.Repeat(part, 900) + `"}]}`
	var a archive
	got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(raw), a.keep)
	if !got.Changed || !json.Valid(got.Raw) || !strings.Contains(string(got.Raw), "\uFFFD \uFFFD 😀 \uFFFDx é") || string(a.kept[0].Raw) != raw {
		t.Errorf("%.300s", got.Raw)
	}
	small := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 2000) + part + `"}]}`
	if got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(small), a.keep); string(got.Raw) != small {
		t.Errorf("%.300s", got.Raw)
	}
}

// The numbers in a shortened text are lines of what is kept, across blocks.
func TestNumbersRunThroughAllBlocks(t *testing.T) {
	block := func(s string) string { return `{"type":"text","text":` + quoted(t, s) + `}` }
	raw := `{"content":[` + block("one\ntwo\nthree") + `,` + image + `,` + block("") + `,` + block(log(1000)+"[exit code: 9]\n"+log(60)) + `]}`
	var a archive
	got := ladder(t).Apply(Call{Tool: "t"}, json.RawMessage(raw), a.keep)
	lines := strings.Split(a.kept[0].Text, "\n")
	if !strings.Contains(string(got.Raw), `\n1005: [exit code: 9]\n`) || lines[1004] != "[exit code: 9]" {
		t.Errorf("line 1005 is %q: %s", lines[1004], got.Raw)
	}
}

func TestDecode(t *testing.T) {
	for _, s := range []string{`""`, `"\"\\\/\b\f\n\r\t"`, `"\u0041\u00e9\u6f22\ud83d\ude00"`, `"é漢😀"`, `"a\u0000b"`, `"\ud83d\ud83d\ude00"`, `"\udc00\ud800"`, `"\ud800\n"`, `"\\u0041"`} {
		var want string
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatal(err)
		}
		got, mended := decode(s)
		if got != want || mended != strings.Contains(want, "\uFFFD") {
			t.Errorf("%s: %q, mended %v; want %q", s, got, mended, want)
		}
	}
}

package shape

import (
	"encoding/json"
	"strings"
	"testing"

	"toolguardian/proxy/wire"
)

// tiny makes every rule apply to what a fuzzer finds.
func tiny(o *Options) {
	*o = Options{ErrorSummaryChars: 9, ShellHeadLines: 1, ShellTailLines: 1, ShellSampleLines: 1, StructKeepItems: 1, DiffContextLines: 1, CharHead: 4, CharTail: 2}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "\x1b[31m\r\n", jsonArray(12), csv(12), gitDiff(1), log(30), "a,b\n\"", "@@ -1 +1 @@", "\xff\xed\xa0\x80", strings.Repeat("e", 99)} {
		f.Add(s, false)
		f.Add(s, true)
	}
	l, usual := ladder(f, tiny), ladder(f)
	f.Fuzz(func(t *testing.T, text string, failed bool) {
		checkSound(t, l, "t", text, failed)
		checkSound(t, usual, "t", strings.Repeat(text+"\n", min(50, 1+20_000/(len(text)+1))), failed)
	})
}

func FuzzApply(f *testing.F) {
	for _, s := range []string{`{}`, `{"content":[{"type":"text","text":"` + strings.Repeat(`\ud800x\n`, 40) + `"}],"structuredContent":{"a":[1]}}`,
		`{"structuredContent":[` + strings.Repeat("1,", 40) + `1],"isError":true}`, `{"content":[5,{"type":"text"},null,"x"]}`, `{"content":null}`, `{"content":[{"text":"\`, `{"a":`} {
		f.Add([]byte(s), "word")
	}
	l := ladder(f, tiny)
	f.Fuzz(func(t *testing.T, in []byte, intent string) {
		var store archive
		a := l.Apply(Call{Tool: "t", Intent: intent}, in, store.keep)
		if !a.Changed {
			if string(a.Raw) != string(in) || len(a.Rules) > 0 {
				t.Fatalf("not changed, and %q", a.Raw)
			}
			return
		}
		if a.Shown > a.Of || a.ID != "" && (len(store.kept) != 1 || string(store.kept[0].Raw) != string(in)) {
			t.Fatalf("shown %d of %d, %d kept", a.Shown, a.Of, len(store.kept))
		}
		// The reader before the ladder lets through JSON whose strings may hold
		// bytes that are no UTF-8. What it lets through stays that.
		frame := func(result []byte) error {
			_, err := wire.Parse([]byte(`{"id":1,"result":` + string(result) + `}`))
			return err
		}
		if frame(in) != nil {
			return
		}
		if err := frame(a.Raw); err != nil {
			t.Fatalf("%q became %q: %v", in, a.Raw, err)
		}
		if wire.Get(a.Raw, "structuredContent") != nil {
			t.Fatalf("the structure is still in %q", a.Raw)
		}
	})
}

// The one pass reader agrees with encoding/json about every valid result.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"}"}],"content":[ {"type":"text","text":"\"]"} , 1.5 ,[{}] ],"isError":true }`))
	f.Add([]byte(` { "content" : null , "x" : "\\" } `))
	f.Fuzz(func(t *testing.T, in []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(in, &want) != nil || want == nil {
			return
		}
		p, ok := split(string(in))
		if !ok {
			return
		}
		if len(p.members) != len(want) {
			t.Fatalf("%d members, want %d", len(p.members), len(want))
		}
		var blocks []json.RawMessage
		if json.Unmarshal(want["content"], &blocks) != nil {
			return
		}
		if len(blocks) != len(p.blocks) {
			t.Fatalf("%d blocks, want %d", len(p.blocks), len(blocks))
		}
		for i, b := range p.blocks {
			if strings.TrimSpace(b.raw) != strings.TrimSpace(string(blocks[i])) {
				t.Errorf("block %d is %q, want %q", i, b.raw, blocks[i])
			}
		}
	})
}

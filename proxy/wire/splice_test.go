package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

const odd = `{ "n" : 9007199254740993,"f":1.0 ,"z":-0,"_meta": {"progressToken":"t", "x":1e400},"u":"` + "\xff" + `" }`

func TestSet(t *testing.T) {
	tests := []struct {
		obj, value string
		path       []string
		want       string
	}{
		{odd, `7`, []string{"_meta", "progressToken"}, strings.Replace(odd, `"t"`, `7`, 1)},
		{odd, `7`, []string{"_meta", "new"}, strings.Replace(odd, `1e400}`, `1e400,"new":7}`, 1)},
		{odd, `7`, []string{"new"}, strings.Replace(odd, `" }`, `" ,"new":7}`, 1)},
		{`{}`, `7`, []string{"a", "b"}, `{"a":{"b":7}}`},
		{`{ }`, `7`, []string{"a"}, `{ "a":7}`},
		{`{"a":null}`, `7`, []string{"a", "b"}, `{"a":{"b":7}}`},
		{`{"a":1,"\u0061":2}`, `7`, []string{"a"}, `{"a":7,"\u0061":7}`},
		{`{"a":1}  `, `{}`, []string{"q\"n"}, `{"a":1,"q\"n":{}}  `},
	}
	for _, test := range tests {
		got, err := Set([]byte(test.obj), []byte(test.value), test.path...)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, want %s (%v)", test.obj, got, test.want, err)
		}
	}
	for _, bad := range []string{``, `null`, `[]`, `{"a":1`, `{"a":"x"}`} {
		if got, err := Set([]byte(bad), []byte("1"), "a", "b"); err == nil {
			t.Errorf("%q became %s", bad, got)
		}
	}
}

func TestSetDefaultAndRemove(t *testing.T) {
	if got, err := SetDefault([]byte(odd), "f", []byte("2")); err != nil || string(got) != odd {
		t.Errorf("a member that is there was changed: %s, %v", got, err)
	}
	if got, err := SetDefault([]byte(`{"a":1}`), "b", []byte("2")); err != nil || string(got) != `{"a":1,"b":2}` {
		t.Errorf("%s, %v", got, err)
	}
	tests := []struct{ drop, want string }{
		{"", `{ "a":1.0 , "b":[ 1 ],"c":"x" }`},
		{"a", `{"b":[ 1 ],"c":"x"}`},
		{"b", `{"a":1.0,"c":"x"}`},
		{"bc", `{"a":1.0}`},
		{"abc", `{}`},
	}
	for _, test := range tests {
		got, err := Remove([]byte(tests[0].want), func(name string) bool { return strings.Contains(test.drop, name) })
		if err != nil || string(got) != test.want {
			t.Errorf("without %q: %s, %v", test.drop, got, err)
		}
	}
}

func TestTokens(t *testing.T) {
	tests := []struct{ params, token string }{
		{`{"_meta":{"progressToken":1.0}}`, `1.0`},
		{`{"_meta":{"progressToken":"\u0061"}}`, `"\u0061"`},
		{`{"_meta":{"progressToken":null}}`, ``},
		{`{"_meta":{"progressToken":{}}}`, ``},
		{`{"_meta":[]}`, ``},
		{`{"arguments":{"_meta":{"progressToken":1}}}`, ``},
		{`[]`, ``},
		{``, ``},
	}
	for _, test := range tests {
		if got := ProgressToken(json.RawMessage(test.params)); got.String() != test.token {
			t.Errorf("%s: token %q", test.params, got)
		}
	}
	got, err := SetProgressToken(nil, IntID(4))
	if err != nil || string(got) != `{"_meta":{"progressToken":4}}` {
		t.Errorf("%s, %v", got, err)
	}
	got, err = SetRequestID([]byte(`{"requestId":"x","reason":"r"}`), IntID(4))
	if err != nil || string(got) != `{"requestId":4,"reason":"r"}` {
		t.Errorf("%s, %v", got, err)
	}
	got, err = SetNotifiedToken([]byte(`{"progress":1.50,"progressToken":3}`), RawID([]byte(`"c"`)))
	if err != nil || string(got) != `{"progress":1.50,"progressToken":"c"}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestMembersStops(t *testing.T) {
	n := 0
	for m, err := range Members([]byte(`{"a":1,"b":2,"c":`)) {
		if n++; err == nil && m.Key == "b" {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d members were seen", n)
	}
	var last error
	for _, err := range Members([]byte(`{"a":1,"b":}`)) {
		last = err
	}
	if last == nil {
		t.Error("a broken object was walked without an error")
	}
}

// The invariant of every splice: apart from the value that was set, the bytes
// are those that were there, in their order; and the result is JSON.
func FuzzSet(f *testing.F) {
	f.Add([]byte(odd), "_meta")
	f.Add([]byte(`{"a":{"b":1}}`), "a")
	f.Add([]byte(`{ "a\u0062" : 1 , "ab":2}`), "ab")
	f.Fuzz(func(t *testing.T, obj []byte, name string) {
		const mark = `"\u0000mark"`
		before := bytes.Clone(obj)
		got, err := Set(obj, []byte(mark), name)
		if !bytes.Equal(obj, before) {
			t.Fatal("the argument was changed")
		}
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q is not JSON", got)
		}
		if value := Get(got, strings.ToValidUTF8(name, "\uFFFD")); value != nil && string(value) != mark {
			t.Fatalf("%q is not set in %q", name, got)
		}
		checkUntouched(t, obj, got, name, mark)
	})
}

// checkUntouched walks both objects side by side.
func checkUntouched(t *testing.T, before, after []byte, name, mark string) {
	t.Helper()
	rest := after
	var from int
	for m := range Members(before) {
		if m.Key != name {
			continue
		}
		want := append(bytes.Clone(before[from:m.Span.Start]), mark...)
		if !bytes.HasPrefix(rest, want) {
			t.Fatalf("bytes before %q were changed in %q", name, after)
		}
		rest, from = rest[len(want):], m.Span.End
	}
	if from > 0 {
		if !bytes.Equal(rest, before[from:]) {
			t.Fatalf("bytes after %q were changed in %q", name, after)
		}
		return
	}
	end := bytes.LastIndexByte(before, '}')
	if !bytes.HasPrefix(after, before[:end]) || !bytes.HasSuffix(after, before[end:]) {
		t.Fatalf("bytes around the new member were changed in %q", after)
	}
}

func FuzzRemove(f *testing.F) {
	f.Add([]byte(odd), "f")
	f.Add([]byte(`{"a":1}`), "a")
	f.Fuzz(func(t *testing.T, obj []byte, name string) {
		got, err := Remove(obj, func(n string) bool { return n == name })
		if err != nil {
			return
		}
		var kept [][]byte
		for m := range Members(obj) {
			if m.Key != name {
				kept = append(kept, obj[m.Whole.Start:m.Whole.End])
			}
		}
		i := 0
		for m, err := range Members(got) {
			if err != nil || i >= len(kept) || !bytes.Equal(got[m.Whole.Start:m.Whole.End], kept[i]) {
				t.Fatalf("member %d of %q differs (%v)", i, got, err)
			}
			i++
		}
		if i != len(kept) {
			t.Errorf("%d members of %d are left", i, len(kept))
		}
	})
}

package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

var ids = []string{`1`, `0`, `-0`, `1.0`, `1e3`, `1.5`, `9007199254740993`, `123456789012345678901234567890`,
	`"5"`, `""`, `"a\u0062\"c"`, "\"\xff\"", `null`, `true`, `[1]`, `{"a":1}`, ` 7 `}

func TestIDsComeBackExactly(t *testing.T) {
	for _, id := range ids {
		m, err := Parse([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSpace(id)
		if m.ID.String() != want {
			t.Errorf("id %s read as %s", want, m.ID)
		}
		if got, want := string(Reply(m.ID, []byte("{}"))), `{"jsonrpc":"2.0","id":`+want+`,"result":{}}`; got != want {
			t.Errorf("reply %s, want %s", got, want)
		}
	}
}

func TestIDKey(t *testing.T) {
	same := [][]string{
		{`5`, `"5"`, `5.0`, `5e0`, `0.5e1`, `"5.0"`},
		{`0`, `-0`, `"0"`},
		{`9007199254740993`, `"9007199254740993"`},
		{`9007199254740992`},
		{`"a"`, `"\u0061"`},
		{`1.5`, `"1.5"`},
		{`1e999999999`},
		{``},
		{`"5 "`},
	}
	seen := map[string]int{}
	for class, texts := range same {
		for _, text := range texts {
			key := RawID([]byte(text)).Key()
			if other, found := seen[key]; found && other != class {
				t.Errorf("%s has the key %q of another id", text, key)
			}
			if key != RawID([]byte(texts[0])).Key() {
				t.Errorf("%s and %s differ", text, texts[0])
			}
			seen[key] = class
		}
	}
}

func TestKinds(t *testing.T) {
	tests := []struct {
		raw  string
		kind Kind
		bare bool
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"m"}`, Request, false},
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, Request, false},
		{`{"jsonrpc":"2.0","method":"m","params":{}}`, Notification, false},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, Response, false},
		{`{"jsonrpc":"2.0","id":null,"error":"boom"}`, Response, false},
		{`{"id":1,"result":{}}`, Response, true},
		{`{"jsonrpc":"1.0","id":1,"result":{}}`, Response, true},
		{`{"result":{"x":1},"jsonrpc":"2.0","id":1,"future":[1.10]}`, Response, false},
	}
	for _, test := range tests {
		m, err := Parse([]byte(test.raw))
		if err != nil || m.Kind() != test.kind || m.NoVersion != test.bare || string(m.Raw) != test.raw {
			t.Errorf("%s: kind %v, no version %v, %v", test.raw, m.Kind(), m.NoVersion, err)
		}
	}
}

func TestParseFaults(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+5) + strings.Repeat("]", MaxDepth+5)
	tests := []struct {
		raw, id string
		code    int
		batch   bool
	}{
		{`5`, "", CodeInvalidRequest, false},
		{`null`, "", CodeInvalidRequest, false},
		{`"x"`, "", CodeInvalidRequest, false},
		{`hello`, "", CodeInvalidRequest, false},
		{`[]`, "", CodeInvalidRequest, true},
		{`[1`, "", CodeInvalidRequest, false},
		{`{}`, "", CodeInvalidRequest, false},
		{`{"id":7}`, "7", CodeInvalidRequest, false},
		{`{"id":7,"method":5}`, "7", CodeInvalidRequest, false},
		{`{"id":"x","method":"m"`, "\"x\"", CodeParse, false},
		{`{"method":"m","params":{"id":8},"id":9`, "", CodeParse, false},
		{`{"method":"m","params":{"id":8},"id":9,`, "9", CodeParse, false},
		{`{"id":3,"method":"m","params":` + deep + `}`, "3", CodeInvalidRequest, false},
		{`{"result":{"v":` + deep + `},"id":{"odd":[1]}}`, `{"odd":[1]}`, CodeInvalidRequest, false},
	}
	for _, test := range tests {
		m, err := Parse([]byte(test.raw))
		var bad *LineError
		if !errors.As(err, &bad) {
			t.Errorf("%.40s: %v", test.raw, err)
			continue
		}
		if bad.Code != test.code || bad.Batch != test.batch || m.ID.String() != test.id || bad.Msg.ID != m.ID {
			t.Errorf("%.40s: code %d, batch %v, id %q", test.raw, bad.Code, bad.Batch, m.ID)
		}
	}
}

func TestWithID(t *testing.T) {
	raw := `{"a": 1.10, "id" : 9007199254740993 ,"method":"m","params":{"id":2}}`
	m, err := Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a": 1.10, "id" : "r-1" ,"method":"m","params":{"id":2}}`
	if got := string(m.WithID(RawID([]byte(`"r-1"`)))); got != want {
		t.Errorf("got %s", got)
	}
	if string(m.Raw) != raw {
		t.Error("the message itself was changed")
	}
}

func TestErrors(t *testing.T) {
	tests := []struct{ raw, sent string }{
		{`{"code":-32000,"message":"m","data":{"x":1.10},"more":1}`, ``},
		{`{"message":"m","code":-32000}`, ``},
		{`"boom"`, `{"code":-32603,"message":"boom","data":"boom"}`},
		{`{"code":"E_FAIL","message":"m"}`, `{"code":-32603,"message":"m","data":{"code":"E_FAIL","message":"m"}}`},
		{`{"code":"-32000","message":"m","data":1}`, `{"code":-32603,"message":"m","data":1}`},
		{`{"code":1.5,"message":"m"}`, `{"code":-32603,"message":"m","data":{"code":1.5,"message":"m"}}`},
		{`{"code":1e99}`, `{"code":-32603,"message":"error without a message","data":{"code":1e99}}`},
		{`null`, `{"code":-32603,"message":"error without a message","data":null}`},
		{`[1]`, `{"code":-32603,"message":"error without a message","data":[1]}`},
	}
	for _, test := range tests {
		want := test.sent
		if want == "" {
			want = test.raw
		}
		got := string(ReplyError(IntID(1), ParseError(json.RawMessage(test.raw))))
		if got != `{"jsonrpc":"2.0","id":1,"error":`+want+`}` {
			t.Errorf("%s sent as %s", test.raw, got)
		}
	}
}

func TestForms(t *testing.T) {
	tests := []struct{ got, want string }{
		{string(NewRequest(IntID(3), "m", nil)), `{"jsonrpc":"2.0","id":3,"method":"m"}`},
		{string(NewRequest(IntID(3), "m", []byte(`{"a":1.0}`))), `{"jsonrpc":"2.0","id":3,"method":"m","params":{"a":1.0}}`},
		{string(NewNotification("n", []byte(`{}`))), `{"jsonrpc":"2.0","method":"n","params":{}}`},
		{string(ReplyError(ID{}, &Error{Code: -1, Message: "a\"b\n"})), `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"a\"b\n"}}`},
	}
	for _, test := range tests {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("a\"\\\x00\x1f\x7f\u2028é")
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		if err := json.Unmarshal(Quote(s), &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") {
			t.Errorf("%q came back as %q: %v", s, back, err)
		}
	})
}

// Whatever the bytes: no panic, the parts lie inside Raw, and the parts that
// encoding/json finds are the same.
func FuzzParse(f *testing.F) {
	for _, id := range ids {
		f.Add([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"m","params":{"a":[1,2]}}`))
	}
	f.Add([]byte(`{"result":{"content":[]},"id":1}`))
	f.Add([]byte(`{"id":1,"i\u0064":2,"error":"x"}`))
	f.Add([]byte(`{"id":1,"result":{"a":1,"a":2},"method":"m","params":[{"b":1},{"b":{"c":0,"\u0063":0}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Parse(raw)
		if err != nil {
			var bad *LineError
			if !errors.As(err, &bad) {
				t.Fatalf("not a LineError: %v", err)
			}
			return
		}
		if string(m.Raw) != string(raw) {
			t.Fatal("the raw bytes were changed")
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("taken for a message: %v", err)
		}
		again := m
		again.clean = false
		if err := CheckStrict(again); (err == nil) != m.clean {
			t.Errorf("Parse saw no name twice: %v; a second look: %v", m.clean, err)
		}
		if !json.Valid(m.WithID(IntID(1))) {
			t.Error("another id broke the message")
		}
		for name, part := range map[string]json.RawMessage{"params": m.Params, "result": m.Result, "error": m.Err} {
			if string(want[name]) != string(part) {
				t.Errorf("%s is %q, encoding/json says %q", name, part, want[name])
			}
		}
		if m.ID.String() != string(want["id"]) {
			t.Errorf("id is %q, encoding/json says %q", m.ID, want["id"])
		}
	})
}

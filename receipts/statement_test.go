package receipts

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func payloadOf(t testing.TB, r Receipt) string {
	t.Helper()
	return string(mustStatement(t, mustSeal(t, r)).Raw)
}

// Each case spoils one rule of the paragraph on strictness.
func TestStatementRefuses(t *testing.T) {
	c := testCommon()
	c.NotBefore = &NotBefore{Token: [32]byte{1}}
	field := Commit(FieldArgsSent, [32]byte{}, nil)
	decision := payloadOf(t, NewDecision(c, Decision{Call: testCall(), Effect: "allow", Mode: ModeEnforced}, field, Commit(FieldArgsReceived, [32]byte{}, nil)))
	heartbeat := payloadOf(t, NewHeartbeat(c))
	genesis := payloadOf(t, NewGenesis(c, HeadVkey(testLink().Origin, testPub("head")), testPub("receipt")))
	erasure := payloadOf(t, NewErasure(c, []Erased{{Seq: 1, Field: "args_sent"}}, ErasedOnRequest))
	commitment := hex.EncodeToString(field.Commitment[:])
	zero := strings.Repeat("0", 64)

	for _, tc := range []struct{ name, payload, old, new string }{
		{"not UTF-8", heartbeat, `"session":"s1"`, "\"session\":\"\xff\""},
		{"not an object", `[]`, ``, ``},
		{"null", `null`, ``, ``},
		{"empty", ``, ``, ``},
		{"two values", heartbeat, `}}`, `}}{}`},
		{"trailing comma", heartbeat, `}}`, `},}`},
		{"member twice", heartbeat, `"seq":7`, `"seq":7,"seq":7`},
		{"member twice by escape", heartbeat, `"seq":7`, `"seq":7,"\u0073eq":8`},
		{"nested member twice", heartbeat, `"mono":`, `"x":{"a":1,"a":2},"mono":`},
		{"top member twice", heartbeat, `{"_type"`, `{"_type":1,"_type"`},
		{"big integer", heartbeat, `"seq":7`, `"seq":7,"x":9007199254740992`},
		{"negative big integer", heartbeat, `"seq":7`, `"seq":7,"x":-9007199254740992`},
		{"fraction", heartbeat, `"seq":7`, `"seq":7,"x":5.0`},
		{"exponent", heartbeat, `"seq":7`, `"seq":7,"x":1e3`},
		{"leading zero", heartbeat, `"seq":7`, `"seq":07`},
		{"half surrogate", heartbeat, `"session":"s1"`, `"session":"\ud800"`},
		{"half surrogate name", heartbeat, `"seq":7`, `"seq":7,"\udc00":1`},
		{"control byte", heartbeat, `"session":"s1"`, "\"session\":\"\x01\""},
		{"nested too deep", heartbeat, `"seq":7`, `"seq":7,"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70)},
		{"_type", heartbeat, statementType, statementType + "/"},
		{"predicateType", heartbeat, predicateType, "urn:uuid:0"},
		{"format absent", heartbeat, `"format"`, `"fornat"`},
		{"format foreign", heartbeat, format, "other/1"},
		{"format without number", heartbeat, format, formatPrefix + "x"},
		{"kind absent", heartbeat, `"kind"`, `"kin"`},
		{"kind a number", heartbeat, `"kind":"heartbeat"`, `"kind":1`},
		{"origin", heartbeat, `/c/`, `/d/`},
		{"origin label", heartbeat, `agents.invalid`, `Agents.invalid`},
		{"seq a string", heartbeat, `"seq":7`, `"seq":"7"`},
		{"seq negative", heartbeat, `"seq":7`, `"seq":-7`},
		{"seq absent", heartbeat, `"seq":7,`, ``},
		{"prev short", heartbeat, `"prev":"01`, `"prev":"`},
		{"prev upper case", heartbeat, `"prev":"010203`, `"prev":"01020A`},
		{"keySeq null", heartbeat, `"keySeq":0`, `"keySeq":null`},
		{"subject absent", heartbeat, `"subject"`, `"subjects"`},
		{"subject empty", heartbeat, heartbeat[strings.Index(heartbeat, `[`) : strings.Index(heartbeat, `]`)+1], `[]`},
		{"subject an object", heartbeat, heartbeat[strings.Index(heartbeat, `[`) : strings.Index(heartbeat, `]`)+1], `{}`},
		{"subject prev differs", heartbeat, `"sha256":"01`, `"sha256":"02`},
		{"subject digest short", decision, commitment, commitment[2:]},
		{"subject order", decision, `"name":"args_sent"`, `"name":"principal"`},
		{"subject twice", decision, `"name":"args_received"`, `"name":"args_sent"`},
		{"subject prev beside fields", decision, `"name":"args_received"`, `"name":"prev"`},
		{"notBefore token", heartbeat, `"token"`, `"tokem"`},
		{"notBefore checkpoint", heartbeat, `"checkpoint":"` + zero, `"checkpoint":"` + zero[1:]},
		{"notBefore a string", heartbeat, heartbeat[strings.Index(heartbeat, `"notBefore"`) : len(heartbeat)-2], `"notBefore":"x"`},
		{"headKey absent", genesis, `"headKey"`, `"headkey"`},
		{"headKey id", genesis, `+`, `+0`},
		{"receiptKey unpadded", genesis, `="}}`, `"}}`},
		{"receiptKey small order", genesis, b64(testPub("receipt")), b64(make([]byte, 32))},
		{"erased absent", erasure, `"erased"`, `"rased"`},
		{"erased without field", erasure, `"field":"args_sent"`, `"feld":"args_sent"`},
		{"erased seq", erasure, `"erased":[{"seq":1`, `"erased":[{"seq":-1`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spoiled := strings.Replace(tc.payload, tc.old, tc.new, 1)
			if tc.old != "" && spoiled == tc.payload {
				t.Fatalf("%q is not in %s", tc.old, tc.payload)
			}
			if _, err := ParseStatement([]byte(spoiled)); !errors.Is(err, ErrMalformed) {
				t.Errorf("got %v for %s", err, spoiled)
			}
		})
	}
}

// Order, white space and unknown members are free; another value than a
// checked one is nobody's business here.
func TestStatementAccepts(t *testing.T) {
	p := payloadOf(t, NewHeartbeat(testCommon()))
	for _, tc := range []struct{ name, old, new string }{
		{"white space", `,"seq"`, " ,\n\t\"seq\" "},
		{"unknown member", `"seq":7`, `"seq":7,"new":{"deep":[1,null,true]}`},
		{"unknown kind", `"kind":"heartbeat"`, `"kind":"dream"`},
		{"strange session", `"session":"s1"`, `"session":{"a":[]}`},
		{"strange time", `"time":{`, `"time":{"x":false,`},
		{"escaped checked name", `"seq":7`, `"\u0073eq":7`},
		{"whole surrogate pair", `"session":"s1"`, `"session":"\ud83d\ude00"`},
		{"largest integer", `"seq":7`, `"seq":9007199254740991`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changed := strings.Replace(p, tc.old, tc.new, 1)
			if changed == p {
				t.Fatalf("%q is not in %s", tc.old, p)
			}
			if _, err := ParseStatement([]byte(changed)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNewerFormatIsUnknownVersion(t *testing.T) {
	p := strings.Replace(payloadOf(t, NewHeartbeat(testCommon())), format, formatPrefix+"2", 1)
	if _, err := ParseStatement([]byte(p)); !errors.Is(err, ErrVersion) || errors.Is(err, ErrMalformed) {
		t.Errorf("got %v", err)
	}
}

func TestHeadPublicKey(t *testing.T) {
	pub := testPub("head")
	good := HeadVkey("example.org/c/x", pub)
	if got, err := HeadPublicKey(good); err != nil || !bytes.Equal(got, pub) {
		t.Fatalf("%x, %v", got, err)
	}
	small := HeadVkey("n", make([]byte, 32))
	for _, bad := range []string{"", "a", "a+b", good + "=", good + "\n", strings.Replace(good, "example", "Example", 1),
		strings.ToUpper(good), small, HeadVkey("", pub)} {
		if _, err := HeadPublicKey(bad); err == nil {
			t.Errorf("accepted %q", bad)
		}
	}
}

func FuzzParseStatement(f *testing.F) {
	for _, k := range everyKind() {
		f.Add([]byte(payloadOf(f, k.r)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStatement(b)
		if err != nil {
			return
		}
		var got struct {
			Predicate struct {
				Seq  uint64
				Prev string
			}
		}
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		// encoding/json folds case, so only an exact name may be compared.
		if bytes.Count(bytes.ToLower(b), []byte(`seq`)) == 2 && got.Predicate.Seq != s.Seq {
			t.Errorf("seq %d, encoding/json says %d", s.Seq, got.Predicate.Seq)
		}
	})
}

func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{}`, `[1,2.5e-3,"\ud83d\ude00",{"a":[{}],"b":null}]`, `01`, `-`, `"\u12"`, `{"a":1,}`, "\"\x7f\"", `1 2`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := scanner{b: b, maxDepth: maxCommittedDepth}
		err := s.document()
		if (err == nil) != json.Valid(b) {
			t.Fatalf("%q: ours %v, encoding/json valid %v", b, err, json.Valid(b))
		}
	})
}

// What a statement hands out beside its judged members equals a look-up by path.
func TestSessionAndCall(t *testing.T) {
	call := Call{ID: "c1", Server: "files", Tool: "read"}
	c := testCommon()
	c.Session = "s\"1"
	for _, r := range []Receipt{
		NewHeartbeat(c),
		NewOutcome(c, Outcome{Call: call, Status: StatusOK}),
	} {
		s := mustStatement(t, mustSeal(t, r))
		if s.Session() != s.Text("session") || s.CallID() != s.Text("call", "id") || s.Session() == "" {
			t.Errorf("session %q, call %q in %s", s.Session(), s.CallID(), s.Raw)
		}
	}
}

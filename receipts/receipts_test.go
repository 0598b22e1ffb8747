package receipts

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

var testTime = time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)

// testKey derives a key from a name, so that every run signs the same bytes.
func testKey(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func testPub(name string) ed25519.PublicKey {
	return testKey(name).Public().(ed25519.PublicKey)
}

func testCommon() Common {
	return Common{Session: "s1", Capture: CaptureProxy, Version: "1.0.0", Time: Time{Wall: testTime, Mono: 5 * time.Second}}
}

func testCall() Call {
	return Call{ID: "c1", Server: "files", Tool: "read", RPC: json.RawMessage(`9007199254740993`)}
}

func testLink() Link {
	return Link{Origin: Origin("agents.invalid", testPub("head")), Seq: 7, Prev: [32]byte{1, 2, 3}, KeySeq: 0}
}

func mustSeal(t testing.TB, r Receipt) []byte {
	t.Helper()
	line, err := Seal(r, testLink(), testKey("receipt"))
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func mustStatement(t testing.TB, line []byte) *Statement {
	t.Helper()
	e, err := ParseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Verify(testPub("receipt")); err != nil {
		t.Fatal(err)
	}
	s, err := ParseStatement(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func everyKind() []struct {
	r   Receipt
	own string // the kind's own members, in the order of the page's table
} {
	c := testCommon()
	d := Decision{Call: testCall(), Effect: "ask", Rule: "r", Mode: ModeEnforced, Answered: &Answered{By: AnsweredDialog, Shown: ShownFull}}
	out := Outcome{Call: testCall(), Status: StatusOK, Duration: time.Millisecond, Changes: []string{"trimmed"}}
	head := HeadVkey(testLink().Origin, testPub("head"))
	pub := testPub("receipt")
	f := Commit(FieldArgsSent, [32]byte{9}, []byte(`{}`))
	p := Commit(FieldPrincipal, [32]byte{8}, []byte("someone"))
	return []struct {
		r   Receipt
		own string
	}{
		{NewGenesis(c, head, pub), "headKey receiptKey"},
		{NewRotation(c, head, pub), "headKey receiptKey"},
		{NewSuccessor(c, head, pub, Old{Origin: "x", Size: 3}, "note\n", "rolled back"), "headKey old receiptKey reason witnessHead"},
		{NewSessionOpen(c, "2025-06-18", time.Minute, p), "fields heartbeat protocol"},
		{NewSessionClose(c, EndInterrupted), "end"},
		{NewDecision(c, d, f), "answered call effect fields mode policy rule"},
		{NewDenied(c, d, f), "answered call effect fields mode policy rule"},
		{NewRefused(c, d, RefusedLoop), "answered call effect mode policy reason rule"},
		{NewQuestion(c, testCall(), "dialog", "asked"), "call outcome via"},
		{NewAnswer(c, testCall(), "dialog", "yes"), "call outcome via"},
		{NewOutcome(c, out, f), "call changes fields micros status"},
		{NewLate(c, out), "call changes micros status"},
		{NewGap(c, Gap{Count: 3, Reason: "no space"}), "count reason"},
		{NewGap(c, Gap{From: testTime, To: testTime, Reason: "no space"}), "from reason to"},
		{NewHeartbeat(c), ""},
		{NewChanged(c, ChangedPolicy, [32]byte{1}, [32]byte{2}), "now was what"},
		{NewErasure(c, []Erased{{Seq: 4, Field: "args_sent"}}, ErasedByCrash), "erased reason"},
		{NewPrune(c, 4, [32]byte{1}, [32]byte{2}), "kept"},
		{NewRecovered(c, "00000000000000000000.jsonl", 10, 20), "bytes offset segment"},
		{NewStamped(c, [32]byte{5}), "commitment"},
	}
}

func TestKindsTable(t *testing.T) {
	common := strings.Fields("format kind id origin seq prev keySeq time session capture version")
	for _, k := range everyKind() {
		t.Run(string(k.r.Kind), func(t *testing.T) {
			s := mustStatement(t, mustSeal(t, k.r))
			var got struct {
				Type      string `json:"_type"`
				Predicate map[string]json.RawMessage
			}
			if err := json.Unmarshal(s.Raw, &got); err != nil {
				t.Fatal(err)
			}
			want := slices.Sorted(slices.Values(append(common[:len(common):len(common)], strings.Fields(k.own)...)))
			if have := slices.Sorted(maps.Keys(got.Predicate)); !slices.Equal(have, want) {
				t.Errorf("members\n have %v\n want %v", have, want)
			}
			if s.Kind != k.r.Kind || s.Seq != 7 || s.Origin != testLink().Origin || s.Prev != testLink().Prev {
				t.Errorf("parsed %+v", s)
			}
			if s.Kind.BringsKeys() != (s.ReceiptKey != nil) {
				t.Errorf("receipt key of %s: %x", s.Kind, s.ReceiptKey)
			}
		})
	}
}

func TestGolden(t *testing.T) {
	var lines []byte
	for i, k := range everyKind() {
		k.r.ID = "019cb7d1-0000-7000-8000-00000000000" + string("0123456789abcdefghij"[i])
		lines = append(append(lines, mustSeal(t, k.r)...), '\n')
	}
	file := filepath.Join("testdata", "kinds.jsonl")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, lines, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(lines, want) {
		t.Error("the writer no longer writes the lines of testdata/kinds.jsonl")
	}
}

func TestSubjectsInOrder(t *testing.T) {
	salt := [32]byte{1}
	var fields []Committed
	for _, f := range []FieldID{FieldPrincipal, FieldArgsReceived, FieldArgsSent} {
		fields = append(fields, Commit(f, salt, []byte("x")))
	}
	s := mustStatement(t, mustSeal(t, NewDecision(testCommon(), Decision{Call: testCall(), Effect: "allow", Mode: ModeAdvised}, fields...)))
	var names []string
	for _, sub := range s.Subjects {
		names = append(names, sub.Name)
	}
	if got := strings.Join(names, " "); got != "args_sent args_received principal" {
		t.Errorf("subjects %s", got)
	}
}

func TestSealRefuses(t *testing.T) {
	c := testCommon()
	one := Commit(FieldArgsSent, [32]byte{}, nil)
	badCapture := c
	badCapture.Capture = "camera"
	var erased []Erased
	for i := range 1000 {
		erased = append(erased, Erased{Seq: uint64(i), Field: "args_sent"})
	}
	for name, r := range map[string]Receipt{
		"count beyond 2^53-1": NewGap(c, Gap{Count: 1 << 53}),
		"unknown end":         NewSessionClose(c, "maybe"),
		"unknown capture":     NewHeartbeat(badCapture),
		"field twice":         NewDecision(c, Decision{Effect: "allow", Mode: ModeEnforced}, one, one),
		"field without name":  NewDecision(c, Decision{Effect: "allow", Mode: ModeEnforced}, Committed{Field: 99, Commitment: [32]byte{1}}),
		"no commitment":       NewDecision(c, Decision{Effect: "allow", Mode: ModeEnforced}, Committed{Field: 1}),
		"key of another":      NewGenesis(c, HeadVkey("agents.invalid/c/"+strings.Repeat("0", 32), testPub("head")), testPub("receipt")),
		"short receipt key":   NewGenesis(c, HeadVkey(testLink().Origin, testPub("head")), testPub("receipt")[:31]),
		"too long":            NewErasure(c, erased, ErasedOnRequest),
		"no kind":             {Capture: CaptureProxy},
	} {
		if line, err := Seal(r, testLink(), testKey("receipt")); err == nil {
			t.Errorf("%s: sealed %s", name, line)
		}
	}
	if _, err := Seal(NewHeartbeat(c), Link{Origin: "no origin"}, testKey("receipt")); err == nil {
		t.Error("sealed into a chain without a proper origin")
	}
	if _, err := Seal(NewHeartbeat(c), Link{Origin: testLink().Origin, Seq: 1 << 53}, testKey("receipt")); err == nil {
		t.Error("sealed at a seq beyond 2^53-1")
	}
}

func TestForeignStringsAreCut(t *testing.T) {
	for name, tc := range map[string]struct {
		in, want string
		original int
	}{
		"short":            {"read", "read", 0},
		"exactly 128":      {strings.Repeat("a", 128), strings.Repeat("a", 128), 0},
		"129":              {strings.Repeat("a", 129), strings.Repeat("a", 128), 129},
		"rune on boundary": {strings.Repeat("a", 127) + "é" + "b", strings.Repeat("a", 127), 130},
		"not UTF-8":        {"a\xffb", `a\xffb`, 3},
		"replacement rune": {"a\ufffdb", "a\ufffdb", 0},
		"control bytes":    {"a\x00\n\"\\", "a\x00\n\"\\", 0},
	} {
		t.Run(name, func(t *testing.T) {
			call := testCall()
			call.Tool = tc.in
			r := NewOutcome(testCommon(), Outcome{Call: call, Status: StatusOK})
			s := mustStatement(t, mustSeal(t, r))
			if got := s.Text("call", "tool"); got != tc.want {
				t.Errorf("tool %q, want %q", got, tc.want)
			}
			if r.Cut["call.tool"] != tc.original {
				t.Errorf("cut %d, want %d", r.Cut["call.tool"], tc.original)
			}
		})
	}
}

// The worst strings a client can choose still fit one line.
func TestWorstCaseFits(t *testing.T) {
	evil := strings.Repeat("\x01", 200)
	c := testCommon()
	c.Session, c.Version, c.Traceparent = evil, evil, evil
	c.Client = &Client{Name: evil, Version: evil}
	c.NotBefore = &NotBefore{}
	call := Call{ID: evil, Server: evil, Tool: evil, RPC: json.RawMessage(evil)}
	changes := slices.Repeat([]string{evil}, 100)
	var fields []Committed
	for _, f := range Fields() {
		fields = append(fields, Commit(f, [32]byte{}, []byte("\xff")))
	}
	line := mustSeal(t, NewOutcome(c, Outcome{Call: call, Status: StatusUnknown, Changes: changes}, fields...))
	if more := mustStatement(t, line).Value("more"); len(more) == 0 {
		t.Error("changes left out are not counted")
	}
	mustSeal(t, NewRefused(c, Decision{Call: call, Effect: "deny", Rule: evil, Mode: ModeEnforced}, RefusedLimit, fields...))
}

func TestNewID(t *testing.T) {
	u, err := uuid.Parse(NewID(testTime))
	if err != nil || u.Version() != 7 || u.Variant() != uuid.RFC4122 {
		t.Fatalf("%v version %d: %v", u, u.Version(), err)
	}
	if sec, nsec := u.Time().UnixTime(); time.Unix(sec, nsec).UnixMilli() != testTime.UnixMilli() {
		t.Errorf("id holds %v, want %v", time.Unix(sec, nsec), testTime)
	}
	if a, b := NewID(testTime), NewID(testTime); a == b {
		t.Error("two ids are equal")
	}
}

func TestRPCIdSurvives(t *testing.T) {
	for _, id := range []string{`1`, `9007199254740993`, `1.0`, `-0`, `"a\ud800b"`, `null`, `1e400`} {
		call := testCall()
		call.RPC = json.RawMessage(id)
		s := mustStatement(t, mustSeal(t, NewOutcome(testCommon(), Outcome{Call: call, Status: StatusOK})))
		if got := s.Text("call", "rpc"); got != id {
			t.Errorf("rpc %s came back as %s", id, got)
		}
	}
}

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

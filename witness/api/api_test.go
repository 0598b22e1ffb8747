package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"toolguardian/chain/tlog"
)

func testSigner(t testing.TB, name string, typ tlog.KeyType) *tlog.Signer {
	t.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := tlog.NewSigner(name, typ, priv)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each refusal travels from one end to the other as itself: one table.
func TestErrorsTravel(t *testing.T) {
	for _, want := range []error{ErrBadRequest, ErrForbidden, ErrUnknownOrigin, ErrTooLarge, ErrUnprocessable, ErrInternal, ErrUnavailable} {
		err := fmt.Errorf("in some place: %w", want)
		resp := &http.Response{StatusCode: Status(err), Header: http.Header{}}
		if got := ErrorOf(resp, []byte("why\n")); !errors.Is(got, want) || !strings.Contains(got.Error(), "why") {
			t.Errorf("%v travels as %d and arrives as %v", want, resp.StatusCode, got)
		}
	}
	conflict := &http.Response{StatusCode: Status(ErrConflict{Size: 7}), Header: http.Header{"Content-Type": {ContentTypeSize}}}
	var c ErrConflict
	if err := ErrorOf(conflict, []byte("7\n")); !errors.As(err, &c) || c.Size != 7 {
		t.Errorf("a conflict arrives as %v", err)
	}
	limited := &http.Response{StatusCode: Status(ErrRateLimited{}), Header: http.Header{"Retry-After": {"9"}}}
	var l ErrRateLimited
	if err := ErrorOf(limited, nil); !errors.As(err, &l) || l.RetryAfter != 9*time.Second {
		t.Errorf("a rate limit arrives as %v", err)
	}
	if got := Status(errors.New("anything")); got != 500 {
		t.Errorf("an unknown error is %d, want 500", got)
	}
	if err := errorOf(&http.Response{StatusCode: 404}, nil, false); errors.Is(err, ErrUnknownOrigin) || !errors.Is(err, ErrNotFound) {
		t.Errorf("a read's 404 is %v, want ErrNotFound alone", err)
	}
}

// A conflict without its body or type must not send a client to size 0.
func TestBadConflicts(t *testing.T) {
	for _, test := range []struct{ kind, body string }{
		{ContentTypeSize, ""}, {ContentTypeSize, "7"}, {ContentTypeSize, "07\n"}, {ContentTypeSize, "-1\n"},
		{ContentTypeSize, "7\n\n"}, {"text/plain", "7\n"},
	} {
		resp := &http.Response{StatusCode: 409, Header: http.Header{"Content-Type": {test.kind}}}
		if err := ErrorOf(resp, []byte(test.body)); errors.As(err, new(ErrConflict)) || !errors.Is(err, ErrInternal) {
			t.Errorf("409 %q of type %q is %v, want ErrInternal", test.body, test.kind, err)
		}
	}
}

func sampleLeaves(t testing.TB) []Leaf {
	head := testSigner(t, "agents.invalid/c/00000000000000000000000000000000", tlog.KeyEd25519)
	origin := head.Vkey().Name
	note, err := NewEnrol(head.Vkey()).Sign(head)
	if err != nil {
		t.Fatal(err)
	}
	event, err := Event{Origin: origin, Log: "w.example/log", Size: 1, State: StateOpen, Heartbeat: 60, After: 0}.Sign(head)
	if err != nil {
		t.Fatal(err)
	}
	log := testSigner(t, "w.example/log", tlog.KeyEd25519)
	cp := tlog.Checkpoint{Origin: "w.example/log", Size: 3, Root: tlog.Hash{1}}
	sig, err := log.Sign(cp.Text())
	if err != nil {
		t.Fatal(err)
	}
	body := TimeBody{Size: 3, Root: cp.Root, Sig: sig, Authority: "a.example", Token: tlog.Hash{2},
		Blobs: []BlobRef{{Hash: tlog.Hash{3}, Kind: BlobCert}, {Hash: tlog.Hash{4}, Kind: BlobCRL}}}
	return []Leaf{
		{Type: LeafKey, Origin: origin, Body: note},
		{Type: LeafHead, Origin: origin, Prev: At(0), Keys: At(0), Proof: []tlog.Hash{{1}, {2}}, Body: []byte("x\n\ny")},
		{Type: LeafHead, Origin: origin, Prev: At(1), Keys: At(0)},
		{Type: LeafEvent, Origin: origin, Prev: At(1<<63 - 1), Keys: At(0), Body: event},
		{Type: LeafTime, Origin: "w.example/log", Body: body.Bytes()},
		{Type: LeafShard, Origin: "w.example/log/2", Body: []byte("later")},
		{Type: "unheard-of", Origin: "x", Body: []byte{0, 0xff}},
	}
}

func TestLeafRoundTrip(t *testing.T) {
	for _, l := range sampleLeaves(t) {
		b, err := l.Bytes()
		if err != nil {
			t.Fatalf("%s: %v", l.Type, err)
		}
		got, err := ParseLeaf(b)
		if err != nil {
			t.Errorf("%s: %v", l.Type, err)
		}
		if len(l.Body) == 0 {
			got.Body = nil
		}
		if diff := cmp.Diff(l, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", l.Type, diff)
		}
	}
}

// The layout is frozen: an outsider builds a verifier from the page.
func TestLeafLayout(t *testing.T) {
	b, err := Leaf{Type: LeafHead, Origin: "o.example", Prev: At(4), Keys: Ref{}, Proof: []tlog.Hash{{}}, Body: []byte("body\n")}.Bytes()
	want := "tool-guardian/head/v1\norigin o.example\nprev 4\nkeys none\n" +
		"proof AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\nbody\n"
	if err != nil || string(b) != want {
		t.Errorf("leaf %q, %v\nwant %q", b, err, want)
	}
}

func TestBadLeaves(t *testing.T) {
	const good = "tool-guardian/head/v1\norigin o\nprev 4\nkeys 2\n\nbody"
	if _, err := ParseLeaf([]byte(good)); err != nil {
		t.Fatal(err)
	}
	zero := tlog.Hash{}.Base64()
	tests := map[string]struct {
		leaf string
		want error
	}{
		"empty":                {"", ErrMalformed},
		"no empty line":        {"tool-guardian/head/v1\norigin o\nprev 4\nkeys 2\n", ErrMalformed},
		"other domain":         {strings.Replace(good, "tool-guardian", "toolguardian", 1), ErrMalformed},
		"capital type":         {strings.Replace(good, "head", "Head", 1), ErrMalformed},
		"newer version":        {strings.Replace(good, "/v1", "/v2", 1), ErrUnknownVersion},
		"leading zero":         {strings.Replace(good, "prev 4", "prev 04", 1), ErrMalformed},
		"negative":             {strings.Replace(good, "prev 4", "prev -4", 1), ErrMalformed},
		"2^63":                 {strings.Replace(good, "prev 4", "prev 9223372036854775808", 1), ErrMalformed},
		"order":                {"tool-guardian/head/v1\nprev 4\norigin o\nkeys 2\n\n", ErrMalformed},
		"missing keys":         {"tool-guardian/head/v1\norigin o\nprev 4\n\n", ErrMalformed},
		"two spaces":           {strings.Replace(good, "origin o", "origin  o", 1), ErrMalformed},
		"space in the origin":  {strings.Replace(good, "origin o", "origin o o", 1), ErrMalformed},
		"no origin":            {strings.Replace(good, "origin o", "origin ", 1), ErrMalformed},
		"CR":                   {strings.Replace(good, "keys 2\n", "keys 2\r\n", 1), ErrMalformed},
		"a line too many":      {strings.Replace(good, "keys 2\n", "keys 2\nmore\n", 1), ErrMalformed},
		"short proof":          {strings.Replace(good, "keys 2\n", "keys 2\nproof AAAA\n", 1), ErrMalformed},
		"proof in a key leaf":  {"tool-guardian/key/v1\norigin o\nprev none\nkeys none\nproof " + zero + "\n\n", ErrMalformed},
		"64 proof lines":       {strings.Replace(good, "keys 2\n", "keys 2\n"+strings.Repeat("proof "+zero+"\n", 64), 1), ErrMalformed},
		"one byte over 65,535": {good + strings.Repeat("x", MaxLeaf-len(good)+1), ErrMalformed},
	}
	for name, test := range tests {
		if l, err := ParseLeaf([]byte(test.leaf)); !errors.Is(err, test.want) {
			t.Errorf("%s: %+v, %v; want %v", name, l, err, test.want)
		}
	}
	if _, err := ParseLeaf([]byte(good + strings.Repeat("x", MaxLeaf-len(good)))); err != nil {
		t.Errorf("65,535 bytes: %v", err)
	}
}

func TestKeyNotes(t *testing.T) {
	origin := "agents.invalid/c/00000000000000000000000000000000"
	first, second, log := testSigner(t, origin, tlog.KeyEd25519), testSigner(t, origin, tlog.KeyEd25519), testSigner(t, "w.example/log", tlog.KeyEd25519)
	a, b := first.Vkey(), second.Vkey()
	rotate := KeyNote{Act: KeyRotate, Origin: origin, FromSize: 9, Old: &a, New: &b}
	revoke := KeyNote{Act: KeyRevoke, Origin: origin, FromSize: 9, Old: &a, Since: At(3)}
	tests := []struct {
		name     string
		note     KeyNote
		by       []*tlog.Signer
		operator bool
		want     error
	}{
		{"enrol", NewEnrol(a), []*tlog.Signer{first}, false, nil},
		{"enrol by the operator", NewEnrol(a), []*tlog.Signer{log}, true, nil},
		{"enrol by another", NewEnrol(a), []*tlog.Signer{second}, false, ErrForbidden},
		{"rotate by both", rotate, []*tlog.Signer{first, second}, false, nil},
		{"rotate by the operator", rotate, []*tlog.Signer{log}, true, nil},
		{"rotate by old alone", rotate, []*tlog.Signer{first}, false, ErrForbidden},
		{"rotate by new alone", rotate, []*tlog.Signer{second}, false, ErrForbidden},
		{"revoke by the operator", revoke, []*tlog.Signer{log}, true, nil},
		{"revoke by the key", revoke, []*tlog.Signer{first}, false, ErrForbidden},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			signed, err := test.note.Sign(test.by...)
			if err != nil {
				t.Fatal(err)
			}
			k, note, err := ParseKeyNote(signed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.note, k); diff != "" {
				t.Errorf("parsed (-want +got):\n%s", diff)
			}
			operator, err := k.SignedBy(note, log.Vkey())
			if operator != test.operator || !errors.Is(err, test.want) {
				t.Errorf("signed by the operator %v, %v; want %v, %v", operator, err, test.operator, test.want)
			}
		})
	}
}

func TestBadKeyNotes(t *testing.T) {
	origin := "agents.invalid/c/00000000000000000000000000000000"
	s := testSigner(t, origin, tlog.KeyEd25519)
	v := s.Vkey()
	good := string(NewEnrol(v).Text())
	cosigner := testSigner(t, origin, tlog.KeyCosignature).Vkey()
	for name, text := range map[string]string{
		"unknown act":         strings.Replace(good, "\nenrol\n", "\nenroll\n", 1),
		"enrol from a size":   strings.Replace(good, "from-size 0", "from-size 1", 1),
		"enrol without new":   strings.Replace(good, "new "+v.String(), "new none", 1),
		"enrol with old":      strings.Replace(good, "old none", "old "+v.String(), 1),
		"enrol with since":    good + "since 4\n",
		"rotate without old":  strings.Replace(good, "\nenrol\n", "\nrotate\n", 1),
		"revoke with new":     strings.Replace(good, "\nenrol\n", "\nrevoke\n", 1),
		"another name's key":  strings.Replace(good, "\n"+origin+"\n", "\nother\n", 1),
		"a cosigner's key":    strings.Replace(good, "new "+v.String(), "new "+cosigner.String(), 1),
		"a line too many":     good + "more\n",
		"a head":              origin + "\n1\n" + tlog.Hash{}.Base64() + "\n",
		"an event":            string(Event{Origin: origin, Log: "l", State: StateOpen}.Text()),
		"only its first line": "tool-guardian/key/v1\n",
	} {
		sig, err := s.Sign([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		b := tlog.Note{Text: []byte(text), Signatures: []tlog.Signature{sig}}.Bytes()
		if _, _, err := ParseKeyNote(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
}

func TestTokens(t *testing.T) {
	log, cosigner := testSigner(t, "w/log", tlog.KeyEd25519).Vkey(), testSigner(t, "w/log/cosigner", tlog.KeyCosignature).Vkey()
	token := NewToken(log, cosigner)
	if again := NewToken(log, cosigner); again == token {
		t.Error("two tokens are alike")
	}
	text := token.String()
	got, err := ParseToken(text)
	if err != nil || got != token || !got.Matches(log, cosigner) || got.Matches(log, log) {
		t.Errorf("token %v, %v", got, err)
	}
	for _, bad := range []string{"", "tg1.", text[1:], text + "A", text[:len(text)-1], text + "=", text + "\n", strings.Replace(text, "tg1.", "tg2.", 1)} {
		if _, err := ParseToken(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("token %q: %v, want ErrMalformed", bad, err)
		} else if len(bad) > 20 && strings.Contains(err.Error(), bad[10:20]) {
			t.Errorf("the refusal tells the token: %v", err)
		}
	}
	for _, lines := range []string{"", "x\ny\n", string(KeyLines(log, cosigner)) + "more\n", string(KeyLines(cosigner, log)), strings.TrimSuffix(string(KeyLines(log, cosigner)), "\n")} {
		if _, _, err := ParseKeyLines([]byte(lines)); !errors.Is(err, ErrMalformed) {
			t.Errorf("key lines %q: %v, want ErrMalformed", lines, err)
		}
	}
}

func TestBadTimeBodies(t *testing.T) {
	var good string
	for _, l := range sampleLeaves(t) {
		if l.Type == LeafTime {
			good = string(l.Body)
		}
	}
	if _, err := ParseTimeBody([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"empty":              "",
		"no last newline":    strings.TrimSuffix(good, "\n"),
		"capital hex":        strings.Replace(good, "token 02", "token 0A", 1),
		"unknown blob":       strings.Replace(good, " crl\n", " pdf\n", 1),
		"blob without kind":  strings.Replace(good, " crl\n", "\n", 1),
		"authority with /":   strings.Replace(good, "a.example", "a/example", 1),
		"no signature":       strings.Replace(good, "sig — ", "sig ", 1),
		"size with zero":     strings.Replace(good, "size 3", "size 03", 1),
		"a line too many":    good + "more\n",
		"a line out of turn": strings.Replace(good, "authority a.example\n", "", 1) + "authority a.example\n",
	} {
		if _, err := ParseTimeBody([]byte(body)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
}

// A witness does not send its clients to somebody else.
func TestClientFollowsNoRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer elsewhere.Close()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		web := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/there", status))
		for name, client := range map[string]*http.Client{"default": nil, "its own": web.Client()} {
			c, ctx := New(web.URL, client), context.Background()
			_, err := c.Checkpoint(ctx)
			_, addErr := c.AddCheckpoint(ctx, 0, nil, []byte("x"))
			for _, err := range []error{err, addErr} {
				if err == nil || !strings.Contains(err.Error(), elsewhere.URL+"/there") {
					t.Errorf("%d, %s client: %v", status, name, err)
				}
			}
		}
		web.Close()
	}
}

// A hostile witness: whatever it answers, the client gives an error.
func TestClientAgainstHostileAnswers(t *testing.T) {
	answers := []struct {
		name   string
		status int
		body   []byte
	}{
		{"nothing", 200, nil},
		{"endless", 200, bytes.Repeat([]byte("a"), MaxBody+1)},
		{"binary", 200, []byte{0xff, 0, 1}},
		{"a redirect to nowhere", 302, nil},
		{"a status of its own", 299, []byte("ok\n")},
	}
	for _, answer := range answers {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(answer.status)
			w.Write(answer.body)
		}))
		c, ctx := New(web.URL, web.Client()), context.Background()
		calls := map[string]func() error{
			"add":         func() error { _, err := c.AddCheckpoint(ctx, 0, nil, nil); return err },
			"entry":       func() error { _, err := c.Entry(ctx, 3, 9); return err },
			"vkeys":       func() error { _, _, err := c.Vkeys(ctx); return err },
			"blob":        func() error { _, err := c.Blob(ctx, tlog.Hash{}); return err },
			"timestamp":   func() error { _, err := c.TimestampFrom(ctx, 3); return err },
			"authorities": func() error { _, err := c.TimestampAuthorities(ctx, 3); return err },
			"event":       func() error { _, err := c.Event(ctx, nil); return err },
		}
		for name, call := range calls {
			if err := call(); err == nil {
				t.Errorf("%s: %s took it", answer.name, name)
			}
		}
		web.Close()
	}
}

func TestAddRequestRoundTrip(t *testing.T) {
	for _, r := range []AddRequest{
		{Head: []byte("head")},
		{Old: 5, Proof: []tlog.Hash{{1}, {2}}, Head: []byte("a\n\nb\n")},
		{Old: 1<<63 - 1, Proof: make([]tlog.Hash, MaxProofLines), Head: []byte{}},
	} {
		got, err := ParseAddRequest(r.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

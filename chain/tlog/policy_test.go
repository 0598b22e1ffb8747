package tlog_test

import (
	"fmt"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
)

// vkeyOf is the vkey of the signer that testSigner makes for this name.
func vkeyOf(tb testing.TB, name string, t tlog.KeyType) string {
	tb.Helper()
	return testSigner(tb, name, t).Vkey().String()
}

// groupsPolicy is the example of C2SP tlog-policy with keys filled in.
func groupsPolicy(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "log %s https://log.example/\n\n", vkeyOf(tb, "log.example", tlog.KeyEd25519))
	for _, w := range []string{"X1", "X2", "X3", "Y1", "Y2", "Y3"} {
		fmt.Fprintf(&b, "witness %s %s\n", w, vkeyOf(tb, w, tlog.KeyCosignature))
		if w == "X3" {
			b.WriteString("group X-witnesses 2 X1 X2 X3\n  # the others\n\n")
		}
	}
	b.WriteString("group Y-witnesses any Y1 Y2 Y3\n\ngroup X-and-Y all X-witnesses Y-witnesses\nquorum X-and-Y\n")
	return b.String()
}

func TestPolicyGroups(t *testing.T) {
	p := mustPolicy(t, groupsPolicy(t))
	if len(p.Logs()) != 1 || len(p.Witnesses()) != 6 || p.Witnesses()[3].Name != "Y1" {
		t.Fatalf("read as %v, %v", p.Logs(), p.Witnesses())
	}
	for names, want := range map[string]bool{
		"": false, "X1": false, "X1 X2": false, "X1 X2 X3": false, "Y1": false, "X1 Y1": false, "Y1 Y2 Y3": false,
		"X1 X2 Y1": true, "X1 X3 Y3": true, "X2 X3 Y1 Y2": true, "Z": false, "X1 Z Y1": false,
	} {
		signers := []*tlog.Signer{testSigner(t, "log.example", tlog.KeyEd25519)}
		for _, name := range strings.Fields(names) {
			signers = append(signers, testSigner(t, name, tlog.KeyCosignature))
		}
		r := p.Check(signedBy(t, testCheckpoint("log.example"), signers...))
		if r.Quorum != want || r.OK() != want || r.Log == nil {
			t.Errorf("%q: %+v, want quorum %v", names, r, want)
		}
		if known := len(strings.Fields(strings.ReplaceAll(names, "Z", ""))); len(r.Cosigned) != known {
			t.Errorf("%q: %d cosigned", names, len(r.Cosigned))
		}
		for _, c := range r.Cosigned {
			if !c.Time.Equal(testTime) {
				t.Errorf("%q: %s at %v", names, c.Name, c.Time)
			}
		}
	}
}

func testCheckpoint(origin string) []byte {
	return tlog.Checkpoint{Origin: origin, Size: 5, Root: tlog.LeafHash(nil)}.Text()
}

func mustPolicy(tb testing.TB, s string) *tlog.Policy {
	tb.Helper()
	p, err := tlog.ParsePolicy([]byte(s))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// A log's signature counts for its own origin only: with two logs in a policy,
// neither may speak for the other.
func TestPolicyLogSignsOwnOriginOnly(t *testing.T) {
	a, b := testSigner(t, "a.example", tlog.KeyEd25519), testSigner(t, "b.example", tlog.KeyEd25519)
	p := mustPolicy(t, fmt.Sprintf("log %s\nlog %s\nquorum none\n", a.Vkey(), b.Vkey()))
	for origin, want := range map[string]bool{"a.example": true, "b.example": false, "c.example": false} {
		if r := p.Check(signedBy(t, testCheckpoint(origin), a)); r.OK() != want {
			t.Errorf("a's signature on %s: %+v", origin, r)
		}
	}
	if r := p.Check(signedBy(t, testCheckpoint("b.example"), a, b)); !r.OK() || r.Log.Name != "b.example" {
		t.Errorf("both on b.example: %+v", r)
	}
}

func TestPolicyBadLine(t *testing.T) {
	log, w := testSigner(t, "log.example", tlog.KeyEd25519), testSigner(t, "w.example", tlog.KeyCosignature)
	p := mustPolicy(t, fmt.Sprintf("log %s\nwitness w %s\nquorum none\n", log.Vkey(), w.Vkey()))
	n := signedBy(t, testCheckpoint("log.example"), log, w)
	n.Signatures[1].Bytes[20] ^= 1
	r := p.Check(n)
	if r.OK() || len(r.Bad) != 1 || r.Bad[0].Name != "w.example" || r.Log == nil || !r.Quorum || len(r.Cosigned) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestPolicyMLDSACountsAsNotSigned(t *testing.T) {
	log := testSigner(t, "log.example", tlog.KeyEd25519)
	pq, err := tlog.ParseVkey(mldsaVkey(t, "pq.example"))
	if err != nil {
		t.Fatal(err)
	}
	p := mustPolicy(t, fmt.Sprintf("log %s\nwitness pq %s\nquorum pq\n", log.Vkey(), pq))
	n := signedBy(t, testCheckpoint("log.example"), log)
	if r := p.Check(n); r.OK() || len(r.Ignored06) != 0 {
		t.Errorf("without its line: %+v", r)
	}
	n.Signatures = append(n.Signatures, tlog.Signature{Name: pq.Name, ID: pq.ID, Bytes: make([]byte, 2428)})
	if r := p.Check(n); r.OK() || r.Quorum || len(r.Ignored06) != 1 || len(r.Bad) != 0 || len(r.Cosigned) != 0 {
		t.Errorf("with its line: %+v", r)
	}
}

func TestPolicyOnOtherNotes(t *testing.T) {
	log := testSigner(t, "log.example", tlog.KeyEd25519)
	p := mustPolicy(t, fmt.Sprintf("log %s\nquorum none\n", log.Vkey()))
	if r := p.Check(signedBy(t, []byte("log.example\nno checkpoint\n"), log)); r.OK() || r.Log != nil {
		t.Errorf("a note that is no checkpoint: %+v", r)
	}
	if r := p.Check(tlog.Note{Text: testCheckpoint("log.example")}); r.OK() {
		t.Errorf("no signature: %+v", r)
	}
	if r := mustPolicy(t, "quorum none\n").Check(signedBy(t, testCheckpoint("log.example"), log)); r.OK() || !r.Quorum {
		t.Errorf("a policy without logs: %+v", r)
	}
}

func TestPolicyWhitespaceAndNames(t *testing.T) {
	w := vkeyOf(t, "w", tlog.KeyCosignature)
	p := mustPolicy(t, "\n \t \n#x\n \t# y\n\twitness \t none-such  "+w+"\thttps://w/ \n group  \xe2\x84\xaa\t1\tnone-such\nquorum \xe2\x84\xaa \n")
	if got := p.Witnesses(); len(got) != 1 || got[0].URL != "https://w/" || got[0].Name != "none-such" {
		t.Errorf("read as %+v", got)
	}
}

func TestBadPolicy(t *testing.T) {
	log, w, v := vkeyOf(t, "l", tlog.KeyEd25519), vkeyOf(t, "w", tlog.KeyCosignature), vkeyOf(t, "v", tlog.KeyCosignature)
	sameKey, err := tlog.NewSigner("w2", tlog.KeyCosignature, testKey("w 4"))
	if err != nil {
		t.Fatal(err)
	}
	two := "witness a " + w + "\nwitness b " + v + "\n"
	for name, s := range map[string]string{
		"empty":                    "",
		"no quorum":                "log " + log + "\n",
		"no last newline":          "quorum none",
		"two quorums":              "quorum none\nquorum none\n",
		"quorum of nobody":         "quorum a\n",
		"quorum defined below":     "quorum a\nwitness a " + w + "\n",
		"quorum of two names":      two + "quorum a b\n",
		"carriage return":          "quorum none\r\n",
		"DEL":                      "# \x7f\nquorum none\n",
		"NUL":                      "# \x00\nquorum none\n",
		"unknown word":             "logs " + log + "\nquorum none\n",
		"no-break space":           "quorum\u00a0none\n",
		"log without key":          "log\nquorum none\n",
		"log with two URLs":        "log " + log + " u v\nquorum none\n",
		"log of type 04":           "log " + w + "\nquorum none\n",
		"log twice":                "log " + log + "\nlog " + log + "\nquorum none\n",
		"bad vkey":                 "log " + log + "x\nquorum none\n",
		"witness of type 01":       "witness a " + log + "\nquorum none\n",
		"witness without name":     "witness " + w + "\nquorum none\n",
		"witness named none":       "witness none " + w + "\nquorum none\n",
		"key under two names":      "witness a " + w + "\nwitness b " + sameKey.Vkey().String() + "\nquorum none\n",
		"name twice":               "witness a " + w + "\nwitness a " + v + "\nquorum none\n",
		"group named as a witness": two + "group a any b\nquorum none\n",
		"group named none":         two + "group none any a\nquorum none\n",
		"group of none":            two + "group g any none\nquorum none\n",
		"group without members":    two + "group g any\nquorum none\n",
		"group of itself":          two + "group g any g\nquorum none\n",
		"member of two groups":     two + "group g any a\ngroup h any a\nquorum none\n",
		"member twice":             two + "group g 2 a a\nquorum none\n",
		"k is 0":                   two + "group g 0 a b\nquorum none\n",
		"k above n":                two + "group g 3 a b\nquorum none\n",
		"k with zeros":             two + "group g 01 a b\nquorum none\n",
		"k with a sign":            two + "group g +1 a b\nquorum none\n",
		"k is no number":           two + "group g most a b\nquorum none\n",
		"too long":                 "#" + strings.Repeat("x", tlog.MaxPolicy) + "\nquorum none\n",
	} {
		if _, err := tlog.ParsePolicy([]byte(s)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzPolicy holds every accepted policy to what holds for all of them: with
// nobody's signature nothing is trusted, and a quorum of nobody is "none".
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(groupsPolicy(f)))
	f.Add([]byte("quorum none\n"))
	f.Add([]byte("witness a " + vkeyOf(f, "w", tlog.KeyCosignature) + "\ngroup g 1 a\nquorum g\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := tlog.ParsePolicy(b)
		if err != nil {
			return
		}
		r := p.Check(tlog.Note{Text: testCheckpoint("log.example")})
		if r.OK() || len(r.Cosigned) > 0 {
			t.Fatalf("%q trusts an unsigned checkpoint: %+v", b, r)
		}
		asksNobody := false
		for _, line := range strings.Split(string(b), "\n") {
			items := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
			asksNobody = asksNobody || len(items) == 2 && items[0] == "quorum" && items[1] == "none"
		}
		if r.Quorum != asksNobody {
			t.Fatalf("%q: quorum of nobody %v", b, r.Quorum)
		}
	})
}

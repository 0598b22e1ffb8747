package receipts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommitmentIsSha256OfOpening(t *testing.T) {
	salt := [32]byte{1, 2, 3}
	for _, f := range Fields() {
		for _, data := range [][]byte{nil, []byte(`{"a":1}`), bytes.Repeat([]byte("é"), 1<<20)} {
			c := Commit(f, salt, data)
			opening := Opening(f, salt, data)
			if c.Commitment != sha256.Sum256(opening) || c.Size != int64(len(data)) {
				t.Errorf("%s: commitment is not of the opening", f)
			}
			o, err := ParseOpening(opening)
			if err != nil || o.Field != f.String() || o.Salt != salt || !bytes.Equal(o.Data, data) {
				t.Errorf("%s: opening came back as %q, %v", f, o.Field, err)
			}
		}
	}
}

// The same short secret under two salts, or in two fields, shows nothing.
func TestCommitmentsDoNotCompare(t *testing.T) {
	data := []byte("someone@example.org")
	a, b := Commit(FieldPrincipal, [32]byte{1}, data), Commit(FieldPrincipal, [32]byte{2}, data)
	c := Commit(FieldApprover, [32]byte{1}, data)
	if a.Commitment == b.Commitment || a.Commitment == c.Commitment {
		t.Error("equal data gave equal commitments")
	}
}

// Bytes that mean the same JSON are different bytes: nothing is normalised.
func TestCommitKeepsBytes(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, s := range []string{`{"a":1}`, `{"a":1.0}`, `{"a": 1}`, `{"a":-0}`, `{"a":0}`, `{"a":9007199254740993}`,
		`{"a":9007199254740992}`, `{}`, ``, `null`, `{"a":null}`, "{\"a\":\"\xff\"}", "{\"a\":\"\ufffd\"}"} {
		c := Commit(FieldArgsSent, [32]byte{}, []byte(s))
		if other, ok := seen[c.Commitment]; ok {
			t.Errorf("%q and %q have one commitment", s, other)
		}
		seen[c.Commitment] = s
	}
}

func TestFlags(t *testing.T) {
	many := make([]string, 5000)
	for i := range many {
		many[i] = `"` + hex.EncodeToString([]byte{byte(i), byte(i >> 8)}) + `":0`
	}
	for in, want := range map[string]string{
		``:                         "",
		`{"a":1}`:                  "",
		`plain text`:               "",
		"\xff":                     "non_utf8",
		"{\"a\":\"\xff\",\"a\":1}": "non_utf8 dup_keys",
		`{"a":1,"a":1}`:            "dup_keys",
		`{"a":1,"\u0061":1}`:       "dup_keys",
		`{"\ud800":1,"\ud801":1}`:  "",
		`{"x":{"a":1,"b":{"c":[{"d":1,"d":2}]}}}`:             "dup_keys",
		`{"a":{"b":1},"c":{"b":1}}`:                           "",
		`9007199254740991`:                                    "",
		`9007199254740992`:                                    "big_int",
		`-9007199254740992`:                                   "big_int",
		`[1e400]`:                                             "",
		`90071992547409920.5`:                                 "",
		`{"n":12345678901234567890,"n":1}`:                    "dup_keys big_int",
		`{"n":12345678901234567890`:                           "",
		"{" + strings.Join(many, ",") + "}":                   "",
		"{" + strings.Join(many, ",") + "," + many[17] + "}":  "dup_keys",
		strings.Repeat("[", 1<<20):                            "",
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000): "",
	} {
		if got := strings.Join(Commit(FieldArgsSent, [32]byte{}, []byte(in)).Flags, " "); got != want {
			t.Errorf("%.60q: flags %q, want %q", in, got, want)
		}
	}
}

func TestSha256sumChecksOpening(t *testing.T) {
	sum, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("sha256sum is not installed")
	}
	salt := [32]byte{7}
	file := filepath.Join(t.TempDir(), "7.args_sent.open")
	if err := os.WriteFile(file, Opening(FieldArgsSent, salt, []byte(`{"path":"/tmp"}`)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(sum, file).Output()
	c := Commit(FieldArgsSent, salt, []byte(`{"path":"/tmp"}`))
	if err != nil || !strings.HasPrefix(string(out), hex.EncodeToString(c.Commitment[:])) {
		t.Errorf("sha256sum says %s, %v", out, err)
	}
}

func FuzzParseOpening(f *testing.F) {
	f.Add(Opening(FieldArgsSent, [32]byte{1}, []byte("x")))
	f.Add([]byte(openingFormat))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseOpening(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if again := append(openingHeader(o.Field, o.Salt), o.Data...); !bytes.Equal(again, b) {
			t.Errorf("%q came back as %q", b, again)
		}
	})
}

package tlog_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"toolguardian/chain/tlog"
)

// The example of C2SP signed-note.
const specVkey = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"

func TestVkeyExample(t *testing.T) {
	v, err := tlog.ParseVkey(specVkey)
	if err != nil {
		t.Fatal(err)
	}
	if v.Name != "example.com/foo" || v.ID != 0x530d903a || v.Type != tlog.KeyEd25519 || v.String() != specVkey {
		t.Errorf("read as %+v", v)
	}
	made, err := tlog.NewVkey(v.Name, v.Type, v.Public())
	if err != nil || !made.Equal(v) {
		t.Errorf("made anew: %v, %v", made, err)
	}
}

func TestVkeyEqual(t *testing.T) {
	pub := testKey("k").Public().(ed25519.PublicKey)
	log, err1 := tlog.NewVkey("example.com/x", tlog.KeyEd25519, pub)
	cosigner, err2 := tlog.NewVkey("example.com/x", tlog.KeyCosignature, pub)
	other, err3 := tlog.NewVkey("example.com/y", tlog.KeyEd25519, pub)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	if !log.Equal(log) || log.Equal(cosigner) || log.Equal(other) || log.ID == cosigner.ID {
		t.Error("name, type and key must all be equal, and each changes the ID")
	}
	if _, err := tlog.NewVkey("example.com/x", tlog.KeyMLDSA44, pub); err == nil {
		t.Error("an Ed25519 key was taken for ML-DSA-44")
	}
}

func TestMLDSAVkey(t *testing.T) {
	s := mldsaVkey(t, "witness.example/pq")
	v, err := tlog.ParseVkey(s)
	if err != nil {
		t.Fatal(err)
	}
	if v.Type != tlog.KeyMLDSA44 || v.Public() != nil || v.String() != s {
		t.Errorf("read as type %02x", byte(v.Type))
	}
}

// mldsaVkey is well formed; no private key belongs to it.
func mldsaVkey(tb testing.TB, name string) string {
	tb.Helper()
	v := tlog.Vkey{Name: name, Type: tlog.KeyMLDSA44, Key: []byte(strings.Repeat("k", 1312))}
	// The ID depends on the rest; the refusal of a wrong one names the right one.
	_, err := tlog.ParseVkey(v.String())
	if err == nil {
		tb.Fatal("a vkey with ID 0 was accepted")
	}
	if _, err := fmt.Sscanf(err.Error()[strings.LastIndex(err.Error(), " ")+1:], "%x", &v.ID); err != nil {
		tb.Fatal(err)
	}
	return v.String()
}

func TestBadVkey(t *testing.T) {
	key := strings.Split(specVkey, "+")[2]
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	retyped := func(t byte) string {
		return base64.StdEncoding.EncodeToString(append([]byte{t}, raw[1:]...))
	}
	for name, s := range map[string]string{
		"empty":             "",
		"one part":          "example.com/foo",
		"two parts":         "example.com/foo+530d903a",
		"four parts":        specVkey + "+",
		"no name":           "+530d903a+" + key,
		"space in name":     strings.Replace(specVkey, "foo", "f o", 1),
		"wide space":        strings.Replace(specVkey, "foo", "f\u2003o", 1),
		"control":           strings.Replace(specVkey, "foo", "f\x01o", 1),
		"not UTF-8":         strings.Replace(specVkey, "foo", "f\xffo", 1),
		"other name":        strings.Replace(specVkey, "foo", "bar", 1),
		"other ID":          strings.Replace(specVkey, "530d903a", "530d903b", 1),
		"upper-case ID":     strings.Replace(specVkey, "530d903a", "530D903A", 1),
		"short ID":          strings.Replace(specVkey, "530d903a", "530d903", 1),
		"long ID":           strings.Replace(specVkey, "530d903a", "0530d903a", 1),
		"newline":           specVkey + "\n",
		"leading space":     " " + specVkey,
		"newline in base64": specVkey[:60] + "\n" + specVkey[60:],
		"no key":            "example.com/foo+530d903a+",
		"type alone":        "example.com/foo+530d903a+AQ==",
		"short key":         "example.com/foo+530d903a+" + base64.StdEncoding.EncodeToString(raw[:32]),
		"long key":          "example.com/foo+530d903a+" + base64.StdEncoding.EncodeToString(append(raw, 0)),
		"type 00":           "example.com/foo+530d903a+" + retyped(0),
		"type 02":           "example.com/foo+530d903a+" + retyped(2),
		"type 04, ID of 01": "example.com/foo+530d903a+" + retyped(4),
		"type 06, short":    "example.com/foo+530d903a+" + retyped(6),
		"type ff":           "example.com/foo+530d903a+" + retyped(255),
	} {
		if v, err := tlog.ParseVkey(s); err == nil {
			t.Errorf("%s: accepted as %v", name, v)
		}
	}
}

func FuzzVkey(f *testing.F) {
	f.Add(specVkey)
	f.Add(mldsaVkey(f, "x"))
	f.Add(testSigner(f, "witness.example/w", tlog.KeyCosignature).Vkey().String())
	f.Fuzz(func(t *testing.T, s string) {
		v, err := tlog.ParseVkey(s)
		if err != nil {
			return
		}
		sameBytes(t, []byte(s), []byte(v.String()))
		if v.Type == tlog.KeyEd25519 {
			if _, err := note.NewVerifier(s); err != nil {
				t.Fatalf("sumdb/note refuses %q: %v", s, err)
			}
		}
	})
}

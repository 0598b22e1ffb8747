package receipts

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLineRefuses(t *testing.T) {
	line := string(mustSeal(t, NewHeartbeat(testCommon())))
	sigAt := strings.Index(line, `"sig":"`) + len(`"sig":"`)
	padded := line[:sigAt+85] + string(line[sigAt+85]+1) + line[sigAt+86:]
	for _, tc := range []struct{ name, line string }{
		{"empty", ""},
		{"newline", line + "\n"},
		{"space before", " " + line},
		{"space inside", strings.Replace(line, `,"payloadType"`, `, "payloadType"`, 1)},
		{"members in another order", `{"signatures":[],` + line[1:]},
		{"an extra member", strings.Replace(line, `"}]}`, `"}],"x":1}`, 1)},
		{"an extra signature member", strings.Replace(line, `"}]}`, `","x":1}]}`, 1)},
		{"a second signature", strings.Replace(line, `"}]}`, `"},{"keyid":"","sig":""}]}`, 1)},
		{"another payload type", strings.Replace(line, "in-toto", "in_toto", 1)},
		{"upper-case keyid", strings.ToUpper(line)},
		{"keyid with a capital", line[:sigAt-74] + "A" + line[sigAt-73:]},
		{"trailing bits in sig", padded},
		{"unpadded payload", strings.Replace(line, `="`, `"`, 1)},
		{"carriage return in payload", line[:20] + "\r" + line[20:]},
		{"line break in payload", line[:20] + "\n" + line[20:]},
		{"escape in payload", line[:20] + `\u0041` + line[26:]},
		{"url alphabet", line[:20] + "_" + line[21:]},
		{"too long", line[:12] + strings.Repeat("AAAA", MaxLine/4) + line[12:]},
	} {
		if _, err := ParseLine([]byte(tc.line)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v", tc.name, err)
		}
	}
}

// Every byte of a line is either refused or breaks the signature: nothing that
// counts stands outside it.
func TestEveryByteCounts(t *testing.T) {
	line := mustSeal(t, NewHeartbeat(testCommon()))
	for i := range line {
		for _, flip := range []byte{1, 0x20, 0x80} {
			changed := bytes.Clone(line)
			changed[i] ^= flip
			e, err := ParseLine(changed)
			if err == nil {
				err = e.Verify(testPub("receipt"))
			}
			if err == nil {
				t.Fatalf("byte %d changed by %#x and still verified", i, flip)
			}
		}
	}
}

func TestAddedMemberBreaksSignature(t *testing.T) {
	e, err := ParseLine(mustSeal(t, NewHeartbeat(testCommon())))
	if err != nil {
		t.Fatal(err)
	}
	e.Payload = bytes.Replace(e.Payload, []byte(`"seq":7`), []byte(`"seq":7,"x":1`), 1)
	if _, err := ParseStatement(e.Payload); err != nil {
		t.Fatal(err)
	}
	if err := e.Verify(testPub("receipt")); !errors.Is(err, ErrSignature) {
		t.Errorf("got %v", err)
	}
}

func TestExactKey(t *testing.T) {
	e, err := ParseLine(mustSeal(t, NewHeartbeat(testCommon())))
	if err != nil {
		t.Fatal(err)
	}
	for name, pub := range map[string]ed25519.PublicKey{
		"sibling": testPub("sibling"), "none": nil, "short": testPub("receipt")[:31], "long": append(slices.Clone(testPub("receipt")), 0),
	} {
		if err := e.Verify(pub); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestStrictEd25519(t *testing.T) {
	msg := []byte("message")
	priv, pub := testKey("receipt"), testPub("receipt")
	sig := ed25519.Sign(priv, msg)
	if !VerifyEd25519(pub, msg, sig) {
		t.Fatal("good signature refused")
	}
	if VerifyEd25519(pub, msg, addOrder(sig)) {
		t.Error("S + L accepted")
	}
	if VerifyEd25519(pub, msg, sig[:63]) || VerifyEd25519(pub, msg, nil) {
		t.Error("short signature accepted")
	}
	for i := 0; i < len(smallOrderY); i += 64 {
		y, _ := hex.DecodeString(smallOrderY[i : i+64])
		for _, sign := range []byte{0, 0x80} {
			key := slices.Clone(y)
			key[31] |= sign
			if validKey(key) {
				t.Errorf("small-order key %x accepted", key)
			}
		}
	}
	for low := 0xed; low <= 0xff; low++ {
		key := append(append([]byte{byte(low)}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f)
		if validKey(key) {
			t.Errorf("non-canonical key %x accepted", key)
		}
	}
}

// addOrder makes the other S that a lax verifier takes for the same signature.
func addOrder(sig []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	out := slices.Clone(sig)
	s := slices.Clone(sig[32:])
	slices.Reverse(s)
	sum := new(big.Int).Add(new(big.Int).SetBytes(s), order)
	b := sum.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	copy(out[32:], b)
	return out
}

// The two y of order 8 are the roots of d·y⁴ + 2y² − 1: doubling such a point
// gives y = 0, a point of order 4.
func TestSmallOrderTable(t *testing.T) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	d := new(big.Int).ModInverse(big.NewInt(121666), p)
	d.Mul(d, big.NewInt(-121665)).Mod(d, p)
	for i := 192; i < len(smallOrderY); i += 64 {
		b, _ := hex.DecodeString(smallOrderY[i : i+64])
		slices.Reverse(b)
		y2 := new(big.Int).Exp(new(big.Int).SetBytes(b), big.NewInt(2), p)
		v := new(big.Int).Mul(d, new(big.Int).Mul(y2, y2))
		v.Add(v, new(big.Int).Lsh(y2, 1)).Sub(v, big.NewInt(1)).Mod(v, p)
		if v.Sign() != 0 {
			t.Errorf("%x is not of order 8", b)
		}
	}
}

// A note's text begins with an origin, DSSE's with "DSSEv1 ": no bytes signed
// in one domain can be read in the other.
func TestSigningDomainsNeverMeet(t *testing.T) {
	e, err := ParseLine(mustSeal(t, NewHeartbeat(testCommon())))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(e.PAE(), []byte("\n"))
	if !bytes.HasPrefix(first, []byte("DSSEv1 ")) || ValidOrigin(string(first)) {
		t.Errorf("PAE's first line %q can be an origin", first)
	}
	for _, label := range []string{"a", "agents.invalid", "DSSEv1 28 ", "DSSEv1 ", "a b"} {
		o := Origin(label, testPub("head"))
		if ValidOrigin(o) && strings.Contains(o, " ") {
			t.Errorf("origin %q holds a space", o)
		}
	}
}

func TestOpensslVerifiesPAE(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	e, err := ParseLine(mustSeal(t, NewHeartbeat(testCommon())))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(testPub("receipt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	sig := write("sig", e.Sig)
	verify := func(msg string) error {
		return exec.Command(openssl, "pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin", "-in", msg, "-sigfile", sig).Run()
	}
	if err := verify(write("good", e.PAE())); err != nil {
		t.Errorf("openssl refuses a good signature: %v", err)
	}
	if verify(write("bad", append(e.PAE(), ' '))) == nil {
		t.Error("openssl accepts a changed PAE")
	}
}

func FuzzParseLine(f *testing.F) {
	for _, k := range everyKind() {
		f.Add(mustSeal(f, k.r))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, err := ParseLine(line); err == nil && !bytes.Equal(e.Bytes(), line) {
			t.Errorf("accepted %q, which is written %q", line, e.Bytes())
		}
	})
}

func BenchmarkParseAndVerify(b *testing.B) {
	line := mustSeal(b, NewDecision(testCommon(), Decision{Call: testCall(), Effect: "allow", Mode: ModeEnforced}, Commit(FieldArgsSent, [32]byte{}, nil)))
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e, _ := ParseLine(line)
			if _, err := ParseStatement(e.Payload); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		e, _ := ParseLine(line)
		for b.Loop() {
			if err := e.Verify(testPub("receipt")); err != nil {
				b.Fatal(err)
			}
		}
	})
}

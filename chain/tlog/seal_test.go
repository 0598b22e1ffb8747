package tlog_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"testing"

	"toolguardian/chain/tlog"
)

// The first vectors of RFC 8032 section 7.1.
func TestSealVectors(t *testing.T) {
	for _, c := range []struct{ pub, msg, sig string }{
		{
			"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
		},
		{
			"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
		},
	} {
		pub, msg, sig := unhex(t, c.pub), unhex(t, c.msg), unhex(t, c.sig)
		if !tlog.ValidSeal(pub, msg, sig) {
			t.Errorf("key %s: the RFC's signature is refused", c.pub)
		}
		if tlog.ValidSeal(pub, append(msg, 'x'), sig) {
			t.Errorf("key %s: accepted for another message", c.pub)
		}
		if tlog.ValidSeal(pub, msg, addOrder(sig)) {
			t.Errorf("key %s: accepted with S + L", c.pub)
		}
	}
}

// addOrder returns sig with S + L for S, which a verifier without the bound
// S < L takes for the same signature.
func addOrder(sig []byte) []byte {
	order, _ := hex.DecodeString("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	out := bytes.Clone(sig)
	carry := 0
	for i, c := range order {
		sum := int(out[32+i]) + int(c) + carry
		out[32+i], carry = byte(sum), sum>>8
	}
	return out
}

// TestSmallOrderKeys shows that each such key is dangerous, by a signature
// that the standard library takes for many messages, and that it is refused.
func TestSmallOrderKeys(t *testing.T) {
	identity := append([]byte{1}, make([]byte, 31)...)
	forged := append(bytes.Clone(identity), make([]byte, 32)...) // R = identity, S = 0
	for _, y := range []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	} {
		for _, sign := range []byte{0, 0x80} {
			pub := unhex(t, y)
			pub[31] |= sign
			fits := 0
			for i := range 200 {
				msg := fmt.Appendf(nil, "message %d", i)
				if ed25519.Verify(pub, msg, forged) {
					fits++
				}
				if tlog.ValidSeal(pub, msg, forged) {
					t.Fatalf("%x: forged signature accepted", pub)
				}
			}
			if fits < 2 {
				t.Errorf("%x: one signature fits %d of 200 messages; the point is not of small order", pub, fits)
			}
			if _, err := tlog.NewVkey("example.com/x", tlog.KeyEd25519, pub); err == nil {
				t.Errorf("%x: taken as a key", pub)
			}
		}
	}
}

// y and y + p encode one coordinate; only the first is canonical.
func TestKeysNotCanonical(t *testing.T) {
	for low := range 19 {
		pub := bytes.Repeat([]byte{0xff}, 32)
		pub[0], pub[31] = byte(0xed+low), 0x7f
		if _, err := tlog.NewVkey("example.com/x", tlog.KeyCosignature, pub); err == nil {
			t.Errorf("p + %d: taken as a key", low)
		}
		pub[31] = 0xff
		if _, err := tlog.NewVkey("example.com/x", tlog.KeyCosignature, pub); err == nil {
			t.Errorf("p + %d with a sign: taken as a key", low)
		}
	}
}

func TestSealOfAnyLength(t *testing.T) {
	pub := testKey("seal").Public().(ed25519.PublicKey)
	sig := ed25519.Sign(testKey("seal"), []byte("m"))
	for n := range 70 {
		key, cut := make([]byte, n), make([]byte, n)
		copy(key, pub)
		copy(cut, sig)
		if tlog.ValidSeal(key, []byte("m"), sig) != (n == 32) || tlog.ValidSeal(pub, []byte("m"), cut) != (n == 64) {
			t.Errorf("length %d judged wrongly", n)
		}
	}
	if tlog.ValidSeal(nil, nil, nil) {
		t.Error("nothing is a valid signature")
	}
}

func FuzzSeal(f *testing.F) {
	f.Add([]byte(testKey("a").Public().(ed25519.PublicKey)), []byte("m"), ed25519.Sign(testKey("a"), []byte("m")))
	f.Add([]byte{}, []byte{}, []byte{})
	f.Add(make([]byte, 32), []byte{}, make([]byte, 64))
	f.Fuzz(func(t *testing.T, pub, msg, sig []byte) {
		if tlog.ValidSeal(pub, msg, sig) && !ed25519.Verify(pub, msg, sig) {
			t.Fatal("accepted what the standard library refuses")
		}
	})
}

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

package tlog_test

import (
	"crypto/ed25519"
	"fmt"
	"testing"
	"time"

	"toolguardian/chain/tlog"
)

// The signed message is spelled out here as the C2SP page has it.
func TestCosignedMessage(t *testing.T) {
	const text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
	const message = "cosignature/v1\ntime 1679315147\n" + text
	w := testSigner(t, "witness.example/w", tlog.KeyCosignature)
	s, err := w.Cosign([]byte(text), time.Unix(1679315147, 999_999_999))
	if err != nil {
		t.Fatal(err)
	}
	stamp, sig := s.Bytes[:8], s.Bytes[8:]
	if string(stamp) != "\x00\x00\x00\x00\x64\x18\x50\xcb" || !ed25519.Verify(w.Vkey().Public(), []byte(message), sig) {
		t.Errorf("time %x, or another message was signed", stamp)
	}
	if at, ok := s.Time(); !ok || !at.Equal(time.Unix(1679315147, 0)) {
		t.Errorf("states %v", at)
	}
}

func TestTimeOutOfRange(t *testing.T) {
	s := tlog.Signature{Bytes: make([]byte, 72)}
	s.Bytes[0] = 0x80
	if at, ok := s.Time(); ok {
		t.Errorf("2^63 seconds read as %v", at)
	}
	n := tlog.Note{Text: tlog.Checkpoint{Origin: "o", Root: tlog.EmptyRoot()}.Text(), Signatures: []tlog.Signature{s}}
	k := testSigner(t, "w", tlog.KeyCosignature).Vkey()
	n.Signatures[0].Name, n.Signatures[0].ID = k.Name, k.ID
	if _, err := n.Verify(k); err == nil {
		t.Error("a cosignature of 2^63 seconds verifies")
	}
}

// A cosignature does not pass for a signature, nor the other way round, even
// under one key and one name.
func TestTypesAreApart(t *testing.T) {
	priv := testKey("both")
	log, err1 := tlog.NewSigner("o", tlog.KeyEd25519, priv)
	cosigner, err2 := tlog.NewSigner("o", tlog.KeyCosignature, priv)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	text := tlog.Checkpoint{Origin: "o", Root: tlog.EmptyRoot()}.Text()
	n := signedBy(t, text, log, cosigner)
	n.Signatures[0].ID, n.Signatures[1].ID = n.Signatures[1].ID, n.Signatures[0].ID
	for _, k := range []tlog.Vkey{log.Vkey(), cosigner.Vkey()} {
		if _, err := n.Verify(k); err == nil {
			t.Errorf("type %02x took the other's signature", k.Type)
		}
	}
	if _, err := log.Cosign(text, testTime); err == nil {
		t.Error("a type 01 signer cosigned")
	}
	if _, err := cosigner.Sign(text); err == nil {
		t.Error("a type 04 signer signed")
	}
}

func TestSignerRefuses(t *testing.T) {
	log := testSigner(t, "o", tlog.KeyEd25519)
	for _, text := range []string{"", "no newline", "a\tb\n", "\xff\n"} {
		if _, err := log.Sign([]byte(text)); err == nil {
			t.Errorf("signed %q", text)
		}
	}
	w := testSigner(t, "w", tlog.KeyCosignature)
	good := tlog.Checkpoint{Origin: "o", Root: tlog.EmptyRoot()}.Text()
	if _, err := w.Cosign([]byte("any text\n"), testTime); err == nil {
		t.Error("cosigned what is no checkpoint")
	}
	if _, err := w.Cosign(append(good, "extension\n"...), testTime); err == nil {
		t.Error("cosigned an extension line")
	}
	if _, err := w.Cosign(good, time.Unix(-1, 0)); err == nil {
		t.Error("cosigned in 1969")
	}
}

func TestSignerRefusesKeys(t *testing.T) {
	priv := testKey("k")
	mixed := append(append(ed25519.PrivateKey{}, priv[:32]...), testKey("other")[32:]...)
	for name, c := range map[string]struct {
		name string
		t    tlog.KeyType
		priv ed25519.PrivateKey
	}{
		"no key":          {"o", tlog.KeyEd25519, nil},
		"short key":       {"o", tlog.KeyEd25519, priv[:63]},
		"mismatched half": {"o", tlog.KeyEd25519, mixed},
		"no name":         {"", tlog.KeyEd25519, priv},
		"name with space": {"a b", tlog.KeyEd25519, priv},
		"ML-DSA":          {"o", tlog.KeyMLDSA44, priv},
		"unknown type":    {"o", 0x02, priv},
	} {
		if s, err := tlog.NewSigner(c.name, c.t, c.priv); err == nil {
			t.Errorf("%s: signer for %s", name, fmt.Sprint(s.Vkey()))
		}
	}
}

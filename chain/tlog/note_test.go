package tlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"toolguardian/chain/tlog"
)

// The example of C2SP signed-note.
const specNote = `This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
`

// The example of C2SP signed-note with an empty line in its text.
const specPoem = `Ognuno sta solo sul cuor della terra
trafitto da un raggio di sole:

ed è subito sera.

— quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=
`

func TestNoteExample(t *testing.T) {
	n, err := tlog.ParseNote([]byte(specNote))
	if err != nil {
		t.Fatal(err)
	}
	sameBytes(t, []byte(specNote), n.Bytes())
	if string(n.Text) != "This is an example message.\n" {
		t.Errorf("text %q", n.Text)
	}
	key, err := tlog.ParseVkey(specVkey)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := n.Verify(key); err != nil || s.ID != key.ID {
		t.Errorf("Verify: %v, %v", s, err)
	}
	n.Text = append([]byte("x"), n.Text...)
	if _, err := n.Verify(key); !errors.Is(err, tlog.ErrBadSignature) {
		t.Errorf("Verify of another text: %v", err)
	}
}

func TestNoteWithEmptyLine(t *testing.T) {
	n, err := tlog.ParseNote([]byte(specPoem))
	if err != nil {
		t.Fatal(err)
	}
	sameBytes(t, []byte(specPoem), n.Bytes())
	if !strings.HasSuffix(string(n.Text), "\n\ned è subito sera.\n") || len(n.Signatures) != 1 {
		t.Errorf("text %q", n.Text)
	}
}

func TestBadNote(t *testing.T) {
	sig := strings.SplitAfter(specNote, "\n\n")[1]
	text := "text\n"
	for name, s := range map[string]string{
		"empty":                 "",
		"no signature":          text + "\n",
		"no empty line":         text + sig,
		"no newline at the end": text + "\n" + strings.TrimSuffix(sig, "\n"),
		"two newlines at end":   text + "\n" + sig + "\n",
		"carriage return":       "text\r\n\n" + sig,
		"tab":                   "te\txt\n\n" + sig,
		"not UTF-8":             "te\xffxt\n\n" + sig,
		"not UTF-8 in a name":   text + "\n" + strings.Replace(sig, "foo", "f\xffo", 1),
		"hyphen for dash":       text + "\n" + strings.Replace(sig, "—", "-", 1),
		"two spaces":            text + "\n" + strings.Replace(sig, "foo ", "foo  ", 1),
		"no name":               text + "\n— " + strings.SplitAfterN(sig, " ", 3)[2],
		"plus in a name":        text + "\n" + strings.Replace(sig, "foo", "f+o", 1),
		"base64 with a break":   text + "\n" + sig[:50] + "\n" + sig[50:],
		"base64 with a space":   text + "\n" + sig[:50] + " " + sig[50:],
		"base64 loose bits":     text + "\n" + strings.Replace(sig, "aQM=", "aQN=", 1),
		"base64 unpadded":       text + "\n" + strings.Replace(sig, "aQM=", "aQM", 1),
		"key ID alone":          text + "\n— example.com/foo Uw2QOg==\n",
		"too many":              text + "\n" + strings.Repeat(sig, 101),
		"too long":              strings.Repeat("x", tlog.MaxNote) + "\n\n" + sig,
	} {
		if n, err := tlog.ParseNote([]byte(s)); err == nil {
			t.Errorf("%s: accepted, %d signatures", name, len(n.Signatures))
		}
	}
	if n, err := tlog.ParseNote([]byte(text + "\n" + strings.Repeat(sig, 100))); err != nil || len(n.Signatures) != 100 {
		t.Errorf("100 signatures: %v", err)
	}
}

// Sixteen signatures must be read whatever they are, so ML-DSA-44's size.
func TestSixteenLongSignatures(t *testing.T) {
	n := tlog.Note{Text: []byte("text\n")}
	for i := range 16 {
		n.Signatures = append(n.Signatures, tlog.Signature{Name: fmt.Sprintf("w%d.example", i), Bytes: make([]byte, 5000)})
	}
	if _, err := tlog.ParseNote(n.Bytes()); err != nil {
		t.Error(err)
	}
}

func TestVerifyTellsKeysApart(t *testing.T) {
	text := tlog.Checkpoint{Origin: "log.example", Root: tlog.EmptyRoot()}.Text()
	log := testSigner(t, "log.example", tlog.KeyEd25519)
	witness := testSigner(t, "witness.example/w", tlog.KeyCosignature)
	stranger := testSigner(t, "stranger.example", tlog.KeyEd25519)
	n := signedBy(t, text, log, witness)

	if s, err := n.Verify(log.Vkey()); err != nil || s.Name != "log.example" {
		t.Errorf("log: %v", err)
	}
	s, err := n.Verify(witness.Vkey())
	if at, ok := s.Time(); err != nil || !ok || !at.Equal(testTime) {
		t.Errorf("witness: %v at %v", err, at)
	}
	if _, err := n.Verify(stranger.Vkey()); !errors.Is(err, tlog.ErrNoSignature) {
		t.Errorf("stranger: %v", err)
	}
	// The same name with another ID, and the same ID with another name, are
	// other keys.
	renamed, moved := log.Vkey(), log.Vkey()
	renamed.Name, moved.ID = "log2.example", moved.ID+1
	for _, k := range []tlog.Vkey{renamed, moved} {
		if _, err := n.Verify(k); !errors.Is(err, tlog.ErrNoSignature) {
			t.Errorf("%s %08x: %v", k.Name, k.ID, err)
		}
	}
	if got := n.Only(func(s tlog.Signature) bool { return s.Name == "log.example" }); len(got.Signatures) != 1 || len(n.Signatures) != 2 {
		t.Errorf("Only kept %d of %d", len(got.Signatures), len(n.Signatures))
	}
}

// One line by a key that fails condemns the note, wherever it stands.
func TestVerifyChecksEveryLineOfAKey(t *testing.T) {
	log := testSigner(t, "log.example", tlog.KeyEd25519)
	n := signedBy(t, []byte("text\n"), log)
	bad := n.Signatures[0]
	bad.Bytes = bytes.Clone(bad.Bytes)
	bad.Bytes[5] ^= 1
	for _, sigs := range [][]tlog.Signature{{bad}, {bad, n.Signatures[0]}, {n.Signatures[0], bad}} {
		if _, err := (tlog.Note{Text: n.Text, Signatures: sigs}).Verify(log.Vkey()); !errors.Is(err, tlog.ErrBadSignature) {
			t.Errorf("%d lines: %v", len(sigs), err)
		}
	}
	for _, length := range []int{0, 1, 63, 65, 72} {
		s := tlog.Signature{Name: bad.Name, ID: bad.ID, Bytes: make([]byte, length)}
		if _, err := (tlog.Note{Text: n.Text, Signatures: []tlog.Signature{s}}).Verify(log.Vkey()); !errors.Is(err, tlog.ErrBadSignature) {
			t.Errorf("signature of %d bytes: %v", length, err)
		}
	}
}

func TestVerifyDoesNotKnowMLDSA(t *testing.T) {
	k, err := tlog.ParseVkey(mldsaVkey(t, "witness.example/pq"))
	if err != nil {
		t.Fatal(err)
	}
	n := tlog.Note{Text: []byte("text\n"), Signatures: []tlog.Signature{{Name: k.Name, ID: k.ID, Bytes: make([]byte, 2428)}}}
	if _, err := n.Verify(k); !errors.Is(err, tlog.ErrUnsupported) {
		t.Error(err)
	}
}

// TestNotesAgainstSumdb: golang.org/x/mod opens what we sign, and we verify
// what it signs.
func TestNotesAgainstSumdb(t *testing.T) {
	ours := testSigner(t, "log.example/ours", tlog.KeyEd25519)
	theirs, vkey, err := note.GenerateKey(zeroes{}, "log.example/theirs")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(theirs)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(ours.Vkey().String())
	if err != nil {
		t.Fatal(err)
	}
	n := signedBy(t, []byte("a text\n\nof two paragraphs\n"), ours)
	opened, err := note.Open(n.Bytes(), note.VerifierList(verifier))
	if err != nil {
		t.Fatal(err)
	}
	both, err := note.Sign(opened, signer)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tlog.ParseNote(both)
	if err != nil {
		t.Fatal(err)
	}
	k, err := tlog.ParseVkey(vkey)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []tlog.Vkey{k, ours.Vkey()} {
		if _, err := parsed.Verify(k); err != nil {
			t.Error(err)
		}
	}
}

// zeroes is a source for keys that need not be secret.
type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func FuzzNote(f *testing.F) {
	f.Add([]byte(specNote))
	f.Add([]byte(specPoem))
	f.Add([]byte(specCheckpoint))
	f.Add([]byte("\n\n— a AAAAAAA=\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := tlog.ParseNote(b)
		if err != nil {
			return
		}
		sameBytes(t, b, n.Bytes())
		var unverified *note.UnverifiedNoteError
		if _, err := note.Open(b, note.VerifierList()); !errors.As(err, &unverified) {
			t.Fatalf("sumdb/note cannot read %q: %v", b, err)
		}
		if unverified.Note.Text != string(n.Text) {
			t.Fatalf("text %q, sumdb/note reads %q", n.Text, unverified.Note.Text)
		}
	})
}

func FuzzSignatureLines(f *testing.F) {
	f.Add([]byte("— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"))
	f.Add([]byte("— a AAAAAAA=\n— b AAAAAAA=\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		sigs, err := tlog.ParseSignatureLines(b)
		if err != nil {
			return
		}
		var again []byte
		for _, s := range sigs {
			again = append(again, s.Line()...)
			s.Time()
		}
		sameBytes(t, b, again)
	})
}

// FuzzVerify looks for a note other than the signed one that verifies.
func FuzzVerify(f *testing.F) {
	log := testSigner(f, "log.example", tlog.KeyEd25519)
	witness := testSigner(f, "witness.example/w", tlog.KeyCosignature)
	signed := signedBy(f, tlog.Checkpoint{Origin: "log.example", Root: tlog.EmptyRoot()}.Text(), log, witness)
	f.Add(signed.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := tlog.ParseNote(b)
		if err != nil || bytes.Equal(n.Text, signed.Text) {
			return
		}
		for _, k := range []tlog.Vkey{log.Vkey(), witness.Vkey()} {
			if _, err := n.Verify(k); err == nil {
				t.Fatalf("%q verifies under %s", b, k.Name)
			}
		}
	})
}

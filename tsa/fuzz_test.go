package tsa_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toolguardian/tsa"
)

// addCorpus seeds f with every foreign file of the given endings, where present.
func addCorpus(f *testing.F, patterns ...string) {
	dir, _ := sharedPath()
	for _, p := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, "*", p))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
}

// FuzzParseResponse: a granted response gives the bytes of a token that lie in
// it; any error is a Refusal.
func FuzzParseResponse(f *testing.F) {
	f.Add([]byte{0x30, 0x05, 0x30, 0x03, 0x02, 0x01, 0x00})
	addCorpus(f, "*.tsr")
	f.Fuzz(func(t *testing.T, b []byte) {
		status, token, err := tsa.ParseResponse(b)
		if err == nil && (status.Code > 1 || !bytes.Contains(b, token) || len(token) == 0) {
			t.Errorf("status %v, token of %d bytes", status, len(token))
		}
		var refused *tsa.Refusal
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("err = %v is no refusal", err)
		}
		_ = status.String()
	})
}

// FuzzVerify: whatever is accepted states what the seed that it grew from
// states; nothing else carries the fixed imprint and nonce under the root.
func FuzzVerify(f *testing.F) {
	all := seeds(f)
	ours := all[0]
	want, err := ours.judge(ours.bytes)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range all {
		f.Add(s.bytes)
	}
	addCorpus(f, "*.tsr", "*.tst")
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ours.judge(b)
		if err == nil && (!got.Time.Equal(want.Time) || got.Serial.Cmp(want.Serial) != 0 || got.Policy != want.Policy) {
			t.Errorf("accepted with time %v, serial %v, policy %s", got.Time, got.Serial, got.Policy)
		}
		var refused *tsa.Refusal
		if err != nil && !errors.As(err, &refused) {
			t.Errorf("err = %v is no refusal", err)
		}
		if token, err := tsa.SplitToken(b); err == nil {
			tsa.Unverified(token)
		}
	})
}

// FuzzParseRequest: what is read encodes, and reads back the same.
func FuzzParseRequest(f *testing.F) {
	der, err := tsa.NewRequest([32]byte{1}).DER()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	addCorpus(f, "*.tsq")
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := tsa.ParseRequest(b)
		if err != nil {
			var refused *tsa.RequestRefusal
			if !errors.As(err, &refused) {
				t.Errorf("err = %v is no refusal", err)
			}
			return
		}
		der, err := r.DER()
		if err != nil {
			t.Fatal(err)
		}
		again, err := tsa.ParseRequest(der)
		if err != nil || again.Policy != r.Policy || again.CertReq != r.CertReq || !bytes.Equal(again.Imprint.Sum, r.Imprint.Sum) {
			t.Errorf("%+v reads back as %+v (%v)", r, again, err)
		}
		if (again.Nonce == nil) != (r.Nonce == nil) || r.Nonce != nil && again.Nonce.Cmp(r.Nonce) != 0 {
			t.Errorf("nonce %v reads back as %v", r.Nonce, again.Nonce)
		}
	})
}

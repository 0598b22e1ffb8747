package tsa_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"path/filepath"
	"testing"

	"github.com/digitorus/timestamp"

	"toolguardian/tsa"
)

// TestSecondReaderAgrees: another reader of RFC 3161 sees in each token that we
// accept what we see. It reads only bytes that our verifier has passed, since
// it bounds neither depth nor cost.
func TestSecondReaderAgrees(t *testing.T) {
	read := 0
	for _, s := range seeds(t) {
		want, err := s.judge(s.bytes)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		got, err := timestamp.Parse(want.DER)
		if err != nil {
			continue // it knows fewer algorithms, and no arc beyond 31 bits
		}
		read++
		if !got.Time.Equal(want.Time) || got.SerialNumber.Cmp(want.Serial) != 0 || got.Policy.String() != want.Policy ||
			got.HashAlgorithm != want.Imprint.Hash || !bytes.Equal(got.HashedMessage, want.Imprint.Sum) || got.Accuracy != want.Accuracy {
			t.Errorf("%s: it reads %v %v %v, we read %v %v %v", s.name,
				got.Time, got.SerialNumber, got.Policy, want.Time, want.Serial, want.Policy)
		}
	}
	smallPolicy(t)
	t.Logf("%d foreign tokens compared", read)
}

// smallPolicy compares a token of ours, under a policy whose arcs it can hold.
func smallPolicy(t *testing.T) {
	t.Helper()
	a, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: filepath.Join(t.TempDir(), "tsa"), Policy: "1.2.3.4"})
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("x"))
	want, err := a.Stamp(context.Background(), digest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := timestamp.Parse(want.DER)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Time.Equal(want.Time) || got.SerialNumber.Cmp(want.Serial) != 0 || got.Nonce.Cmp(want.Nonce) != 0 || !bytes.Equal(got.HashedMessage, digest[:]) {
		t.Errorf("it reads %v %v, we read %v %v", got.Time, got.SerialNumber, want.Time, want.Serial)
	}
}

// TestSecondReaderRequests: our requests as the other implementation reads
// them, and its requests as we do.
func TestSecondReaderRequests(t *testing.T) {
	request := tsa.NewRequest([32]byte{1})
	request.Policy = "1.2.3.4"
	der, err := request.DER()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := timestamp.ParseRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	if theirs.Nonce.Cmp(request.Nonce) != 0 || theirs.TSAPolicyOID.String() != request.Policy || !theirs.Certificates || !bytes.Equal(theirs.HashedMessage, request.Imprint.Sum) {
		t.Errorf("it reads %+v", theirs)
	}
	back, err := theirs.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := tsa.ParseRequest(back)
	if err != nil {
		t.Fatal(err)
	}
	if ours.Nonce.Cmp(request.Nonce) != 0 || ours.Policy != request.Policy {
		t.Errorf("we read %+v", ours)
	}
}

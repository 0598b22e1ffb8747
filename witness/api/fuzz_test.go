package api

import (
	"bytes"
	"testing"

	"toolguardian/chain/tlog"
)

// What a parser takes, its writer gives back byte for byte.

func FuzzLeaf(f *testing.F) {
	for _, l := range sampleLeaves(f) {
		b, err := l.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(l.Body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := ParseLeaf(b); err == nil {
			if again, err := l.Bytes(); err != nil || !bytes.Equal(again, b) {
				t.Errorf("%q comes back as %q, %v", b, again, err)
			}
		}
		if body, err := ParseTimeBody(b); err == nil && !bytes.Equal(body.Bytes(), b) {
			t.Errorf("time body %q comes back as %q", b, body.Bytes())
		}
	})
}

func FuzzNotes(f *testing.F) {
	for _, l := range sampleLeaves(f) {
		f.Add(l.Body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, note, err := ParseKeyNote(b); err == nil && (!bytes.Equal(k.Text(), note.Text) || !bytes.Equal(note.Bytes(), b)) {
			t.Errorf("key note %q comes back as %q", b, note.Bytes())
		}
		if e, note, err := ParseEvent(b); err == nil && (!bytes.Equal(e.Text(), note.Text) || !bytes.Equal(note.Bytes(), b)) {
			t.Errorf("event %q comes back as %q", b, note.Bytes())
		}
	})
}

func FuzzRequests(f *testing.F) {
	log, cosigner := testSigner(f, "w/log", tlog.KeyEd25519).Vkey(), testSigner(f, "w/log/cosigner", tlog.KeyCosignature).Vkey()
	token := NewToken(log, cosigner)
	f.Add(AddRequest{Old: 5, Proof: []tlog.Hash{{1}}, Head: []byte("head\n")}.Bytes())
	f.Add(EnrolRequest{Token: &token, Note: []byte("note")}.Bytes())
	f.Add(EnrolRequest{}.Bytes())
	f.Add(KeyLines(log, cosigner))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := ParseAddRequest(b); err == nil && !bytes.Equal(r.Bytes(), b) {
			t.Errorf("add-checkpoint %q comes back as %q", b, r.Bytes())
		}
		if r, err := ParseEnrolRequest(b); err == nil && !bytes.Equal(r.Bytes(), b) {
			t.Errorf("enrolment %q comes back as %q", b, r.Bytes())
		}
		if l, c, err := ParseKeyLines(b); err == nil && !bytes.Equal(KeyLines(l, c), b) {
			t.Errorf("key lines %q come back as %q", b, KeyLines(l, c))
		}
	})
}

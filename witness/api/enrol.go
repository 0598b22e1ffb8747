package api

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"toolguardian/chain/tlog"
)

const tokenPrefix = "tg1."

// Token lets one chain enrol once. It pins the witness's keys, so that it
// cannot be spent at another witness.
type Token struct {
	Secret [16]byte
	Keys   [32]byte // SHA-256 of KeyLines
}

// NewToken draws a token for the witness with these keys.
func NewToken(log, cosigner tlog.Vkey) Token {
	t := Token{Keys: sha256.Sum256(KeyLines(log, cosigner))}
	rand.Read(t.Secret[:]) // never fails since Go 1.24
	return t
}

// KeyLines is the body of GET /vkey: the log's and the cosigner's key, a line
// each.
func KeyLines(log, cosigner tlog.Vkey) []byte {
	return []byte(log.String() + "\n" + cosigner.String() + "\n")
}

// ParseKeyLines reads the body of GET /vkey.
func ParseKeyLines(b []byte) (log, cosigner tlog.Vkey, err error) {
	first, rest, _ := strings.Cut(string(b), "\n")
	second, end, ok := strings.Cut(rest, "\n")
	if !ok || end != "" {
		return log, cosigner, fmt.Errorf("%w: want two key lines", ErrMalformed)
	}
	if log, err = tlog.ParseVkey(first); err != nil {
		return log, cosigner, fmt.Errorf("%w: log key: %w", ErrMalformed, err)
	}
	if cosigner, err = tlog.ParseVkey(second); err != nil {
		return log, cosigner, fmt.Errorf("%w: cosigner key: %w", ErrMalformed, err)
	}
	if log.Type != tlog.KeyEd25519 || cosigner.Type != tlog.KeyCosignature {
		return log, cosigner, fmt.Errorf("%w: want a key of type 01, then one of type 04", ErrMalformed)
	}
	return log, cosigner, nil
}

func (t Token) String() string {
	raw := append(t.Secret[:], t.Keys[:]...)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// Matches says whether the token was made for a witness with these keys.
func (t Token) Matches(log, cosigner tlog.Vkey) bool {
	return t.Keys == sha256.Sum256(KeyLines(log, cosigner))
}

// ParseToken reads the text of a token strictly. Its error never holds the
// text, which is a secret.
func ParseToken(s string) (Token, error) {
	var t Token
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(s, tokenPrefix))
	if err != nil || len(raw) != len(t.Secret)+len(t.Keys) {
		return Token{}, fmt.Errorf("%w: not an enrolment token (tg1.…): copy it whole, as witness token printed it", ErrMalformed)
	}
	copy(t.Secret[:], raw)
	copy(t.Keys[:], raw[len(t.Secret):])
	if t.String() != s {
		return Token{}, fmt.Errorf("%w: an enrolment token that is not in canonical form", ErrMalformed)
	}
	return t, nil
}

// EnrolRequest is the body of POST /enroll: the token line (`none` for an
// origin that the operator added), then the key note.
type EnrolRequest struct {
	Token *Token // nil: none
	Note  []byte
}

// Bytes is the body.
func (r EnrolRequest) Bytes() []byte {
	first := "none"
	if r.Token != nil {
		first = r.Token.String()
	}
	return append([]byte(first+"\n"), r.Note...)
}

// ParseEnrolRequest reads the body; the note is not judged.
func ParseEnrolRequest(b []byte) (EnrolRequest, error) {
	first, note, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return EnrolRequest{}, fmt.Errorf("%w: an enrolment without a token line", ErrMalformed)
	}
	if string(first) == "none" {
		return EnrolRequest{Note: note}, nil
	}
	t, err := ParseToken(string(first))
	if err != nil {
		return EnrolRequest{}, err
	}
	return EnrolRequest{Token: &t, Note: note}, nil
}

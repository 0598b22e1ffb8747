package api

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"toolguardian/chain/tlog"
)

// BlobKind says what validation data a blob is.
type BlobKind string

// The kinds of blobs beside a token.
const (
	BlobCRL  BlobKind = "crl"
	BlobOCSP BlobKind = "ocsp"
	BlobCert BlobKind = "cert"
)

// BlobRef names validation data by its SHA-256.
type BlobRef struct {
	Hash tlog.Hash
	Kind BlobKind
}

// TimeBody is the body of a time leaf: a token over a signed checkpoint.
type TimeBody struct {
	Size      uint64
	Root      tlog.Hash
	Sig       tlog.Signature // the log's type-01 line on the checkpoint
	Authority string         // a label
	Token     tlog.Hash      // SHA-256 of the TimeStampToken DER
	Blobs     []BlobRef
}

// Bytes is the body as it stands in a leaf.
func (t TimeBody) Bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "size %d\nroot %s\nsig %sauthority %s\ntoken %s\n",
		t.Size, t.Root.Base64(), t.Sig.Line(), t.Authority, t.Token.Hex())
	for _, r := range t.Blobs {
		fmt.Fprintf(&b, "blob %s %s\n", r.Hash.Hex(), r.Kind)
	}
	return b.Bytes()
}

// Note is the note that was stamped: text, blank line, one type-01 line; the
// imprint is its SHA-256.
func (t TimeBody) Note(origin string) []byte {
	text := tlog.Checkpoint{Origin: origin, Size: t.Size, Root: t.Root}.Text()
	return tlog.Note{Text: text, Signatures: []tlog.Signature{t.Sig}}.Bytes()
}

// ParseTimeBody reads the body of a time leaf strictly.
func ParseTimeBody(b []byte) (TimeBody, error) {
	text, ok := strings.CutSuffix(string(b), "\n")
	if !ok {
		return TimeBody{}, fmt.Errorf("%w: a time body without a last newline", ErrMalformed)
	}
	f := fields{lines: strings.Split(text, "\n")}
	t := TimeBody{Size: f.uint("size")}
	root, sig, authority, token := f.next("root"), f.next("sig"), f.next("authority"), f.next("token")
	if f.err != nil {
		return TimeBody{}, f.err
	}
	t.Authority = authority
	if err := t.parseHashes(root, sig, token); err != nil {
		return TimeBody{}, err
	}
	for len(f.lines) > 0 && f.err == nil {
		t.Blobs = append(t.Blobs, f.blob())
	}
	if f.err != nil {
		return TimeBody{}, f.err
	}
	if !bytes.Equal(t.Bytes(), b) {
		return TimeBody{}, fmt.Errorf("%w: a time body that is not in canonical form", ErrMalformed)
	}
	return t, CheckAuthority(t.Authority)
}

func (t *TimeBody) parseHashes(root, sig, token string) (err error) {
	if t.Root, err = tlog.ParseHashBase64(root); err != nil {
		return fmt.Errorf("%w: root: %w", ErrMalformed, err)
	}
	lines, err := tlog.ParseSignatureLines([]byte(sig + "\n"))
	if err != nil || len(lines) != 1 {
		return fmt.Errorf("%w: sig is not one signature line: %w", ErrMalformed, err)
	}
	t.Sig = lines[0]
	t.Token, err = ParseHex(token)
	return err
}

func (f *fields) blob() BlobRef {
	name, kind, _ := strings.Cut(f.next("blob"), " ")
	if f.err != nil {
		return BlobRef{}
	}
	h, err := ParseHex(name)
	if err == nil && kind != string(BlobCRL) && kind != string(BlobOCSP) && kind != string(BlobCert) {
		err = fmt.Errorf("%w: a blob of kind %q", ErrMalformed, cut(kind))
	}
	f.err = err
	return BlobRef{Hash: h, Kind: BlobKind(kind)}
}

// ParseHex reads 64 lowercase hex digits.
func ParseHex(s string) (tlog.Hash, error) {
	var h tlog.Hash
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) || hex.EncodeToString(b) != s {
		return h, fmt.Errorf("%w: %q is not 64 lowercase hex digits", ErrMalformed, cut(s))
	}
	return tlog.Hash(b), nil
}

var authorityForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,63}$`)

// CheckAuthority refuses a label that cannot stand in a path and in a leaf.
func CheckAuthority(name string) error {
	if !authorityForm.MatchString(name) {
		return fmt.Errorf("%w: the authority %q: want 1 to 64 of a-z, 0-9, dot and dash", ErrMalformed, cut(name))
	}
	return nil
}

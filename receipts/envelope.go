package receipts

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
)

// What a caller decides on.
var (
	ErrMalformed = errors.New("malformed")
	ErrSignature = errors.New("signature does not verify")
	ErrVersion   = errors.New("unknown version")
	ErrTooLong   = errors.New("line longer than 16 KiB")
)

const payloadType = "application/vnd.in-toto+json"

// A line is these pieces around payload, keyid and sig, and nothing else.
const (
	lineStart = `{"payload":"`
	lineType  = `","payloadType":"` + payloadType + `","signatures":[{"keyid":"`
	lineSig   = `","sig":"`
	lineEnd   = `"}]}`

	keyIDLen = 64
	sigLen   = 88 // base64 of 64 bytes, padded
	tailLen  = len(lineType) + keyIDLen + len(lineSig) + sigLen + len(lineEnd)
)

// Envelope is a parsed line: DSSE with one signature.
type Envelope struct {
	Payload []byte
	KeyID   [32]byte // SHA-256 of the raw receipt key
	Sig     []byte   // 64 bytes
}

// ParseLine parses a line without its "\n". It accepts exactly the bytes that
// Bytes writes back; anything else is ErrMalformed.
func ParseLine(line []byte) (Envelope, error) {
	var e Envelope
	if len(line) > MaxLine {
		return e, fmt.Errorf("%w line: %d bytes, at most %d", ErrMalformed, len(line), MaxLine)
	}
	p, keyID, sig, ok := splitLine(line)
	if !ok {
		return e, fmt.Errorf("%w line: not the envelope's template", ErrMalformed)
	}
	if !isHex(string(keyID)) {
		return e, fmt.Errorf("%w line: keyid is not lower-case hex", ErrMalformed)
	}
	hex.Decode(e.KeyID[:], keyID)
	var err error
	if e.Sig, err = decodeStrict(sig); err != nil || len(e.Sig) != ed25519.SignatureSize {
		return e, fmt.Errorf("%w line: sig is not the base64 of 64 bytes", ErrMalformed)
	}
	if e.Payload, err = decodeStrict(p); err != nil {
		return e, fmt.Errorf("%w line: payload is not canonical base64", ErrMalformed)
	}
	return e, nil
}

// splitLine finds the pieces: all but the payload have a fixed length.
func splitLine(line []byte) (payload, keyID, sig []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(lineStart))
	if !ok || len(rest) < tailLen {
		return nil, nil, nil, false
	}
	payload, tail := rest[:len(rest)-tailLen], rest[len(rest)-tailLen:]
	sigAt := len(lineType) + keyIDLen
	ok = string(tail[:len(lineType)]) == lineType &&
		string(tail[sigAt:sigAt+len(lineSig)]) == lineSig &&
		string(tail[len(tail)-len(lineEnd):]) == lineEnd
	return payload, tail[len(lineType):sigAt], tail[sigAt+len(lineSig) : len(tail)-len(lineEnd)], ok
}

// decodeStrict refuses what encoding would not write: the strict decoder
// checks the trailing bits and still skips line breaks, so those go first.
func decodeStrict(b []byte) ([]byte, error) {
	if bytes.IndexByte(b, '\r') >= 0 || bytes.IndexByte(b, '\n') >= 0 {
		return nil, ErrMalformed
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	n, err := base64.StdEncoding.Strict().Decode(out, b)
	return out[:n], err
}

// Bytes writes the line without "\n".
func (e Envelope) Bytes() []byte {
	b := make([]byte, 0, len(lineStart)+base64.StdEncoding.EncodedLen(len(e.Payload))+tailLen)
	b = append(b, lineStart...)
	b = base64.StdEncoding.AppendEncode(b, e.Payload)
	b = append(b, lineType...)
	b = hex.AppendEncode(b, e.KeyID[:])
	b = append(b, lineSig...)
	b = base64.StdEncoding.AppendEncode(b, e.Sig)
	return append(b, lineEnd...)
}

// Verify checks that keyid names exactly pub and that pub signed the payload;
// otherwise ErrSignature.
func (e Envelope) Verify(pub ed25519.PublicKey) error {
	if want := KeyID(pub); e.KeyID != want {
		return fmt.Errorf("%w: keyid is %x, the key in force is %x", ErrSignature, e.KeyID, want)
	}
	if !VerifyEd25519(pub, e.PAE(), e.Sig) {
		return fmt.Errorf("%w: under receipt key %x", ErrSignature, e.KeyID)
	}
	return nil
}

// PAE returns the bytes that are signed (DSSE v1 pre-authentication encoding).
// They begin "DSSEv1 " with a space and an origin holds none, so no signed note
// of ours is ever one.
func (e Envelope) PAE() []byte { return pae(e.Payload) }

func pae(payload []byte) []byte {
	b := make([]byte, 0, len(payload)+64)
	b = append(b, "DSSEv1 "...)
	b = strconv.AppendInt(b, int64(len(payloadType)), 10)
	b = append(append(append(b, ' '), payloadType...), ' ')
	b = strconv.AppendInt(b, int64(len(payload)), 10)
	return append(append(b, ' '), payload...)
}

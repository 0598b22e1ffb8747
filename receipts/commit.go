package receipts

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"unicode/utf8"
)

// openingFormat is the first line of every opening, and so the domain of every
// commitment.
const openingFormat = "tool-guardian/open/v1\n"

// Flags of committed bytes on which two readers may disagree.
const (
	FlagNonUTF8 = "non_utf8"
	FlagDupKeys = "dup_keys"
	FlagBigInt  = "big_int"
)

// Committed is a field a receipt commits to without holding it. Salt goes to
// the salt file, never into the receipt.
type Committed struct {
	Field      FieldID
	Salt       [32]byte
	Commitment [32]byte // SHA-256 of the opening
	Size       int64    // of the data, in bytes
	Flags      []string
}

// Commit commits to data, which it reads in place and does not keep.
func Commit(f FieldID, salt [32]byte, data []byte) Committed {
	h := sha256.New()
	h.Write(openingHeader(f.String(), salt))
	h.Write(data)
	return Committed{Field: f, Salt: salt, Commitment: [32]byte(h.Sum(nil)), Size: int64(len(data)), Flags: flags(data)}
}

// Opening returns the bytes of an opening file, whose SHA-256 is the
// commitment.
func Opening(f FieldID, salt [32]byte, data []byte) []byte {
	return append(openingHeader(f.String(), salt), data...)
}

func openingHeader(field string, salt [32]byte) []byte {
	b := append([]byte(openingFormat), field...)
	return append(append(b, '\n'), salt[:]...)
}

// Opened is a parsed opening. Data refers to the parsed bytes.
type Opened struct {
	Field string
	Salt  [32]byte
	Data  []byte
}

// ParseOpening splits an opening file; it returns ErrMalformed for other bytes.
func ParseOpening(b []byte) (Opened, error) {
	rest, ok := bytes.CutPrefix(b, []byte(openingFormat))
	field, data, ok2 := bytes.Cut(rest, []byte("\n"))
	if !ok || !ok2 || len(field) == 0 || len(data) < 32 {
		return Opened{}, fmt.Errorf("%w opening: does not begin with format line, field and salt", ErrMalformed)
	}
	return Opened{Field: string(field), Salt: [32]byte(data[:32]), Data: data[32:]}, nil
}

// flags looks at data as JSON; what is no JSON can only be non_utf8.
func flags(data []byte) []string {
	var out []string
	if !utf8.Valid(data) {
		out = append(out, FlagNonUTF8)
	}
	s := scanner{b: data, maxDepth: maxCommittedDepth}
	if s.document() != nil {
		return out
	}
	if s.dup {
		out = append(out, FlagDupKeys)
	}
	if s.bigInt {
		out = append(out, FlagBigInt)
	}
	return out
}

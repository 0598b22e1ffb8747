package wire

import (
	"math"
	"strconv"
)

// ID is a request id or a progress token: the exact bytes of its JSON. The
// zero ID is an absent one, which differs from null. IDs compare with ==.
type ID struct{ raw string }

// RawID is the ID whose JSON text is raw.
func RawID(raw []byte) ID { return ID{string(raw)} }

// IntID is the ID of a whole number.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// Absent says that there was no id at all.
func (d ID) Absent() bool { return d.raw == "" }

// Null says that the id was the literal null.
func (d ID) Null() bool { return d.raw == "null" }

// Scalar says that the id is a string or a number, as MCP asks.
func (d ID) Scalar() bool {
	return d.raw != "" && (d.raw[0] == '"' || d.raw[0] == '-' || '0' <= d.raw[0] && d.raw[0] <= '9')
}

// counted says that the id is a whole number below 10^15 in its usual form, as
// nearly every id is.
func (d ID) counted() bool {
	if d.raw == "" || len(d.raw) > 15 || d.raw[0] == '0' && d.raw != "0" {
		return false
	}
	for _, c := range []byte(d.raw) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// String is the id's JSON text.
func (d ID) String() string { return d.raw }

// Key is equal for ids that a careless peer confuses: 5, "5", 5.0 and 5e0.
// Compare with == first where both are in flight.
func (d ID) Key() string {
	if d.counted() {
		return d.raw
	}
	text := d.raw
	if text != "" && text[0] == '"' {
		text = decodeString([]byte(text))
	}
	s := scanner{b: []byte(text)}
	if c := s.peek(); c != '-' && (c < '0' || c > '9') {
		return text
	}
	s.number()
	if s.end(); s.err != nil {
		return text
	}
	// Below 2^53 a float holds every whole number exactly.
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
		return text
	}
	return strconv.FormatInt(int64(f), 10)
}

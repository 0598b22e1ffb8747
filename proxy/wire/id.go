package wire

import "strconv"

// ID is a request id or a progress token: the exact bytes of its JSON. The
// zero ID is an absent one, which differs from null.
type ID struct{ raw string }

// RawID is the ID whose JSON text is raw.
func RawID(raw []byte) ID { return ID{string(raw)} }

// IntID is the ID of a whole number.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// Absent says that there was no id at all.
func (d ID) Absent() bool { return d.raw == "" }

// Null says that the id was the literal null.
func (d ID) Null() bool { return d.raw == "null" }

// String is the id's JSON text.
func (d ID) String() string { return d.raw }

// Key is equal for ids that a careless peer confuses: 5, "5", 5.0 and 5e0.
func (d ID) Key() string { return d.raw }

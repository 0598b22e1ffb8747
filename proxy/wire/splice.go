package wire

import (
	"encoding/json"
	"iter"
)

// Span is a half-open range of byte offsets.
type Span struct{ Start, End int }

// Member is one member of an object.
type Member struct {
	Key   string // decoded
	Value json.RawMessage
	Span  Span // of the value
	Whole Span // from the key's quote to the value's end
}

// Members goes through an object's members in order, duplicates included. An
// error is yielded last.
func Members(obj []byte) iter.Seq2[Member, error] { return func(func(Member, error) bool) {} }

// Get returns the raw value at a path of keys, nil when there is none.
func Get(obj []byte, path ...string) json.RawMessage { return nil }

// Replace returns raw with the span's bytes replaced.
func Replace(raw []byte, at Span, with []byte) []byte { return nil }

// Set returns the object with value at the path of keys: replaced where it
// stands, else added as the last member. Other bytes are equal.
func Set(obj []byte, value []byte, path ...string) ([]byte, error) { return nil, nil }

// SetDefault is Set where the key is absent, and nothing where it is not.
func SetDefault(obj []byte, key string, value []byte) ([]byte, error) { return nil, nil }

// Remove returns the object without the members keep refuses.
func Remove(obj []byte, drop func(key string) bool) ([]byte, error) { return nil, nil }

// ProgressToken reads params._meta.progressToken.
func ProgressToken(params json.RawMessage) ID { return ID{} }

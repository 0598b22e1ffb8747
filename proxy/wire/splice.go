package wire

import (
	"encoding/json"
	"errors"
	"iter"
)

// ErrNotObject is returned where a splice needs an object and finds another
// value.
var ErrNotObject = errors.New("not a JSON object")

// Span is a half-open range of byte offsets.
type Span struct{ Start, End int }

// Member is one member of an object.
type Member struct {
	Key   string          // decoded
	Value json.RawMessage // points into the object's bytes
	Span  Span            // of the value, in the object's bytes
	Whole Span            // from the name's quote to the value's end
}

// Members goes through an object's members in order, duplicates included. A
// malformed object yields the members before the fault and then the error.
func Members(obj []byte) iter.Seq2[Member, error] {
	return func(yield func(Member, error) bool) {
		s := scanner{b: obj}
		if s.peek() != '{' {
			yield(Member{}, ErrNotObject)
			return
		}
		stopped := false
		s.object(1, func(key, value Span) bool {
			m := Member{
				Key:   decodeString(obj[key.Start:key.End]),
				Value: obj[value.Start:value.End:value.End],
				Span:  value,
				Whole: Span{key.Start, value.End},
			}
			stopped = !yield(m, nil)
			return !stopped
		})
		if stopped {
			return
		}
		if s.end(); s.err != nil {
			yield(Member{}, s.err)
		}
	}
}

// Get returns the raw value at a path of names, nil when there is none. Of a
// member given twice the last counts, as in Parse.
func Get(obj []byte, path ...string) json.RawMessage {
	value := json.RawMessage(obj)
	for _, name := range path {
		if value = get(value, name); value == nil {
			return nil
		}
	}
	return value
}

func get(obj []byte, name string) (value json.RawMessage) {
	s := scanner{b: obj}
	if s.peek() != '{' {
		return nil
	}
	s.object(1, func(key, at Span) bool {
		if string(nameOf(obj[key.Start:key.End])) == name {
			value = obj[at.Start:at.End:at.End]
		}
		return true
	})
	return value
}

// GetString returns the string at a path of names.
func GetString(obj []byte, path ...string) (string, bool) {
	raw := Get(obj, path...)
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return decodeString(raw), true
}

// Replace returns raw with the span's bytes replaced. raw is not changed.
func Replace(raw []byte, at Span, with []byte) []byte {
	out := make([]byte, 0, len(raw)-(at.End-at.Start)+len(with))
	out = append(out, raw[:at.Start]...)
	out = append(out, with...)
	return append(out, raw[at.End:]...)
}

// Set returns the object with value at the path of names: in the place of
// each member that is there (so no reader of duplicates sees an old one), else
// as a new last member. A null on the way counts as an empty object. All other
// bytes are equal; obj is not changed.
func Set(obj []byte, value []byte, path ...string) ([]byte, error) {
	if len(path) == 0 {
		return value, nil
	}
	out, from, found := make([]byte, 0, len(obj)+len(value)+32), 0, false
	for m, err := range Members(obj) {
		if err != nil {
			return nil, err
		}
		if m.Key != path[0] {
			continue
		}
		inner, err := Set(orEmpty(m.Value, len(path)), value, path[1:]...)
		if err != nil {
			return nil, err
		}
		out = append(append(out, obj[from:m.Span.Start]...), inner...)
		from, found = m.Span.End, true
	}
	if found {
		return append(out, obj[from:]...), nil
	}
	inner, err := Set([]byte("{}"), value, path[1:]...)
	if err != nil {
		return nil, err
	}
	return addMember(out, obj, path[0], inner), nil
}

func orEmpty(value []byte, path int) []byte {
	if path > 1 && string(value) == "null" {
		return []byte("{}")
	}
	return value
}

// addMember appends obj with one more member to out. obj has been scanned.
func addMember(out, obj []byte, name string, value []byte) []byte {
	end := len(obj) - 1
	for obj[end] != '}' {
		end--
	}
	out = append(out, obj[:end]...)
	if !emptyObject(obj) {
		out = append(out, ',')
	}
	out = append(appendQuoted(out, name), ':')
	return append(append(out, value...), obj[end:]...)
}

func emptyObject(obj []byte) bool {
	for range Members(obj) {
		return false
	}
	return true
}

// SetDefault is Set for one name, but leaves a member that is there alone.
func SetDefault(obj []byte, name string, value []byte) ([]byte, error) {
	for m, err := range Members(obj) {
		if err != nil {
			return nil, err
		}
		if m.Key == name {
			return obj, nil
		}
	}
	return Set(obj, value, name)
}

// Remove returns the object without the members whose names drop picks. What
// stays is equal byte for byte, but for the white space around dropped ones.
// Without any to drop obj itself comes back.
func Remove(obj []byte, drop func(name string) bool) ([]byte, error) {
	out, dropped := []byte{'{'}, false
	for m, err := range Members(obj) {
		if err != nil {
			return nil, err
		}
		if drop(m.Key) {
			dropped = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, obj[m.Whole.Start:m.Whole.End]...)
	}
	if !dropped {
		return obj, nil
	}
	return append(out, '}'), nil
}

// ProgressToken reads params._meta.progressToken; what is neither a string
// nor a number is no token (MCP, utilities/progress).
func ProgressToken(params json.RawMessage) ID {
	token := RawID(Get(params, "_meta", "progressToken"))
	if !token.Scalar() {
		return ID{}
	}
	return token
}

// SetProgressToken puts a request's progress token into its params.
func SetProgressToken(params json.RawMessage, token ID) (json.RawMessage, error) {
	return Set(paramsOrEmpty(params), []byte(token.raw), "_meta", "progressToken")
}

// SetNotifiedToken puts the token into the params of notifications/progress.
func SetNotifiedToken(params json.RawMessage, token ID) (json.RawMessage, error) {
	return Set(paramsOrEmpty(params), []byte(token.raw), "progressToken")
}

// SetRequestID puts the id into the params of notifications/cancelled.
func SetRequestID(params json.RawMessage, id ID) (json.RawMessage, error) {
	return Set(paramsOrEmpty(params), []byte(id.raw), "requestId")
}

func paramsOrEmpty(params json.RawMessage) json.RawMessage {
	if params == nil || string(params) == "null" {
		return json.RawMessage("{}")
	}
	return params
}

package wire

import "encoding/json"

// Decode reads one JSON value as encoding/json does with UseNumber, in one
// pass and without its buffers. Of a member given twice the last counts.
// Invalid UTF-8 stays as it is.
func Decode(raw []byte) (any, error) {
	s := scanner{b: raw}
	v := s.decode(0)
	if s.end(); s.err != nil {
		return nil, s.err
	}
	return v, nil
}

func (s *scanner) decode(depth int) any {
	switch s.peek() {
	case '{':
		return s.decodeObject(depth + 1)
	case '[':
		return s.decodeArray(depth + 1)
	}
	at := s.value(depth)
	if s.err != nil {
		return nil
	}
	switch raw := s.b[at.Start:at.End]; raw[0] {
	case '"':
		return decodeString(raw)
	case 't', 'f':
		return raw[0] == 't'
	case 'n':
		return nil
	default:
		return json.Number(raw)
	}
}

func (s *scanner) decodeObject(depth int) map[string]any {
	m := map[string]any{}
	if s.enter(depth, '}') {
		return m
	}
	var seen keySet
	for more := true; more; more = s.next('}') {
		key := s.name(&seen)
		if s.err != nil {
			return nil
		}
		m[decodeString(s.b[key.Start:key.End])] = s.decode(depth)
	}
	return m
}

func (s *scanner) decodeArray(depth int) []any {
	list := []any{}
	if s.enter(depth, ']') {
		return list
	}
	for more := true; more; more = s.next(']') {
		list = append(list, s.decode(depth))
	}
	return list
}

package wire

import (
	"encoding/json"
	"fmt"
)

// Kind says what a message is, by which members it has.
type Kind int

const (
	Malformed    Kind = iota // neither a method nor a result nor an error
	Request                  // a method and an id
	Notification             // a method without an id
	Response                 // a result or an error
)

// Message is one JSON-RPC message. Every slice in it points into Raw, which
// the holder owns and must not change.
type Message struct {
	Raw       []byte
	ID        ID
	Method    string
	Params    json.RawMessage // nil: absent; null is the four bytes
	Result    json.RawMessage // nil: absent; null is the four bytes
	Err       json.RawMessage // nil: absent; null is the four bytes
	NoVersion bool            // jsonrpc is missing or not "2.0": accepted, but said

	idSpan Span
	clean  bool // read by Parse, which saw no name twice where CheckStrict looks
}

// Kind tells a request from a notification and a response (JSON-RPC 2.0,
// sections 4 and 5). A method decides: what has one is never a response.
func (m Message) Kind() Kind {
	switch {
	case m.Method != "" && m.ID.Absent():
		return Notification
	case m.Method != "":
		return Request
	case m.Result != nil || m.Err != nil:
		return Response
	}
	return Malformed
}

// WithID returns the message's bytes with another id in the place of its own;
// all others are equal. A message without an id comes back as it is.
func (m Message) WithID(id ID) []byte {
	if m.ID.Absent() {
		return m.Raw
	}
	return Replace(m.Raw, m.idSpan, []byte(id.raw))
}

// LineError is a line that is no message. The connection goes on.
type LineError struct {
	Code   int     // the JSON-RPC code to answer with
	Reason string  // what is wrong with the line
	Batch  bool    // the line is a JSON array; Msg.Raw holds it
	Msg    Message // what could be read: the ID often, Raw unless it was too long

	unknown bool // an object of another purpose, perhaps
}

func (e *LineError) Error() string { return e.Reason }

// Parse splits one JSON object into its top-level members. Of a member given
// twice the last counts (CheckStrict refuses it). The error is a *LineError
// that carries what could be read.
func Parse(raw []byte) (Message, error) {
	m := Message{Raw: raw, NoVersion: true}
	s := scanner{b: raw}
	switch s.peek() {
	case '{':
		m.read(&s)
		s.end()
	case '[':
		s.value(0)
		if s.end(); s.err == nil {
			return m, &LineError{Code: CodeInvalidRequest, Reason: "a JSON array, not an object", Batch: true, Msg: m}
		}
		fallthrough
	default:
		return m, &LineError{Code: CodeInvalidRequest, Reason: "the line is not a JSON object", Msg: m}
	}
	if s.err != nil {
		broken := Message{Raw: raw, ID: findID(raw), NoVersion: true}
		return broken, &LineError{Code: scanCode(s.err), Reason: s.err.Error(), Msg: broken}
	}
	if m.Kind() == Malformed {
		return m, &LineError{Code: CodeInvalidRequest, Reason: "neither a method nor a result nor an error", Msg: m, unknown: true}
	}
	return m, nil
}

// read walks the top-level members and files each in its place.
func (m *Message) read(s *scanner) {
	if s.enter(1, '}') {
		m.clean = s.err == nil
		return
	}
	var seen keySet
	for more := true; more; more = s.next('}') {
		s.watch = true
		key := s.name(&seen)
		if s.err != nil {
			return
		}
		name := nameOf(m.Raw[key.Start:key.End])
		s.watch = string(name) == "params"
		if value := s.value(1); s.err == nil {
			m.member(name, value)
		}
	}
	m.clean = !s.twice
}

func (m *Message) member(name []byte, value Span) {
	v := m.Raw[value.Start:value.End:value.End]
	switch string(name) {
	case "jsonrpc":
		m.NoVersion = string(v) != `"2.0"`
	case "id":
		m.ID, m.idSpan = RawID(v), value
	case "method":
		m.Method = ""
		if v[0] == '"' {
			m.Method = decodeString(v)
		}
	case "params":
		m.Params = v
	case "result":
		m.Result = v
	case "error":
		m.Err = v
	}
}

// Elements splits a JSON array (a batch) into its elements.
func Elements(raw []byte) ([]json.RawMessage, error) {
	s := scanner{b: raw}
	if s.peek() != '[' {
		return nil, fmt.Errorf("not a JSON array")
	}
	var all []json.RawMessage
	s.array(1, func(at Span) { all = append(all, raw[at.Start:at.End:at.End]) })
	s.end()
	return all, s.err
}

// CheckStrict refuses what two parsers could read differently: a member twice
// in the envelope or, at any depth, in params. Names are compared decoded, so
// "\u0069d" is "id". The error is a *LineError; its Msg has no ID when the id
// itself was given twice.
//
// Parse has looked already; only where it saw one is it looked for again.
func CheckStrict(m Message) error {
	if m.clean {
		return nil
	}
	var seen keySet
	var err error
	s := scanner{b: m.Raw}
	if s.peek() == '{' {
		s.object(1, func(key, _ Span) bool {
			name := m.Raw[key.Start:key.End]
			if !seen.add(name) && err == nil {
				err = fmt.Errorf("member %s twice in the message", clip(name))
				if decodeString(name) == "id" {
					m.ID = ID{}
				}
			}
			return true
		})
	}
	if err == nil && m.Params != nil {
		p := scanner{b: m.Params, unique: true}
		if p.value(1); p.err != nil {
			err = fmt.Errorf("params: %w", p.err)
		}
	}
	if err == nil {
		return nil
	}
	return &LineError{Code: CodeInvalidRequest, Reason: err.Error() + "; send every member once", Msg: m}
}

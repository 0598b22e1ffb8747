package wire

import "encoding/json"

// Texts are the JSON strings of the text blocks of a tools/call result, found
// in one pass. None of a content that is no array, or of a result that cannot
// be read.
func Texts(result []byte) []json.RawMessage {
	t := texts{scanner: scanner{b: result}}
	if t.peek() != '{' {
		return nil
	}
	t.members(1, func(name []byte) {
		if string(name) != "content" {
			t.value(1)
			return
		}
		t.found = nil
		t.content()
	})
	if t.end(); t.err != nil {
		return nil
	}
	return t.found
}

type texts struct {
	scanner
	found []json.RawMessage
}

func (t *texts) content() {
	if t.peek() != '[' {
		t.value(1)
		return
	}
	if t.enter(2, ']') {
		return
	}
	for more := true; more; more = t.next(']') {
		t.block()
	}
}

func (t *texts) block() {
	if t.peek() != '{' {
		t.value(2)
		return
	}
	var text Span
	isText := false
	t.members(3, func(name []byte) {
		at := t.value(3)
		switch raw := t.b[at.Start:at.End]; {
		case t.err != nil:
		case string(name) == "type":
			isText = string(raw) == `"text"`
		case string(name) == "text" && raw[0] == '"':
			text = at
		}
	})
	if isText && text.End > 0 && t.err == nil {
		t.found = append(t.found, t.b[text.Start:text.End:text.End])
	}
}

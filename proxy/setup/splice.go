package setup

import (
	"bytes"
	"encoding/json"

	"github.com/tailscale/hujson"
)

const blanks = " \t\r\n"

func (d *draft) splice(from, to int, with []byte) []byte {
	out := append([]byte{}, d.text[:from]...)
	out = append(out, with...)
	return append(out, d.text[to:]...)
}

// value writes JSON over several lines, its first one already indented.
func (d *draft) value(v json.RawMessage, indent string) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, v, indent, d.unit); err != nil {
		return v
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(d.eol))
}

// indentAt is the indentation of the line that an offset lies in.
func (d *draft) indentAt(offset int) string {
	line := d.text[bytes.LastIndexByte(d.text[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// insert puts a member at the end of an object: behind every comment, on a line
// of its own unless the object stands on one line, and with a trailing comma
// where the object has one.
func (d *draft) insert(o hujson.Value, key string, v json.RawMessage) []byte {
	end := o.EndOffset - len("}")
	at := len(bytes.TrimRight(d.text[:end], blanks))
	all := members(o)
	if len(all) == 0 {
		outer := d.indentAt(o.StartOffset)
		inner := outer + d.unit
		member := d.eol + inner + key + ": " + string(d.value(v, inner)) + d.eol + outer
		return d.splice(at, end, []byte(member))
	}
	last := all[len(all)-1]
	indent, before := d.indentAt(last.Name.StartOffset), " "
	switch comma := last.Value.EndOffset; {
	case bytes.Contains(last.Name.BeforeExtra, []byte("\n")): // members stand on lines of their own
		before = d.eol + indent
	case bytes.Contains(d.text[comma:at], []byte("//")):
		before = d.eol + indent + d.unit // nothing may follow such a comment
	}
	member := before + key + ": " + string(d.value(v, indent))
	if trailingComma(o) {
		return d.splice(at, at, []byte(member+","))
	}
	comma := last.Value.EndOffset
	return d.splice(comma, at, []byte(","+string(d.text[comma:at])+member))
}

// trailingComma says whether the last member of an object has a comma; the
// parser marks it so.
func trailingComma(o hujson.Value) bool {
	all := members(o)
	return len(all) > 0 && all[len(all)-1].Value.AfterExtra != nil
}

// cut takes out one member with its comma. Comments stay, for whose they are
// is not ours to say.
func (d *draft) cut(o hujson.Value, i int) []byte {
	all := members(o)
	m := all[i]
	from, to := m.Name.StartOffset, m.Value.EndOffset
	if i < len(all)-1 || trailingComma(o) {
		comma := to + len(m.Value.AfterExtra)
		return d.lines(d.splice(comma, comma+1, nil), from, to)
	}
	out := d.lines(d.text, from, to)
	if i > 0 {
		prev := all[i-1].Value
		comma := prev.EndOffset + len(prev.AfterExtra)
		out = append(out[:comma:comma], out[comma+1:]...)
	}
	return out
}

// lines removes text[from:to], and the lines with it that would be left empty.
func (d *draft) lines(text []byte, from, to int) []byte {
	begin := bytes.LastIndexByte(text[:from], '\n') + 1
	rest := len(text)
	if n := bytes.IndexByte(text[to:], '\n'); n >= 0 {
		rest = to + n + 1
	}
	if begin > 0 && len(bytes.TrimSpace(text[begin:from])) == 0 && len(bytes.TrimSpace(text[to:rest])) == 0 {
		from, to = begin, rest
	} else {
		to += len(text[to:]) - len(bytes.TrimLeft(text[to:], " \t"))
	}
	out := append([]byte{}, text[:from]...)
	return append(out, text[to:]...)
}

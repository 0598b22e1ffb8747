package shape

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// array sums up a JSON array: how many items, which keys, the first and the
// last of them. What is not an array to its end, and the items shown, is none.
func (l *Ladder) array(text string) (string, bool) {
	s := strings.TrimSpace(text)
	if s == "" || s[0] != '[' {
		return "", false
	}
	a := arrayItems{ends: ends{keep: l.o.StructKeepItems}}
	k := skimmer{each: a.item, member: a.keys.add}
	if !k.skim(s) || a.count <= max(10, 2*a.keep) || !a.valid() {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "JSON array of %s%s\n", size(a.count, "item"), a.kinds())
	b.WriteString(a.keys.String(a.kind['{']))
	a.write(&b, "item", compact)
	return b.String(), true
}

// ends keeps the first and the last few of many.
type ends struct {
	keep  int // at each end
	count int
	first []string
	last  []string // a ring once it is full
}

func (e *ends) add(s string) {
	if e.count < e.keep {
		e.first = append(e.first, s)
	} else if len(e.last) < e.keep {
		e.last = append(e.last, s)
	} else if e.keep > 0 {
		e.last[(e.count-e.keep)%e.keep] = s
	}
	e.count++
}

// write writes both ends, each thing as show renders it, and between them how
// many were left out.
func (e *ends) write(b *strings.Builder, what string, show func(string) string) {
	list := func(title string, things []string) {
		if len(things) > 0 {
			fmt.Fprintf(b, "%s %s:\n", title, size(len(things), what))
		}
		for _, s := range things {
			b.WriteString(show(s))
			b.WriteByte('\n')
		}
	}
	list("first", e.first)
	fmt.Fprintf(b, "[%s left out]\n", size(e.count-2*e.keep, what))
	if e.keep > 0 {
		from := (e.count - e.keep) % e.keep
		list("last", slices.Concat(e.last[from:], e.last[:from]))
	}
}

// arrayItems gathers what is said of an array.
type arrayItems struct {
	ends
	keys keys
	kind [256]int // items by their first byte
}

func (a *arrayItems) item(s string) {
	s = strings.TrimSpace(s)
	a.kind[firstByte(s)]++
	a.add(s)
}

// kinds says what the items are, unless they are all objects.
func (a *arrayItems) kinds() string {
	if a.kind['{'] == a.count {
		return ""
	}
	var parts []string
	rest := a.count
	for _, k := range []struct {
		first byte
		name  string
	}{{'{', "object"}, {'[', "array"}, {'"', "string"}} {
		if n := a.kind[k.first]; n > 0 {
			parts, rest = append(parts, size(n, k.name)), rest-n
		}
	}
	if rest > 0 {
		parts = append(parts, size(rest, "other value"))
	}
	return ": " + strings.Join(parts, ", ")
}

// maxChecked bounds how long an item may be that is read by the letter.
const maxChecked = 64 << 10

// valid says that the items to be shown are JSON by the letter (RFC 8259).
func (a *arrayItems) valid() bool {
	broken := func(s string) bool { return len(s) <= maxChecked && !json.Valid([]byte(s)) }
	return !slices.ContainsFunc(a.first, broken) && !slices.ContainsFunc(a.last, broken)
}

// compact is an item without its blanks, at most about maxLine characters of it.
func compact(item string) string {
	var b strings.Builder
	for i := 0; i < len(item); i++ {
		switch c := item[i]; c {
		case ' ', '\t', '\n', '\r':
		case '"':
			end := stringEnd(item, i)
			if end < 0 {
				end = len(item)
			}
			b.WriteString(first(item[i:end], maxLine+1))
			i = end - 1
		default:
			b.WriteByte(c)
		}
		if b.Len() > 4*maxLine {
			break
		}
	}
	out := b.String()
	if b.Len() <= maxLine || chars(out) <= maxLine {
		return out
	}
	return fmt.Sprintf("%s [... shortened, %d characters in all]", first(out, maxLine), chars(item))
}

// keys counts the names of members.
type keys struct {
	names []string
	count []int
	index map[string]int
	more  bool // there were further names
}

const (
	maxKeys   = 1_000 // names told apart
	shownKeys = 40
)

// add counts a name, met as the i-th of its object: where objects are alike,
// that is where it was met before.
func (k *keys) add(name string, i int) {
	if i < len(k.names) && k.names[i] == name {
		k.count[i]++
		return
	}
	if at, known := k.index[name]; known {
		k.count[at]++
		return
	}
	if len(k.names) == maxKeys {
		k.more = true
		return
	}
	if k.index == nil {
		k.index = map[string]int{}
	}
	k.index[name] = len(k.names)
	k.names, k.count = append(k.names, name), append(k.count, 1)
}

// String names the keys in the order they were met, each with how many of the
// objects have it unless all do.
func (k *keys) String(objects int) string {
	if len(k.names) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("keys: ")
	for i, name := range k.names[:min(len(k.names), shownKeys)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(first(strings.Trim(name, `"`), maxName))
		if k.count[i] != objects {
			fmt.Fprintf(&b, " (%d of %d)", k.count[i], objects)
		}
	}
	if left := len(k.names) - shownKeys; k.more {
		fmt.Fprintf(&b, " and more than %d others", left)
	} else if left > 0 {
		fmt.Fprintf(&b, " and %d others", left)
	}
	return b.String() + "\n"
}

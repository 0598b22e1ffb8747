package shape

import "strings"

// parts are a result's members that matter here.
type parts struct {
	members    []member
	blocks     []block
	structured string // raw; empty: absent or null
	failed     bool
}

type member struct{ key, whole string }

// block is one of a result's content.
type block struct {
	raw    string
	quoted string // a text block's text as it stands in raw; empty: something else
	at     int    // of quoted in raw
}

// split reads a result in one pass. It says no to what is no object, to a
// member given twice, to content that is no list, and to a result with more to
// come.
func split(raw string) (p parts, ok bool) {
	c := cursor{s: raw}
	seen := map[string]bool{}
	complete := true
	whole := c.object(func(key string, begin int) {
		start := c.i
		switch key {
		case "content":
			p.blocks = c.content()
		default:
			c.value()
		}
		value := raw[start:c.i]
		c.bad = c.bad || seen[key]
		seen[key] = true
		switch key {
		case "structuredContent":
			if value != "null" {
				p.structured = value
			}
		case "isError":
			p.failed = value == "true"
		case "resultType":
			complete = value == `"complete"`
		}
		p.members = append(p.members, member{key, raw[begin:c.i]})
	})
	c.space()
	return p, whole && c.i == len(raw) && complete
}

// cursor walks JSON text that a reader has found valid before, so it looks at
// no more than it needs to find its way. After a fault every step is a no-op.
type cursor struct {
	s   string
	i   int
	bad bool
}

func (c *cursor) space() {
	for c.i < len(c.s) && strings.IndexByte(" \t\r\n", c.s[c.i]) >= 0 {
		c.i++
	}
}

// take steps over one byte, if it is there.
func (c *cursor) take(b byte) bool {
	c.space()
	if c.bad || c.i >= len(c.s) || c.s[c.i] != b {
		return false
	}
	c.i++
	return true
}

// object walks an object. each gets a member's key and where it begins, and
// has to step over its value.
func (c *cursor) object(each func(key string, begin int)) bool {
	if !c.take('{') {
		return false
	}
	for more := !c.take('}'); more; more = c.more('}') {
		c.space()
		begin := c.i
		quoted := c.str()
		if !c.take(':') {
			c.bad = true
		}
		c.space()
		if c.bad {
			return false
		}
		key, _ := decode(quoted)
		each(key, begin)
	}
	return !c.bad
}

// more steps over a comma, or the bracket that ends the list.
func (c *cursor) more(closing byte) bool {
	if c.take(',') {
		return true
	}
	c.bad = c.bad || !c.take(closing)
	return false
}

// str steps over a string and gives it with its quotes.
func (c *cursor) str() string {
	begin := c.i
	if c.bad || begin >= len(c.s) || c.s[begin] != '"' {
		c.bad = true
		return `""`
	}
	end := stringEnd(c.s, begin)
	if end < 0 {
		c.bad = true
		return `""`
	}
	c.i = end
	return c.s[begin:end]
}

// value steps over any value.
func (c *cursor) value() {
	switch c.space(); {
	case c.bad || c.i >= len(c.s):
		c.bad = true
	case c.s[c.i] == '"':
		c.str()
	case class[c.s[c.i]] == opens:
		c.container()
	default:
		begin := c.i
		for c.i < len(c.s) && class[c.s[c.i]] == plain && strings.IndexByte(" \t\r\n", c.s[c.i]) < 0 {
			c.i++
		}
		c.bad = c.bad || c.i == begin
	}
}

// container steps over an object or array.
func (c *cursor) container() {
	depth := 0
	for ; c.i < len(c.s); c.i++ {
		switch class[c.s[c.i]] {
		case quote:
			if c.str(); c.bad {
				return
			}
			c.i--
		case opens:
			depth++
		case closes:
			if depth--; depth == 0 {
				c.i++
				return
			}
		}
	}
	c.bad = true
}

// content walks a result's blocks; null has none.
func (c *cursor) content() []block {
	if strings.HasPrefix(c.s[c.i:], "null") {
		c.value()
		return nil
	}
	if !c.take('[') {
		c.bad = true
		return nil
	}
	var list []block
	for more := !c.take(']'); more; more = c.more(']') {
		list = append(list, c.block())
	}
	return list
}

// block walks a block, and finds the text of a text block.
func (c *cursor) block() block {
	c.space()
	begin := c.i
	if begin >= len(c.s) || c.s[begin] != '{' {
		c.value()
		return block{raw: c.s[begin:c.i]}
	}
	var b block
	kinds, texts, isText := 0, 0, false
	c.object(func(key string, _ int) {
		start := c.i
		c.value()
		switch value := c.s[start:c.i]; key {
		case "type":
			kinds++
			isText = value == `"text"`
		case "text":
			texts++
			b.quoted, b.at = value, start-begin
		}
	})
	if b.raw = c.s[begin:c.i]; !isText || kinds != 1 || texts != 1 || b.quoted == "" || b.quoted[0] != '"' {
		b.quoted = ""
	}
	return b
}

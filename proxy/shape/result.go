package shape

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"toolguardian/proxy/wire"
)

// Call is what a result answers.
type Call struct {
	Tool   string // its own name, without the server's
	Intent string // what the model looks for in a long result; empty: everything
}

// Original is what is archived before anything of it is dropped.
type Original struct {
	Text  string          // of all text blocks, a new line between them
	Raw   json.RawMessage // the whole result
	Rules []Rule          // that dropped something, in order, each once
	Shown int             // characters of text that are shown
	Of    int             // characters of Text
}

// Keep archives an original and gives the id under which it is read back.
type Keep func(Original) (id string, err error)

// Applied is what became of a result.
type Applied struct {
	Raw     json.RawMessage // what came, the very same bytes, unless Changed
	Changed bool
	Rules   []Rule // that changed something, in order, each once
	Shown   int    // characters of text in Raw; 0 with Of where no text was looked at
	Of      int    // characters of text that came
	ID      string // in the archive; empty: nothing was dropped
	Notice  string // to be said in a block before the others; empty: nothing to say
	// Err is why a result that would have been shortened was not: it could not
	// be archived. Raw is what came.
	Err error
}

// Apply shapes a tools/call result: each text block by Text, everything else
// byte for byte as it came. Where a text was shaped, structuredContent is left
// out, since clients that get both show the structure and drop the text. A
// result of structuredContent alone is shaped as its JSON text. What is no
// complete and well formed result is left alone.
func (l *Ladder) Apply(c Call, raw json.RawMessage, keep Keep) Applied {
	same := Applied{Raw: raw}
	if len(raw) < min(l.o.CompactAboveChars, l.o.ErrorSummaryChars) || l.o.exempt(c.Tool) {
		return same
	}
	r, ok := split(string(raw))
	if !ok || !r.failed && len(raw) < l.o.CompactAboveChars {
		return same
	}
	s := shaping{l: l, c: c, r: r}
	s.blocks()
	same.Shown, same.Of = s.of, s.of
	if len(s.rules) == 0 {
		return same
	}
	a := Applied{Changed: true, Rules: s.rules, Shown: s.shown, Of: s.of}
	if s.lossy || r.structured != "" {
		if keep == nil || s.shown+chars(s.notice(sampleID)) >= s.of {
			return same
		}
		if a.ID, same.Err = keep(Original{s.original(), raw, s.rules, s.shown, s.of}); same.Err != nil {
			return same
		}
		a.Notice = s.notice(a.ID)
	}
	a.Raw = s.assemble()
	return a
}

// sampleID is as long as an id of the archive: dropping fewer characters than
// the notice adds is not worth it.
const sampleID = "sp_000000000000"

// shaping is one result on its way.
type shaping struct {
	l *Ladder
	c Call
	r parts

	out       []string // the blocks to deliver
	texts     []string // of the text blocks, as they came
	number    int      // lines of them so far
	rules     []Rule
	lossy     bool
	shown, of int
}

func (s *shaping) blocks() {
	if len(s.r.blocks) == 0 && s.r.structured != "" {
		if out, changed := s.text(s.r.structured, false); changed {
			s.out = []string{`{"type":"text","text":` + string(wire.Quote(out)) + `}`}
		}
		return
	}
	for _, b := range s.r.blocks {
		s.out = append(s.out, s.block(b))
	}
}

// block shapes one block, if it is a text.
func (s *shaping) block(b block) string {
	if b.quoted == "" {
		return b.raw
	}
	text, mended := decode(b.quoted)
	out, changed := s.text(text, mended)
	if !changed {
		return b.raw
	}
	return b.raw[:b.at] + string(wire.Quote(out)) + b.raw[b.at+len(b.quoted):]
}

// text shapes one text and keeps count.
func (s *shaping) text(text string, mended bool) (out string, changed bool) {
	r := s.l.text(s.c.Tool, text, s.r.failed, s.number+1)
	if r.Lossy && s.c.Intent != "" && r.Rule != RuleError {
		r = s.l.intent(text, s.c.Intent, r)
	}
	s.texts = append(s.texts, text)
	s.number += max(1, numberOfLines(text))
	s.of += r.Of
	s.shown += r.Shown
	if r.Changed {
		s.lossy = s.lossy || r.Lossy || mended
		if !slices.Contains(s.rules, r.Rule) {
			s.rules = append(s.rules, r.Rule)
		}
	}
	return r.Text, r.Changed
}

// original is the text that line numbers refer to.
func (s *shaping) original() string {
	if len(s.texts) == 1 {
		return s.texts[0]
	}
	var b strings.Builder
	for _, t := range s.texts {
		b.WriteString(t)
		if !strings.HasSuffix(t, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// notice says what is shown of what, and where the rest is.
func (s *shaping) notice(id string) string {
	names := make([]string, len(s.rules))
	for i, r := range s.rules {
		names[i] = string(r)
	}
	text := fmt.Sprintf("[shown %d of %d characters (%s); the whole is kept as %s for retrieve_spill]",
		s.shown, s.of, strings.Join(names, ", "), id)
	if intent := []rune(s.c.Intent); len(intent) > MaxIntent {
		text += fmt.Sprintf(" [intent cut to its first %d of %d characters]", MaxIntent, len(intent))
	}
	return text
}

// assemble puts the blocks in the place of those that came, and leaves
// structuredContent out. The other members' bytes are as they were.
func (s *shaping) assemble() json.RawMessage {
	content := `"content":[` + strings.Join(s.out, ",") + `]`
	var list []string
	placed := false
	for _, m := range s.r.members {
		switch m.key {
		case "structuredContent":
		case "content":
			list, placed = append(list, content), true
		default:
			list = append(list, m.whole)
		}
	}
	if !placed {
		list = append(list, content)
	}
	return json.RawMessage("{" + strings.Join(list, ",") + "}")
}

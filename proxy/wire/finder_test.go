package wire

import (
	"bytes"
	"testing"
)

// In a message that parses, the finder, fed in two pieces, finds the id that
// the parser found.
func FuzzFinder(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1.0,"method":"m","params":{"id":2,"a":["]}",{"id":3}]}}`), 20)
	f.Add([]byte(`{"result":{"t":"\\\"id\":5,"},"i d":4, "id" : {"x":[1,2]} }`), 30)
	f.Add([]byte(`{"error":"x","id":"a\\","id":null}`), 12)
	f.Fuzz(func(t *testing.T, raw []byte, cut int) {
		m, err := Parse(raw)
		// A name written with escapes is not looked for, nor a huge id.
		if err != nil || bytes.Contains(raw, []byte(`\u`)) || len(m.ID.String()) > finderVal {
			return
		}
		var finder idFinder
		cut = (cut & 0xffff) % (len(raw) + 1)
		finder.feed(raw[:cut])
		finder.feed(raw[cut:])
		if finder.id != m.ID {
			t.Errorf("found %q, the id is %q", finder.id, m.ID)
		}
	})
}

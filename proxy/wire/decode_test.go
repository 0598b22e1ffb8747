package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// Decode gives what encoding/json gives with UseNumber.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e3,"\u00e9\n",true,false,null,{}],"a":{"b":[]}}`, ` [ ] `, `"\ud800"`, `1 2`, `{"a":}`, `nul`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Decode(raw)
		if err != nil && strings.Contains(err.Error(), errDeep.Error()) || !utf8.Valid(raw) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var want any
		if wrong := d.Decode(&want) != nil || !json.Valid(raw); wrong != (err != nil) {
			t.Fatalf("%q: error %v", raw, err)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, want %#v", raw, got, want)
		}
	})
}

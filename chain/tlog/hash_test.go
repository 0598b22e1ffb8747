package tlog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
)

func TestHashText(t *testing.T) {
	h := tlog.LeafHash(nil)
	const want = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d" // SHA-256 of one zero byte
	if h.Hex() != want {
		t.Errorf("LeafHash(nil) is %s", h.Hex())
	}
	b, err := json.Marshal(h)
	if err != nil || string(b) != `"`+want+`"` {
		t.Errorf("JSON %s, %v", b, err)
	}
	var back tlog.Hash
	if err := json.Unmarshal(b, &back); err != nil || back != h {
		t.Errorf("read back %s, %v", back, err)
	}
	for _, bad := range []string{"", want[1:], want + "0", strings.ToUpper(want), strings.Replace(want, "6", "g", 1), " " + want[1:]} {
		if err := back.UnmarshalText([]byte(bad)); err == nil || back != h {
			t.Errorf("%q: accepted, or the hash changed: %v", bad, err)
		}
	}
}

// Decoders that skip white space or loose bits would take two spellings for
// one hash.
func TestStrictBase64(t *testing.T) {
	s := tlog.EmptyRoot().Base64()
	if h, err := tlog.ParseHashBase64(s); err != nil || h != tlog.EmptyRoot() {
		t.Errorf("%v, %v", h, err)
	}
	for name, bad := range map[string]string{
		"empty": "", "space": s[:10] + " " + s[10:], "newline": s[:10] + "\n" + s[10:], "CR": s + "\r", "trailing newline": s + "\n",
		"no padding": strings.TrimRight(s, "="), "loose bits": s[:42] + "V=", "URL alphabet": strings.ReplaceAll(s, "/", "_"),
		"short": s[:40], "long": s[:40] + s, "double padding": s + "=",
	} {
		if bad == s {
			t.Fatalf("%s: the case does not differ", name)
		}
		if _, err := tlog.ParseHashBase64(bad); err == nil {
			t.Errorf("%s: %q accepted", name, bad)
		}
	}
}

func FuzzHashBase64(f *testing.F) {
	f.Add(tlog.EmptyRoot().Base64())
	f.Add("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n")
	f.Fuzz(func(t *testing.T, s string) {
		if h, err := tlog.ParseHashBase64(s); err == nil {
			sameBytes(t, []byte(s), []byte(h.Base64()))
		}
	})
}

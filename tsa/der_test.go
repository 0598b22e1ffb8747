package tsa

import (
	"bytes"
	"math/big"
	"testing"
	"time"
)

func TestCheckDER(t *testing.T) {
	nested := func(depth int) []byte {
		b := []byte{tagNull, 0}
		for range depth {
			b = tlv(tagSequence, b)
		}
		return b
	}
	for _, tt := range []struct {
		name string
		in   []byte
		want Rule
	}{
		{"null", []byte{tagNull, 0}, ""},
		{"deepest", nested(maxDepth), ""},
		{"too deep", nested(maxDepth + 1), RuleDER},
		{"empty", nil, RuleSize},
		{"too long", make([]byte, MaxToken+1), RuleSize},
		{"behind the end", []byte{tagNull, 0, 0}, RuleDER},
		{"indefinite", []byte{tagSequence, 0x80, 0, 0}, RuleDER},
		{"length not minimal", []byte{tagOctetString, 0x81, 1, 0}, RuleDER},
		{"length in five octets", []byte{tagOctetString, 0x84, 0, 0, 0, 0}, RuleDER},
		{"length beyond", []byte{tagOctetString, 2, 0}, RuleDER},
		{"long tag", []byte{0x3f, 0x1f, 0}, RuleDER},
		{"end of contents", tlv(tagSequence, []byte{0, 0}), RuleDER},
		{"constructed string", tlv(0x24, tlv(tagOctetString)), RuleDER},
		{"primitive sequence", []byte{0x10, 0}, RuleDER},
		{"identifier alone", []byte{tagSequence}, RuleDER},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Rule("")
			if r := checkDER(tt.in); r != nil {
				got = r.Rule
			}
			if got != tt.want {
				t.Fatalf("rule %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTLVReadsBack(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 255, 256, 65000} {
		body := bytes.Repeat([]byte{7}, n)
		c := cursor{rest: tlv(tagOctetString, body)}
		e, ok := c.only(tagOctetString)
		if !ok || !bytes.Equal(e.body, body) {
			t.Errorf("%d bytes are not read back", n)
		}
	}
}

func TestIntegers(t *testing.T) {
	for _, n := range []int64{0, 1, 127, 128, 255, 256, 1 << 31} {
		c := cursor{rest: encodeSmall(n)}
		e, ok := c.only(tagInteger)
		got, okInt := integer(e.body)
		if !ok || !okInt || got.Int64() != n {
			t.Errorf("%d reads as %v", n, got)
		}
	}
	for _, tt := range []struct {
		body []byte
		want int64
		ok   bool
	}{
		{[]byte{0xff}, -1, true},
		{[]byte{0x80}, -128, true},
		{[]byte{0xff, 0x7f}, -129, true},
		{[]byte{0xff, 0x80}, 0, false},
		{[]byte{0x00, 0x7f}, 0, false},
		{nil, 0, false},
	} {
		got, ok := integer(tt.body)
		if ok != tt.ok || ok && got.Cmp(big.NewInt(tt.want)) != 0 {
			t.Errorf("integer(%x) = %v, %v", tt.body, got, ok)
		}
	}
}

func TestParseGenTime(t *testing.T) {
	good := time.Date(2026, 2, 28, 23, 59, 59, 0, time.UTC)
	for in, want := range map[string]time.Time{
		"20260228235959Z":            good,
		"20260228235959.1Z":          good.Add(100 * time.Millisecond),
		"20260228235959.000000001Z":  good.Add(1),
		"20260228235959":             {},
		"20260228235959+0000":        {},
		"20260228235959+0100":        {},
		"20260228235959.Z":           {},
		"20260228235959.10Z":         {},
		"20260228235959.0Z":          {},
		"20260228235959,1Z":          {},
		"20260228235959.1234567891Z": {},
		"202602282359Z":              {},
		"20260229000000Z":            {},
		"20260228235960Z":            {},
		"20260228240000Z":            {},
		"2026022823595 Z":            {},
		"+0260228235959Z":            {},
		"20260228235959ZZ":           {},
		"":                           {},
	} {
		got, ok := parseGenTime(in)
		if ok != !want.IsZero() || !got.Equal(want) {
			t.Errorf("parseGenTime(%q) = %v, %v", in, got, ok)
		}
	}
}

// TestAccuracy reads every part, and refuses what RFC 3161 does not allow.
func TestAccuracy(t *testing.T) {
	part := func(tag byte, n int64) []byte { return tlv(tag, encodeSmall(n)[2:]) }
	for _, tt := range []struct {
		name   string
		in     []byte
		want   time.Duration
		stated bool
		ok     bool
	}{
		{"absent", nil, 0, false, true},
		{"empty", sequence(), 0, false, true},
		{"seconds", sequence(encodeSmall(60)), time.Minute, true, true},
		{"all", sequence(encodeSmall(1), part(tagPrimitive0, 2), part(tagPrimitive1, 3)), 1002003 * time.Microsecond, true, true},
		{"micros alone", sequence(part(tagPrimitive1, 999)), 999 * time.Microsecond, true, true},
		{"millis 0", sequence(part(tagPrimitive0, 0)), 0, false, false},
		{"millis 1000", sequence(part(tagPrimitive0, 1000)), 0, false, false},
		{"out of order", sequence(part(tagPrimitive1, 3), part(tagPrimitive0, 2)), 0, false, false},
		{"negative", sequence(tlv(tagInteger, []byte{0xff})), 0, false, false},
		{"beyond 32 bits", sequence(encodeSmall(1 << 40)), 0, false, false},
		{"beyond a year", sequence(encodeSmall(1 << 25)), 0, false, false},
		{"another field", sequence(encodeSmall(1), tlv(0x82, []byte{1})), 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var info tstInfo
			r := info.readAccuracy(&cursor{rest: tt.in})
			if ok := r == nil; ok != tt.ok {
				t.Fatalf("refusal %v", r)
			}
			if tt.ok && (info.Accuracy != tt.want || info.AccuracyStated != tt.stated) {
				t.Fatalf("accuracy %v, stated %v", info.Accuracy, info.AccuracyStated)
			}
		})
	}
}

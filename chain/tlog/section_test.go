package tlog_test

import (
	"strings"
	"testing"

	"toolguardian/chain/tlog"
)

const testHeader = "tool-guardian/test/v1"

func TestSections(t *testing.T) {
	in := []tlog.Section{
		{Name: "receipt", Data: []byte("{}")},
		{Name: "key-line/1", Data: nil},
		{Name: "opening/args_sent", Data: []byte("b 3\nxyz\n\x00\xff")},
	}
	b := tlog.FormatSections(testHeader, in)
	const want = "tool-guardian/test/v1\nreceipt 2\n{}\nkey-line/1 0\n\nopening/args_sent 10\nb 3\nxyz\n\x00\xff\n"
	sameBytes(t, []byte(want), b)
	out, err := tlog.ParseSections(testHeader, b)
	if err != nil || len(out) != len(in) {
		t.Fatalf("%v, %v", out, err)
	}
	for i := range in {
		if out[i].Name != in[i].Name {
			t.Errorf("section %d is %q", i, out[i].Name)
		}
		sameBytes(t, in[i].Data, out[i].Data)
	}
	if out, err := tlog.ParseSections(testHeader, []byte(testHeader+"\n")); err != nil || len(out) != 0 {
		t.Errorf("no sections: %v, %v", out, err)
	}
}

func TestBadSections(t *testing.T) {
	for name, rest := range map[string]string{
		"no newline":        "a 1",
		"no length":         "a\n",
		"no data":           "a 1\n",
		"short data":        "a 2\nx\n",
		"long data":         "a 1\nxy\n",
		"no newline after":  "a 1\nx",
		"leading zero":      "a 01\nx\n",
		"sign":              "a +1\nx\n",
		"negative":          "a -1\nx\n",
		"huge":              "a 9223372036854775807\nx\n",
		"wraps":             "a 18446744073709551615\nx\n",
		"no name":           " 1\nx\n",
		"two spaces":        "a  1\nx\n",
		"trailing space":    "a 1 \nx\n",
		"tab in the name":   "a\tb 1\nx\n",
		"not ASCII":         "é 1\nx\n",
		"trailing newline":  "a 1\nx\n\n",
		"trailing bytes":    "a 1\nx\nb",
		"carriage return":   "a 1\r\nx\n",
		"length of nothing": "a \nx\n",
	} {
		if s, err := tlog.ParseSections(testHeader, []byte(testHeader+"\n"+rest)); err == nil {
			t.Errorf("%s: accepted as %q", name, s)
		}
	}
	for _, b := range []string{"", testHeader, testHeader + " \n", "tool-guardian/test/v2\n", "\n" + testHeader + "\n"} {
		if _, err := tlog.ParseSections(testHeader, []byte(b)); err == nil || !strings.Contains(err.Error(), testHeader) {
			t.Errorf("%q: %v", b, err)
		}
	}
}

func FuzzSections(f *testing.F) {
	f.Add([]byte(testHeader + "\nreceipt 2\n{}\nkey-line/1 0\n\n"))
	f.Add([]byte(testHeader + "\na 18446744073709551615\nx\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		sections, err := tlog.ParseSections(testHeader, b)
		if err == nil {
			sameBytes(t, b, tlog.FormatSections(testHeader, sections))
		}
	})
}

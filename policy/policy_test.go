package policy

import (
	"errors"
	"testing"
)

const example = `{"readOnly": false,
 "servers": {"*":     {"deny": ["^delete_"], "ask": ["shell"]},
             "files": {"allow": ["^read_", "^list_", "_all$", "shell"], "ask": ["write|move"]}}}`

func parse(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDecideOrder(t *testing.T) {
	p, readOnly := parse(t, example), parse(t, `{"readOnly": true, "servers": {"*": {"ask": ["x"]}}}`)
	for _, tt := range []struct {
		name string
		p    *Policy
		call Call
		want Decision
	}{
		{"no policy", AllowAll(), Call{Server: "a", Tool: "delete_all"}, Decision{Effect: Allow}},
		{"deny of any server", p, Call{Server: "git", Tool: "delete_branch"}, Decision{Deny, "deny ^delete_"}},
		{"deny beats allow", p, Call{Server: "files", Tool: "delete_all"}, Decision{Deny, "deny ^delete_"}},
		{"not on the allow list", p, Call{Server: "files", Tool: "write_file"}, Decision{Deny, "allow"}},
		{"on the allow list", p, Call{Server: "files", Tool: "read_file"}, Decision{Allow, "allow ^read_"}},
		{"allow then ask", p, Call{Server: "files", Tool: "shell"}, Decision{Ask, "ask shell"}},
		{"another server's allow list", p, Call{Server: "git", Tool: "write_file"}, Decision{Effect: Allow}},
		{"bare name only", p, Call{Server: "delete_", Tool: "files.delete_x"}, Decision{Effect: Allow}},
		{"readOnly without a hint", readOnly, Call{Tool: "a"}, Decision{Deny, "readOnly"}},
		{"readOnly comes first", readOnly, Call{Tool: "x"}, Decision{Deny, "readOnly"}},
		{"readOnly with a hint", readOnly, Call{Tool: "a", ReadOnlyHint: true}, Decision{Effect: Allow}},
		{"unreadable", DenyAll("line 3"), Call{Tool: "a", ReadOnlyHint: true}, Decision{Deny, "policy file unreadable: line 3"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Decide(tt.call); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON":            `{`,
		"misspelt deny":       `{"servers": {"*": {"denny": ["x"]}}}`,
		"misspelt servers":    `{"server": {}}`,
		"bad pattern":         `{"servers": {"*": {"ask": ["ok", "("]}}}`,
		"two objects":         `{} {"readOnly": true}`,
		"wrong type":          `{"readOnly": "yes"}`,
		"a member twice":      `{"readOnly": true, "readOnly": false}`,
		"an array":            `[]`,
		"a pattern no string": `{"servers": {"*": {"deny": [1]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(text)); !errors.Is(err, ErrMalformed) {
				t.Errorf("error is %v, want ErrMalformed", err)
			}
		})
	}
}

func TestDigestIsOfTheMeaning(t *testing.T) {
	a := parse(t, `{"readOnly":true,"servers":{}}`)
	b := parse(t, "{\n \"servers\": {},\n \"readOnly\": true }")
	if a.Digest() != b.Digest() {
		t.Error("white space and order changed the digest")
	}
	if a.Digest() == AllowAll().Digest() || DenyAll("x").Digest() == AllowAll().Digest() {
		t.Error("different policies share a digest")
	}
	if parse(t, "{}").Digest() != AllowAll().Digest() {
		t.Error("an empty file and no file differ")
	}
}

func TestDeniesServer(t *testing.T) {
	p := parse(t, `{"servers": {"off": {"deny": [".*"]}, "part": {"deny": ["^delete"]}}}`)
	for name, want := range map[string]bool{"off": true, "part": false, "other": false} {
		if got := p.DeniesServer(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if !DenyAll("x").DeniesServer("any") {
		t.Error("an unreadable policy names servers")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(`{"servers":{"*":{"deny":["("]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(b)
		if err != nil || again.Digest() != p.Digest() {
			t.Fatal("the same bytes read differently")
		}
		p.Decide(Call{Server: "files", Tool: "read_file"})
	})
}

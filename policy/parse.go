package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/gowebpki/jcs"
)

// ErrMalformed is a policy file that cannot be trusted to mean what its
// author meant. The caller then uses DenyAll.
var ErrMalformed = errors.New("malformed policy")

type file struct {
	ReadOnly bool                `json:"readOnly"`
	Servers  map[string]fileRule `json:"servers"`
}

type fileRule struct {
	Deny  []string `json:"deny"`
	Allow []string `json:"allow"`
	Ask   []string `json:"ask"`
}

// Parse reads a policy file:
//
//	{"readOnly": false, "servers": {"*": {"deny": ["^delete_"]}, "files": {"ask": ["write"]}}}
//
// Each rule is a regular expression searched for in the bare tool name. A
// member we do not know is an error, for a misspelt "deny" would allow.
func Parse(b []byte) (*Policy, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: something follows the object, at byte %d", ErrMalformed, d.InputOffset())
	}
	canonical, err := jcs.Transform(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	p := &Policy{readOnly: f.ReadOnly, servers: make(map[string]rules, len(f.Servers)), digest: sha256.Sum256(canonical)}
	for name, r := range f.Servers {
		if p.servers[name], err = r.compile(name); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (f fileRule) compile(server string) (r rules, err error) {
	for _, l := range []struct {
		name string
		from []string
		to   *[]*regexp.Regexp
	}{{"deny", f.Deny, &r.deny}, {"allow", f.Allow, &r.allow}, {"ask", f.Ask, &r.ask}} {
		for i, pattern := range l.from {
			re, err := regexp.Compile(pattern)
			if err != nil {
				return rules{}, fmt.Errorf("%w: servers.%s.%s[%d]: %w", ErrMalformed, server, l.name, i, err)
			}
			*l.to = append(*l.to, re)
		}
	}
	return r, nil
}

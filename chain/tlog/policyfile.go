package tlog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxPolicy is the longest policy file that is read, in bytes.
const MaxPolicy = 1 << 20

const quorumNone = "none"

// ParsePolicy reads a policy file (C2SP tlog-policy). Log keys are of type 01
// or 06, witness keys of type 04 or 06: a type 01 key for a witness is refused
// rather than converted, since its signatures would state no time.
func ParsePolicy(b []byte) (*Policy, error) {
	if err := checkPolicyBytes(b); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	p := policyParser{
		policy: new(Policy),
		names:  make(map[string]voter),
		member: make(map[string]bool),
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("policy line %d: %w", i+1, err)
		}
	}
	if !p.hasQuorum {
		return nil, errors.New("policy: no quorum line; add one, \"quorum none\" asks for no cosignature")
	}
	return p.policy, nil
}

func checkPolicyBytes(b []byte) error {
	if len(b) > MaxPolicy {
		return fmt.Errorf("%d bytes, at most %d are read", len(b), MaxPolicy)
	}
	for i, c := range b {
		if c < ' ' && c != '\t' && c != '\n' || c == 0x7f {
			return fmt.Errorf("control character %#02x at byte %d", c, i)
		}
	}
	if !bytes.HasSuffix(b, []byte("\n")) {
		return errors.New("the last line has no newline")
	}
	return nil
}

type policyParser struct {
	policy    *Policy
	names     map[string]voter // witnesses and groups share one namespace
	member    map[string]bool  // names already listed in a group
	hasQuorum bool
}

func (p *policyParser) line(line string) error {
	// Only ASCII space and tab part items; other bytes are opaque.
	items := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
	if len(items) == 0 || strings.HasPrefix(items[0], "#") {
		return nil
	}
	args := items[1:]
	switch items[0] {
	case "log":
		return p.log(args)
	case "witness":
		return p.witness(args)
	case "group":
		return p.group(args)
	case "quorum":
		return p.quorum(args)
	}
	return fmt.Errorf("%.40q is none of log, witness, group, quorum", items[0])
}

func (p *policyParser) log(args []string) error {
	if len(args) != 1 && len(args) != 2 {
		return errors.New("want: log VKEY [URL]")
	}
	key, err := policyKey(args[0], KeyEd25519)
	if err != nil {
		return err
	}
	for _, k := range p.policy.logs {
		if bytes.Equal(k.Key, key.Key) {
			return fmt.Errorf("log %s: its key is listed before, as %s", key.Name, k.Name)
		}
	}
	p.policy.logs = append(p.policy.logs, key)
	return nil
}

func (p *policyParser) witness(args []string) error {
	if len(args) != 2 && len(args) != 3 {
		return errors.New("want: witness NAME VKEY [URL]")
	}
	key, err := policyKey(args[1], KeyCosignature)
	if err != nil {
		return err
	}
	w := PolicyWitness{Name: args[0], Key: key}
	if len(args) == 3 {
		w.URL = args[2]
	}
	for _, other := range p.policy.witnesses {
		if bytes.Equal(other.Key.Key, key.Key) {
			return fmt.Errorf("witness %s: its key is listed before, as %s", w.Name, other.Name)
		}
	}
	p.policy.witnesses = append(p.policy.witnesses, w)
	return p.define(w.Name, voter{voterWitness, len(p.policy.witnesses) - 1})
}

func policyKey(s string, want KeyType) (Vkey, error) {
	key, err := ParseVkey(s)
	if err != nil {
		return Vkey{}, err
	}
	if key.Type != want && key.Type != KeyMLDSA44 {
		return Vkey{}, fmt.Errorf("key %s is of type %02x, want %02x or 06 here", key.Name, byte(key.Type), byte(want))
	}
	return key, nil
}

func (p *policyParser) define(name string, v voter) error {
	if _, taken := p.names[name]; taken || name == quorumNone {
		return fmt.Errorf("the name %.100q is taken", name)
	}
	p.names[name] = v
	return nil
}

func (p *policyParser) group(args []string) error {
	if len(args) < 3 {
		return errors.New("want: group NAME all|any|K and one or more NAMEs")
	}
	var g group
	for _, name := range args[2:] {
		v, ok := p.names[name]
		if !ok {
			return fmt.Errorf("group %.100q: no witness or group %.100q above this line", args[0], name)
		}
		if p.member[name] {
			return fmt.Errorf("group %.100q: %.100q is a group member already", args[0], name)
		}
		p.member[name] = true
		g.members = append(g.members, v)
	}
	var err error
	if g.k, err = threshold(args[1], len(g.members)); err != nil {
		return fmt.Errorf("group %.100q: %w", args[0], err)
	}
	p.policy.groups = append(p.policy.groups, g)
	return p.define(args[0], voter{voterGroup, len(p.policy.groups) - 1})
}

func threshold(s string, n int) (int, error) {
	switch s {
	case "all":
		return n, nil
	case "any":
		return 1, nil
	}
	k, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(k) != s || k < 1 || k > n {
		return 0, fmt.Errorf("threshold %.40q: want all, any or 1 to %d", s, n)
	}
	return k, nil
}

func (p *policyParser) quorum(args []string) error {
	if len(args) != 1 {
		return errors.New("want: quorum NAME")
	}
	if p.hasQuorum {
		return errors.New("a second quorum line")
	}
	p.hasQuorum = true
	if args[0] == quorumNone {
		return nil
	}
	v, ok := p.names[args[0]]
	if !ok {
		return fmt.Errorf("no witness or group %.100q above this line", args[0])
	}
	p.policy.quorum = v
	return nil
}

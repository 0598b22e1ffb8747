package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"regexp"
)

// Effect is what becomes of a call.
type Effect string

const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
	Ask   Effect = "ask" // a person has to agree first
)

// Call is what a decision is about.
type Call struct {
	Server, Tool string          // the bare names, as the server gave them
	ReadOnlyHint bool            // the server's own claim about the tool
	Args         json.RawMessage // nil: decide on the name alone
	Session      string
	Principal    string
}

// Decision is an effect with the rule that led to it.
type Decision struct {
	Effect Effect
	Rule   string // the rule's literal text; "" when none matched
}

// Policy is an immutable set of rules. It is safe for concurrent use.
type Policy struct {
	readOnly bool
	servers  map[string]rules
	broken   string // why the file could not be read; denies everything
	digest   [32]byte
}

type rules struct{ deny, allow, ask []*regexp.Regexp }

// anyServer is the entry whose rules hold for every server.
const anyServer = "*"

// AllowAll is the policy of someone who wrote none.
func AllowAll() *Policy { return &Policy{digest: sha256.Sum256([]byte("{}"))} }

// DenyAll is the policy in force while the file cannot be read; reason tells
// the person who has to repair it.
func DenyAll(reason string) *Policy {
	reason = cmp.Or(reason, "no reason given")
	return &Policy{broken: reason, digest: sha256.Sum256([]byte("policy file unreadable: " + reason))}
}

// Digest is the SHA-256 of the policy file's canonical JSON (RFC 8785); of {}
// where there is no file.
func (p *Policy) Digest() [32]byte { return p.digest }

// Decide judges one call, in this order: readOnly, deny, an allow list that
// does not name the tool, ask. A server's own rules and those of "*" count
// together.
func (p *Policy) Decide(c Call) Decision {
	if p.broken != "" {
		return Decision{Deny, "policy file unreadable: " + p.broken}
	}
	if p.readOnly && !c.ReadOnlyHint {
		return Decision{Deny, "readOnly"}
	}
	own, all := p.servers[c.Server], p.servers[anyServer]
	if rule, hit := match(c.Tool, own.deny, all.deny); hit {
		return Decision{Deny, "deny " + rule}
	}
	listed := len(own.allow)+len(all.allow) > 0
	allowed, hit := match(c.Tool, own.allow, all.allow)
	if listed && !hit {
		return Decision{Deny, "allow"}
	}
	if rule, hit := match(c.Tool, own.ask, all.ask); hit {
		return Decision{Ask, "ask " + rule}
	}
	if listed {
		return Decision{Allow, "allow " + allowed}
	}
	return Decision{Effect: Allow}
}

func match(tool string, lists ...[]*regexp.Regexp) (rule string, hit bool) {
	for _, list := range lists {
		for _, re := range list {
			if re.MatchString(tool) {
				return re.String(), true
			}
		}
	}
	return "", false
}

// everything are the patterns that match any name.
var everything = map[string]bool{"": true, ".*": true, "^": true, "$": true, ".": true, ".+": true,
	"^.*": true, ".*$": true, "^.*$": true, "^.+$": true, "^.": true}

// DeniesServer says whether no tool of the server can ever be called, whatever
// its name: such a server is not named to a client.
func (p *Policy) DeniesServer(name string) bool {
	if p.broken != "" {
		return true
	}
	for _, list := range [][]*regexp.Regexp{p.servers[name].deny, p.servers[anyServer].deny} {
		for _, re := range list {
			if everything[re.String()] {
				return true
			}
		}
	}
	return false
}

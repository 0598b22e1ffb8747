package anchor

import (
	"crypto/x509"
	"time"

	"toolguardian/chain/tlog"
)

// Trust is what the auditor holds already. Nothing is trusted because it lies
// in what is being verified.
type Trust struct {
	// WitnessKeys are pinned keys: type 01 is a log, type 04 a cosigner.
	WitnessKeys []tlog.Vkey
	// Policy (C2SP tlog-policy) judges the witness checkpoint.
	Policy *tlog.Policy
	// ChainKeys pin the chain: head keys of type 01.
	ChainKeys []tlog.Vkey
	// ChainPolicy judges the head; a log line whose name is the origin pins the
	// chain. Nil: one pinned cosigner must have signed.
	ChainPolicy *tlog.Policy
	// Origin pins the chain by the hash of its first key.
	Origin string
	// TSARoots are the pinned roots of timestamp authorities; with them time is
	// asked for.
	TSARoots *x509.CertPool
	// RequireTime asks for time even without TSARoots.
	RequireTime bool
	// MaxLag is how many receipts may lie outside any witnessed head; nil: not
	// judged.
	MaxLag *uint64
	// MaxAge is how old the newest dated head may be; 0: not judged.
	MaxAge time.Duration
	// Now is the auditor's clock, for ages and future times.
	Now time.Time
}

// logKeys are the pinned log keys of that name.
func (t Trust) logKeys(name string) []tlog.Vkey {
	var keys []tlog.Vkey
	for _, k := range t.WitnessKeys {
		if k.Type == tlog.KeyEd25519 && k.Name == name {
			keys = append(keys, k)
		}
	}
	if t.Policy != nil {
		for _, k := range t.Policy.Logs() {
			if k.Type == tlog.KeyEd25519 && k.Name == name {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// cosigners are the pinned cosigner keys.
func (t Trust) cosigners() []tlog.Vkey {
	var keys []tlog.Vkey
	for _, k := range t.WitnessKeys {
		if k.Type == tlog.KeyCosignature {
			keys = append(keys, k)
		}
	}
	return keys
}

// chainPins are the head keys pinned for an origin.
func (t Trust) chainPins(origin string) []tlog.Vkey {
	var keys []tlog.Vkey
	for _, k := range t.ChainKeys {
		if k.Name == origin {
			keys = append(keys, k)
		}
	}
	if t.ChainPolicy != nil {
		for _, k := range t.ChainPolicy.Logs() {
			if k.Name == origin && k.Type == tlog.KeyEd25519 {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// pinsChain reports whether the chain is pinned in any way.
func (t Trust) pinsChain() bool {
	return len(t.ChainKeys) > 0 || t.Origin != "" || t.ChainPolicy != nil && len(t.ChainPolicy.Logs()) > 0
}

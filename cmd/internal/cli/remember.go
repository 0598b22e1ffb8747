package cli

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"

	"toolguardian/proxy"
	"toolguardian/proxy/config"
	"toolguardian/proxy/journal"
	"toolguardian/proxy/spill"
	"toolguardian/proxy/wire"
)

// What the router leaves to its next run, under these members of state.json.
const (
	configMember     = "config_digest"
	policyMember     = "policy_digest"
	hintsMember      = "hints"             // what each server said of itself
	seenMember       = "last_seen"         // the definitions each server had
	cataloguesMember = "catalogue_digests" // their digests
)

// recall puts what the last run left into the options.
func recall(s *journal.State, o *proxy.Options) {
	o.Hints, _ = journal.Get[map[string]string](s, hintsMember)
	o.Seen, _ = journal.Get[map[string]proxy.Seen](s, seenMember)
}

// keep leaves what a run has seen to the next one. Servers of another
// configuration are kept beside it.
func keep(s *journal.State, r *proxy.Router) error {
	digests := map[string]string{}
	for name, d := range r.Catalogues() {
		digests[name] = hex.EncodeToString(d[:])
	}
	return errors.Join(merge(s, hintsMember, r.Hints()), replace(s, seenMember, r.Seen()), merge(s, cataloguesMember, digests))
}

func merge(s *journal.State, member string, now map[string]string) error {
	old, _ := journal.Get[map[string]string](s, member)
	both := maps.Clone(old)
	if both == nil {
		both = map[string]string{}
	}
	maps.Copy(both, now)
	return replace(s, member, both)
}

// replace writes nothing where nothing changed.
func replace[T any](s *journal.State, member string, now map[string]T) error {
	old, known := journal.Get[map[string]T](s, member)
	if len(now) == 0 || known && reflect.DeepEqual(old, now) {
		return nil
	}
	return journal.Update(s, member, func(map[string]T) map[string]T { return now })
}

// previous reads the digests of the last run and puts this run's in their place.
func previous(s *journal.State, o *proxy.Options) (proxy.Previous, error) {
	cfg, err := proxy.ConfigDigest(o.Config.Raw)
	if err != nil {
		return proxy.Previous{}, err
	}
	p := proxy.Previous{Config: remembered(s, configMember), Policy: remembered(s, policyMember), Catalogues: map[string][32]byte{}}
	digests, _ := journal.Get[map[string]string](s, cataloguesMember)
	for name, text := range digests {
		if d := digest(text); d != nil {
			p.Catalogues[name] = *d
		}
	}
	return p, errors.Join(remember(s, configMember, cfg), remember(s, policyMember, o.Policy.Digest()))
}

func remembered(s *journal.State, member string) *[32]byte {
	text, _ := journal.Get[string](s, member)
	return digest(text)
}

func digest(text string) *[32]byte {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 32 {
		return nil
	}
	return (*[32]byte)(b)
}

func remember(s *journal.State, member string, digest [32]byte) error {
	now := hex.EncodeToString(digest[:])
	if old, _ := journal.Get[string](s, member); old == now {
		return nil
	}
	return journal.Update(s, member, func(string) string { return now })
}

// openCalls opens the call log; an empty TOOL_GUARDIAN_CALL_LOG is none.
func (a *app) openCalls(home string, cfg *config.Config) *journal.Calls {
	path, set := cfg.Setting("TOOL_GUARDIAN_CALL_LOG")
	if !set {
		path = filepath.Join(home, "calls.jsonl")
	}
	return journal.OpenCalls(path, a.logger())
}

// openSpills is the archive of what is shortened.
func (a *app) openSpills(home string, cfg *config.Config) (*spill.Store, error) {
	o := spill.Options{Dir: filepath.Join(home, "spill"), Now: a.Now, Logger: a.logger()}
	if dir, set := cfg.Setting("TOOL_GUARDIAN_SPILL_DIR"); set && dir != "" {
		o.Dir = dir
	}
	var megabytes int
	for name, to := range map[string]*int{"spillKeep": &o.Keep, "spillMB": &megabytes} {
		raw := wire.Get(cfg.ToolGuardian, name)
		if raw != nil && (json.Unmarshal(raw, to) != nil || *to < 1) {
			return nil, usagef("toolGuardian.%s is %s: use a whole number of 1 or more", name, raw)
		}
	}
	o.MaxBytes = int64(megabytes) << 20
	store, err := spill.New(o)
	if err != nil {
		return nil, fmt.Errorf("archive of long results: %w", err)
	}
	return store, nil
}

package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/config"
)

// Seen are a server's definitions as one run leaves them to the next, to be
// shown while the server starts.
type Seen struct {
	Command string   `json:"command"` // digest of what was started: another command is another server
	Tools   []string `json:"tools"`   // the definitions' bytes
}

// maxSeen bounds, in bytes, the definitions that are remembered.
const maxSeen = 512 << 10

// Seen is what to keep for the next run's Options.Seen: the definitions of the
// servers that came up, and what was remembered of the others, as far as it
// fits. Servers that are no longer configured come last.
func (r *Router) Seen() map[string]Seen {
	out, left := map[string]Seen{}, maxSeen
	keep := func(name string, s Seen) {
		if n := s.size(); n > 0 && n <= left {
			out[name], left = s, left-n
		}
	}
	old := maps.Clone(r.o.Seen)
	for _, s := range r.servers {
		if now := s.see(); len(now.Tools) > 0 {
			keep(s.Name, now)
			delete(old, s.Name)
		}
	}
	for _, s := range r.servers {
		keep(s.Name, old[s.Name])
		delete(old, s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		keep(name, old[name])
	}
	return out
}

func (s Seen) size() (n int) {
	for _, t := range s.Tools {
		n += len(t)
	}
	return n
}

// see is what the server shows now. A definition that is no UTF-8 would not
// survive being written, and is left out.
func (s *server) see() Seen {
	seen := Seen{Command: commandDigest(s.Server)}
	if s.b == nil {
		return seen
	}
	for t := range s.read().All() {
		if utf8.Valid(t.Raw) {
			seen.Tools = append(seen.Tools, string(t.Raw))
		}
	}
	return seen
}

// commandDigest tells one server from another of the same name.
func commandDigest(s config.Server) string {
	h := sha256.Sum256([]byte(strings.Join(append([]string{s.Command, s.URL, s.Dir}, s.Args...), "\x00")))
	return hex.EncodeToString(h[:8])
}

// lastSeen are the tools of the last run; nil where none are remembered.
func lastSeen(s config.Server, seen Seen) *catalogue.Tools {
	if len(seen.Tools) == 0 || seen.Command != commandDigest(s) {
		return nil
	}
	raw := make([]json.RawMessage, len(seen.Tools))
	for i, t := range seen.Tools {
		raw[i] = json.RawMessage(t)
	}
	return catalogue.ReadTools(s.Name, raw)
}

// Prices are what the definitions of each server that came up cost a model, in
// tokens by the estimate of catalogue.Price.
func (r *Router) Prices() map[string]int {
	out := map[string]int{}
	for _, s := range r.servers {
		if s.b == nil || len(s.b.Tools()) == 0 {
			continue
		}
		var raw []json.RawMessage
		for t := range s.read().All() {
			raw = append(raw, t.Raw)
		}
		out[s.Name] = catalogue.Price(raw)
	}
	return out
}

// settling is how long definitions that came or changed are waited with before
// they are kept: others mostly come along, and one may change all the time.
const settling = 2 * time.Second

// learn says that there is something new to keep.
func (r *Router) learn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.fresh:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settling):
		}
		select {
		case <-r.fresh:
		default:
		}
		r.o.Learnt(r)
	}
}

// stale says of which servers only the last run's tools are shown: of one, or
// of all where name is "".
func (r *Router) stale(name string) (notices []string) {
	for _, s := range r.servers {
		if (name == "" || s.Name == name) && s.last != nil && s.starting() {
			notices = append(notices, fmt.Sprintf("notice: server %s is still starting; what is shown of it was last seen in an earlier run.", s.Name))
		}
	}
	return notices
}

// notUp is the error of a tool that was seen in the last run and whose server
// has not come up.
type notUp struct{ server string }

func (e notUp) Error() string { return "server " + e.server + " has not started" }

// remembered are the tools that a catalogue shows: those read, or, while the
// server starts for the first time, those last seen.
func (s *server) remembered(st backend.State, read *catalogue.Tools) *catalogue.Tools {
	if st == backend.Starting && read == nil {
		return s.last
	}
	return read
}

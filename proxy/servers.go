package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gowebpki/jcs"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/config"
	"toolguardian/receipts"
)

// server is one configured backend. Everything but news and the fields under
// mu is set before the first client is served.
type server struct {
	config.Server
	b    Backend       // nil: it cannot be started
	news atomic.Uint64 // how often the backend said that its tools changed

	last    *catalogue.Tools // of the last run; nil: not known
	changed func(change)     // hears of definitions that differ; nil: nobody asks

	told atomic.Pointer[[32]byte] // digest, as far as receipts tell of it

	mu     sync.Mutex
	seen   uint64 // the news that tools reflects
	tools  *catalogue.Tools
	digest *[32]byte // of the definitions, now or in the last run; nil: never seen
}

// read returns the tools as they stand, and parses them only after a change.
func (s *server) read() *catalogue.Tools {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.news.Load(); now != s.seen {
		raw := s.b.Tools()
		s.tools, s.seen = catalogue.ReadTools(s.Name, raw), now
		s.compare(raw)
	}
	return s.tools
}

// compare tells a change of the definitions, before any call is judged by the
// new ones. It is called under mu.
func (s *server) compare(raw []json.RawMessage) {
	if s.changed == nil {
		return
	}
	now := definitionsDigest(s.Name, raw)
	if s.digest != nil && *s.digest != now {
		s.changed(change{receipts.ChangedCatalogue, *s.digest, now, func() { s.told.Store(&now) }})
	} else {
		s.told.CompareAndSwap(nil, &now)
	}
	s.digest = &now
}

// definitionsDigest is the SHA-256 of {"server": name, "tools": definitions}
// in canonical form (RFC 8785), or as it stands where it has none.
func definitionsDigest(name string, raw []json.RawMessage) [32]byte {
	b := append(appendText([]byte(`{"server":`), name), `,"tools":[`...)
	for i, t := range raw {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t...)
	}
	b = append(b, "]}"...)
	if canonical, err := jcs.Transform(b); err == nil {
		b = canonical
	}
	return sha256.Sum256(b)
}

// Catalogues are the digests of the servers' definitions as they were last
// seen, by server: a change only once its receipt is durable, so that no crash
// loses it. The caller keeps them for the next run's Options.Previous.
func (r *Router) Catalogues() map[string][32]byte {
	out := map[string][32]byte{}
	for _, s := range r.servers {
		if s.b != nil {
			s.read()
		}
		if told := s.told.Load(); told != nil {
			out[s.Name] = *told
		}
	}
	return out
}

// lookup finds a tool by its exact name, hidden or not. s may be nil.
func (s *server) lookup(tool string) (catalogue.Tool, bool) {
	if s == nil || s.b == nil {
		return catalogue.Tool{}, false
	}
	return s.read().Tool(tool)
}

// entry is the server as a catalogue shows it, and whether that lasts until
// the next news.
func (s *server) entry() (e catalogue.Server, settled bool) {
	e = catalogue.Server{Name: s.Name, State: catalogue.Unsupported, Err: s.Problem}
	if s.b == nil {
		return e, true
	}
	st := s.b.Status()
	e.State, e.Flags, e.Err, e.Tools = catalogue.State(st.State), st.Flags, "", s.remembered(st.State, s.read())
	if st.State == backend.Up {
		return e, true
	}
	e.Stderr = st.StderrTail
	if st.Err != nil {
		e.Err = plainError(st.Err)
	}
	return e, false
}

// plainError leaves out what the catalogue shows beside it: the server's name
// and its stderr.
func plainError(err error) string {
	var start *backend.StartError
	if !errors.As(err, &start) {
		return err.Error()
	}
	text := fmt.Sprintf("could not start: %s: %v", start.Step, start.Err)
	if start.Exit != nil {
		text += fmt.Sprintf(" (%v)", *start.Exit)
	}
	if start.Hint != "" {
		text += "; " + start.Hint
	}
	return text
}

// startAll starts every backend; none is waited for.
func (r *Router) startAll(ctx context.Context) {
	for _, s := range r.servers {
		if s.Problem != "" {
			continue
		}
		changed := func(*backend.Backend) {
			s.news.Add(1)
			r.news.Add(1)
			select {
			case r.fresh <- struct{}{}:
			default:
			}
		}
		s.b = r.o.Start(ctx, r.spec(s.Server), backend.Options{
			Client:      backend.ClientInfo{Name: "tool-guardian", Version: r.o.Version},
			Supervisor:  r.o.Supervisor,
			Verdicts:    r.o.Verdicts,
			OnCatalogue: changed,
			OnState:     func(*backend.Backend) { r.news.Add(1) },
			Logger:      r.o.Logger,
			Now:         r.o.Now,
		})
	}
}

func (r *Router) spec(s config.Server) backend.Spec {
	env := r.o.Config.Environ(s)
	return backend.Spec{
		Name: s.Name, Command: s.Command, Args: s.Args, Env: env.Vars, Hint: env.Hint(), Dir: s.Dir,
		Protocol: s.Protocol, StartTimeout: r.o.StartTimeout, CallTimeout: r.o.CallTimeout, MaxConcurrent: s.MaxConcurrent,
	}
}

// closeAll ends every backend, side by side.
func (r *Router) closeAll(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range r.servers {
		if s.b != nil {
			all.Go(func() { s.b.Close(ctx) })
		}
	}
	all.Wait()
}

// view is a catalogue with the news it reflects.
type view struct {
	news uint64
	*catalogue.Catalogue
}

// catalogue is what every tool looks through. It is built anew after news, and
// while a server is not up, whose stderr may have grown.
func (r *Router) catalogue() *catalogue.Catalogue {
	news := r.news.Load()
	if v := r.view.Load(); v != nil && v.news == news {
		return v.Catalogue
	}
	entries, settled := make([]catalogue.Server, len(r.servers)), true
	for i, s := range r.servers {
		var ok bool
		entries[i], ok = s.entry()
		settled = settled && ok
	}
	c := catalogue.New(entries, catalogue.Options{Visible: r.visible, DescWords: r.o.DescWords, MaxChars: r.o.MaxChars, Needs: r.o.Needs})
	if settled {
		r.view.Store(&view{news, c})
	}
	return c
}

// await waits for a server that starts, or for all where name is "", but not
// beyond limit. What has not come up by then is told as STARTING.
func (r *Router) await(ctx context.Context, name string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, s := range r.servers {
		if (name == "" || s.Name == name) && s.starting() {
			_ = s.b.Ready(ctx) // the catalogue tells why it is not up
		}
	}
}

func (s *server) starting() bool { return s.b != nil && s.b.Status().State == backend.Starting }

func (r *Router) server(name string) *server {
	for _, s := range r.servers {
		if s.Name == name {
			return s
		}
	}
	return nil
}

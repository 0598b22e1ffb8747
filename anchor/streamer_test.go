package anchor_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/witness/api"
)

func TestStreamerFollows(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	enroll(t, c, r)
	stream(t, c, func(o *anchor.Options) { o.Heartbeat = time.Minute; o.Roots = r.roots })
	for range 3 {
		record(t, c, 5)
		until(t, "the chain is witnessed", witnessed(t, dir, sizeOf(t, dir)))
	}
	s, err := anchor.ReadStatus(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Witnesses[0]; w.Lag != 0 || w.LagSeconds != 0 || w.LastError != "" || len(w.Alarms) != 0 || w.Cosigned == nil || w.LogSize == 0 {
		t.Errorf("%+v", w)
	}
	if n, err := anchor.KeptSize(dir); err != nil || n != s.Size {
		t.Errorf("kept size %d, %v, want %d", n, err, s.Size)
	}
}

// A new witness is followed without a restart, and states that the chain is
// open and closed.
func TestEnrolledWhileStreaming(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	stop := stream(t, c, func(o *anchor.Options) { o.Heartbeat = time.Minute })
	record(t, c, 2)
	enroll(t, c, r)
	until(t, "the chain is witnessed", witnessed(t, dir, sizeOf(t, dir)))
	states := func() string {
		var words []string
		st, err := r.server.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entriesOf(t, r, st.Size) {
			leaf, err := api.ParseLeaf(entry)
			if err != nil {
				t.Fatal(err)
			}
			if leaf.Type == api.LeafEvent {
				e, _, err := api.ParseEvent(leaf.Body)
				if err != nil {
					t.Fatal(err)
				}
				words = append(words, string(e.State))
			}
		}
		return strings.Join(words, " ")
	}
	until(t, "the open event is logged", func() bool { return states() == "open" })
	stop()
	if got := states(); got != "open closed" {
		t.Errorf("events %q", got)
	}
}

// The answer to an event was lost, or another process posted one: the next
// event is placed after it all the same.
func TestEventAfterLostAnswer(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	enroll(t, c, r)
	var cut atomic.Bool
	lost := roundTrip(func(req *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil && req.URL.Path == "/event" && cut.CompareAndSwap(false, true) {
			return nil, errors.Join(errors.New("cut off"), resp.Body.Close())
		}
		return resp, err
	})
	states := func() (open, closed int) {
		s, err := r.server.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entriesOf(t, r, s.Size) {
			if leaf, err := api.ParseLeaf(entry); err == nil && leaf.Type == api.LeafEvent {
				e, _, err := api.ParseEvent(leaf.Body)
				if err != nil {
					t.Fatal(err)
				}
				if e.State == api.StateOpen {
					open++
				} else {
					closed++
				}
			}
		}
		return open, closed
	}
	for range 2 { // the second streamer knows of no event, and the head is the same
		stop := stream(t, c, func(o *anchor.Options) {
			o.Heartbeat, o.HTTP = time.Minute, &http.Client{Transport: lost}
		})
		until(t, "one more open event", func() bool { open, closed := states(); return open == closed+1 })
		stop()
	}
	if open, closed := states(); open != 2 || closed != 2 {
		t.Errorf("%d open, %d closed", open, closed)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func entriesOf(t *testing.T, r *rig, size uint64) [][]byte {
	t.Helper()
	var all [][]byte
	for i := range size {
		entry, err := r.client.Entry(context.Background(), i, size)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry)
	}
	return all
}

// The last receipts before a stop are witnessed by the stop.
func TestStopSendsTheLastHead(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	enroll(t, c, r)
	stop := stream(t, c, func(o *anchor.Options) { o.Interval = time.Hour })
	until(t, "the first head is witnessed", witnessed(t, dir, 1))
	record(t, c, 4)
	stop()
	if !witnessed(t, dir, sizeOf(t, dir))() {
		t.Error("receipts before the stop were not witnessed")
	}
}

// gate is a witness behind a switch: while shut it answers with that status.
type gate struct {
	next http.Handler
	shut atomic.Int64
	hits atomic.Int64
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if code := int(g.shut.Load()); code != 0 {
		g.hits.Add(1)
		http.Error(w, "shut", code)
		return
	}
	g.next.ServeHTTP(w, r)
}

func gated(t *testing.T, r *rig) (*gate, *httptest.Server) {
	g := &gate{next: r.server.Handler()}
	web := httptest.NewServer(g)
	t.Cleanup(web.Close)
	return g, web
}

func TestWitnessAwayAndBack(t *testing.T) {
	r := newRig(t)
	g, web := gated(t, r)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	if _, err := anchor.Enroll(context.Background(), c, anchor.Enrolment{Dir: dir, URL: web.URL, Token: r.token()}); err != nil {
		t.Fatal(err)
	}
	stream(t, c)
	until(t, "witnessed before", witnessed(t, dir, 1))
	g.shut.Store(http.StatusServiceUnavailable)
	record(t, c, 5)
	until(t, "the failure is shown", func() bool {
		s, err := anchor.ReadStatus(dir, time.Now())
		return err == nil && s.Witnesses[0].Lag > 0 && strings.Contains(s.Witnesses[0].LastError, "unavailable") && g.hits.Load() > 2
	})
	g.shut.Store(0)
	until(t, "witnessed after", witnessed(t, dir, sizeOf(t, dir)))
	until(t, "the error is gone", func() bool {
		s, err := anchor.ReadStatus(dir, time.Now())
		return err == nil && s.Witnesses[0].LastError == ""
	})
}

// The state was lost after the witness cosigned: the conflict tells the size.
func TestConflictRecovery(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	w := enroll(t, c, r)
	stop := stream(t, c)
	record(t, c, 3)
	until(t, "witnessed", witnessed(t, dir, sizeOf(t, dir)))
	stop()
	states, err := filepath.Glob(filepath.Join(dir, "anchor", "*", "state"))
	if err != nil || len(states) != 1 {
		t.Fatal(states, err)
	}
	if err := os.Remove(states[0]); err != nil {
		t.Fatal(err)
	}
	record(t, c, 3)
	stream(t, c)
	until(t, "witnessed again at "+w.URL, witnessed(t, dir, sizeOf(t, dir)))
}

// One of two streamers leads; when it ends the other takes over.
func TestTakeOver(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	enroll(t, c, r)
	var firstHits, secondHits atomic.Int64
	counted := func(n *atomic.Int64) func(*anchor.Options) {
		return func(o *anchor.Options) {
			o.HTTP = &http.Client{Transport: counting{n}}
		}
	}
	stopFirst := stream(t, c, counted(&firstHits))
	until(t, "the first leads", witnessed(t, dir, 1))
	stream(t, c, counted(&secondHits))
	record(t, c, 3)
	until(t, "witnessed by the first", witnessed(t, dir, sizeOf(t, dir)))
	if secondHits.Load() != 0 {
		t.Error("two streamers at once")
	}
	stopFirst()
	led := firstHits.Load()
	record(t, c, 3)
	until(t, "witnessed by the second", witnessed(t, dir, sizeOf(t, dir)))
	if firstHits.Load() != led || secondHits.Load() == 0 {
		t.Error("the second did not take over")
	}
}

type counting struct{ n *atomic.Int64 }

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

// A chain restored from an old copy is behind its witness: it is closed and a
// successor opens, and a copy that runs on is told.
func TestRolledBackChain(t *testing.T) {
	r := newRig(t)
	base := t.TempDir()
	dir, old := filepath.Join(base, "evidence"), filepath.Join(base, "old")
	c, err := chain.Open(context.Background(), chain.Options{Dir: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	enroll(t, c, r)
	record(t, c, 2)
	copyTree(t, dir, old)
	stop := stream(t, c)
	record(t, c, 3)
	until(t, "witnessed", witnessed(t, dir, sizeOf(t, dir)))
	stop()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	t.Run("the copy is told by the witness", func(t *testing.T) {
		copyTree(t, old, filepath.Join(base, "clone"))
		clone := filepath.Join(base, "clone")
		cc := openChain(t, clone)
		stream(t, cc)
		until(t, "the copy is told", func() bool {
			s, err := anchor.ReadStatus(clone, time.Now())
			return err == nil && len(s.Witnesses) == 1 && strings.Contains(s.Witnesses[0].LastError, anchor.ErrAhead.Error())
		})
	})
	t.Run("a chain shorter than its kept head ends", func(t *testing.T) {
		if err := os.RemoveAll(filepath.Join(old, "anchor")); err != nil {
			t.Fatal(err)
		}
		copyTree(t, filepath.Join(dir, "anchor"), filepath.Join(old, "anchor"))
		next := openChain(t, old)
		if _, ended := next.Predecessor(); !ended || next.Origin() == c.Origin() {
			t.Error("a rolled-back chain was continued")
		}
		if n, err := anchor.KeptSize(old); err != nil || n != 0 {
			t.Errorf("the successor starts with kept size %d, %v", n, err)
		}
	})
}

// forge answers as the witness does, but with bytes changed.
type forge struct {
	next   http.RoundTripper
	path   string
	change func([]byte) []byte
}

func (f forge) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := f.next.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, f.path) || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	b = f.change(b)
	resp.Body = io.NopCloser(strings.NewReader(string(b)))
	resp.ContentLength = int64(len(b))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// Nothing a witness answers is kept unless it holds under the pinned keys.
func TestAcceptRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, path string
		change     func([]byte) []byte
		want       string
		cosigned   bool
	}{
		{"cosignature", "/add-checkpoint", func(b []byte) []byte {
			i := strings.LastIndexByte(string(b), ' ') + 30
			if b[i] == 'A' {
				b[i] = 'B'
			} else {
				b[i] = 'A'
			}
			return b
		}, "cosignature", false},
		{"checkpoint of another root", "/checkpoint/latest", func(b []byte) []byte {
			cp, n, err := tlog.ParseSignedCheckpoint(b)
			if err != nil {
				return b
			}
			cp.Root[0] ^= 1
			n.Text = cp.Text()
			return n.Bytes()
		}, "does not verify", true},
		{"entry of another head", "/tile/entries/", func(b []byte) []byte {
			entries, err := tlog.SplitBundle(b)
			if err != nil {
				return b
			}
			var out []byte
			for range entries {
				if out, err = tlog.AppendBundle(out, entries[0]); err != nil {
					return b
				}
			}
			return out
		}, "not the leaf of our head", true},
		{"inclusion path", "/proof", func(b []byte) []byte {
			p, err := tlog.ParseProof(b)
			if err != nil || len(p.Hashes) == 0 {
				return b
			}
			p.Hashes[0][0] ^= 1
			return p.Bytes()
		}, "not shown to be in the log", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			dir := filepath.Join(t.TempDir(), "evidence")
			c := openChain(t, dir)
			enroll(t, c, r)
			stream(t, c, func(o *anchor.Options) {
				o.HTTP = &http.Client{Transport: forge{http.DefaultTransport, tc.path, tc.change}}
			})
			var s anchor.WitnessStatus
			until(t, "the refusal is shown", func() bool {
				st, err := anchor.ReadStatus(dir, time.Now())
				if err != nil || len(st.Witnesses) == 0 {
					return false
				}
				s = st.Witnesses[0]
				return strings.Contains(s.LastError, tc.want)
			})
			if s.Logged || (s.Size > 0) != tc.cosigned {
				t.Errorf("kept %+v", s)
			}
		})
	}
}

// A witness restored from an old copy contradicts what we keep.
func TestWitnessRolledBack(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	enroll(t, c, r)
	stop := stream(t, c)
	until(t, "witnessed", witnessed(t, dir, 1))
	stop()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "old")
	copyTree(t, r.o.Dir, old)
	r.start()
	moveWitness(t, dir, r)
	stop = stream(t, c)
	record(t, c, 3)
	until(t, "witnessed further", witnessed(t, dir, sizeOf(t, dir)))
	stop()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(r.o.Dir); err != nil {
		t.Fatal(err)
	}
	copyTree(t, old, r.o.Dir)
	r.start()
	moveWitness(t, dir, r)
	record(t, c, 1)
	stream(t, c)
	until(t, "the alarm is kept", func() bool {
		s, err := anchor.ReadStatus(dir, time.Now())
		return err == nil && slices.ContainsFunc(s.Witnesses[0].Alarms, func(a string) bool { return strings.HasPrefix(a, "alarm-rollback-") })
	})
}

// moveWitness points the kept pins at the address the witness has now.
func moveWitness(t *testing.T, dir string, r *rig) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "anchor", "*", "witness"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	lines[2] = "url " + r.web.URL
	if err := os.WriteFile(files[0], []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEnrollPins(t *testing.T) {
	r, other := newRig(t), newRig(t)
	c := openChain(t, filepath.Join(t.TempDir(), "evidence"))
	try := func(e anchor.Enrolment) error {
		e.Dir = c.Dir()
		_, err := anchor.Enroll(context.Background(), c, e)
		return err
	}
	if err := try(anchor.Enrolment{URL: r.web.URL, Token: other.token()}); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("a token of another witness: %v", err)
	}
	token := newRig(t)
	again := anchor.Enrolment{URL: token.web.URL, Token: token.token()}
	for range 2 { // an answer that was lost is asked for again
		if err := try(again); err != nil {
			t.Errorf("enroll: %v", err)
		}
	}
	if err := os.RemoveAll(filepath.Join(c.Dir(), "anchor")); err != nil {
		t.Fatal(err)
	}
	if err := try(anchor.Enrolment{URL: r.web.URL}); err == nil {
		t.Error("enrolled on first contact")
	}
	if err := try(anchor.Enrolment{URL: r.web.URL, Token: "tg1.x"}); err == nil || strings.Contains(err.Error(), "tg1.x") {
		t.Errorf("a broken token: %v", err)
	}
	if all, err := anchor.Witnesses(c.Dir(), c.Origin()); err != nil || len(all) != 0 {
		t.Errorf("kept %v, %v", all, err)
	}
	if _, err := r.server.AddAgent(context.Background(), c.HeadKey().String()); err != nil {
		t.Fatal(err)
	}
	if err := try(anchor.Enrolment{URL: r.web.URL, Keys: r.keys()}); err != nil {
		t.Errorf("after the operator added the chain: %v", err)
	}
	if all, err := anchor.Witnesses(c.Dir(), c.Origin()); err != nil || len(all) != 1 || all[0].URL != r.web.URL {
		t.Errorf("kept %v, %v", all, err)
	}
}

// A C2SP witness that keeps no log cosigns our heads.
func TestForeignWitness(t *testing.T) {
	signer, err := tlog.NewSigner("foreign.example/w", tlog.KeyCosignature, seedKey("foreign"))
	if err != nil {
		t.Fatal(err)
	}
	var newest atomic.Pointer[[]byte]
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		req, err := api.ParseAddRequest(b)
		if err != nil {
			t.Error(err)
		}
		_, note, err := tlog.ParseSignedCheckpoint(req.Head)
		if err != nil {
			t.Error(err)
		}
		sig, err := signer.Cosign(note.Text, time.Now())
		if err != nil {
			t.Error(err)
		}
		note.Signatures = append(note.Signatures, sig)
		kept := note.Bytes()
		newest.Store(&kept)
		if _, err := io.WriteString(w, sig.Line()); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("GET /{hash}/checkpoint", func(w http.ResponseWriter, r *http.Request) {
		if b := newest.Load(); b != nil {
			if _, err := w.Write(*b); err != nil {
				t.Error(err)
			}
		}
	})
	web := httptest.NewServer(mux)
	defer web.Close()
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	record(t, c, 3)
	if _, err := anchor.Enroll(context.Background(), c, anchor.Enrolment{Dir: dir, URL: web.URL, Keys: []tlog.Vkey{signer.Vkey()}}); err != nil {
		t.Fatal(err)
	}
	stop := stream(t, c)
	until(t, "cosigned", func() bool {
		s, err := anchor.ReadStatus(dir, time.Now())
		return err == nil && s.Witnesses[0].Size == sizeOf(t, dir)
	})
	stop()
	snap, err := anchor.Fetch(context.Background(), api.New(web.URL, nil), web.URL, c.Origin(), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := verifyDir(t, dir, snap, anchor.Trust{WitnessKeys: []tlog.Vkey{signer.Vkey()}, ChainKeys: []tlog.Vkey{c.HeadKey()}, Now: time.Now()})
	if r.Exit != 0 || r.Tail != 0 || !strings.Contains(text(r), "not shown to be logged") {
		t.Error(text(r))
	}
}

func TestNotBefore(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c := openChain(t, dir)
	enroll(t, c, r)
	record(t, c, 1)
	now := time.Now()
	var ahead atomic.Int64 // the streamer's clock, moved on so that it looks again
	stream(t, c, func(o *anchor.Options) {
		o.Roots = r.roots
		o.Now = func() time.Time { return now.Add(time.Duration(ahead.Add(int64(2 * time.Minute)))) }
	})
	until(t, "a token is kept", func() bool { record(t, c, 1); return anchor.NewestBefore(dir) != nil })
	nb := anchor.NewestBefore(dir)
	if note, token := anchor.Before(dir, *nb); note == nil || token == nil {
		t.Fatal("the newest token is not kept")
	}
	if note, _ := anchor.Before(dir, receipts.NotBefore{}); note != nil {
		t.Error("a token nobody kept was found")
	}
}

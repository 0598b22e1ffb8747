package witness_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store/bolt"
)

// scene is a witness with a chain for each thing that a page tells.
type scene struct {
	*rig
	clock *fakeClock
	busy  *agent // open, many heads, one silence, one rest that it told of
	fork  *agent // two histories
	mute  *agent // open, and silent by now
	ended *agent // closed: its silence is none
	gone  *agent // its key is revoked
	fresh *agent // enrolled, no head yet
}

const beat = time.Minute

func newScene(t testing.TB, change ...func(*witness.Options)) *scene {
	t.Helper()
	clock := newFakeClock()
	s := &scene{clock: clock, rig: newRig(t, append([]func(*witness.Options){clock.in}, change...)...)}
	for _, a := range []**agent{&s.busy, &s.fork, &s.mute, &s.ended, &s.gone, &s.fresh} {
		*a = s.enrolled()
	}
	s.heads(s.mute, 3)
	s.tell(s.mute, api.StateOpen)
	s.heads(s.ended, 5)
	s.tell(s.ended, api.StateClosed)
	s.heads(s.gone, 2)
	if _, err := s.server.RevokeAgent(context.Background(), s.gone.origin(), api.At(s.agent(s.gone.origin()).HeadAt)); err != nil {
		t.Fatal(err)
	}
	s.heads(s.fork, 4)
	if code := s.postHead(s.fork.clone(2, 5, "clone"), 0, 7, nil); code != http.StatusConflict {
		t.Fatalf("the second history: %d", code)
	}
	s.work()
	return s
}

// work is an afternoon of the busy chain.
func (s *scene) work() {
	s.heads(s.busy, 1)
	s.tell(s.busy, api.StateOpen)
	s.heads(s.busy, 30)
	s.clock.pass(17 * time.Minute)
	s.heads(s.busy, 20)
	s.tell(s.busy, api.StateSuspended)
	s.clock.pass(25 * time.Minute)
	s.tell(s.busy, api.StateOpen)
	s.heads(s.busy, 40)
}

// heads adds so many heads, one a beat, of ever more receipts.
func (s *scene) heads(a *agent, n int) {
	s.t.Helper()
	for i := range n {
		from := a.size
		a.grow(1+i%3, "")
		s.clock.pass(beat)
		s.add(a, from, a.size)
	}
}

func (s *scene) tell(a *agent, state api.EventState) {
	s.t.Helper()
	at, err := s.client.Places(context.Background(), a.origin())
	if err != nil {
		s.t.Fatal(err)
	}
	note, err := api.Event{Origin: a.origin(), Log: logName, Size: uint64(a.size), State: state,
		Heartbeat: uint64(beat / time.Second), After: at.Last}.Sign(a.signer)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.client.Event(context.Background(), note); err != nil {
		s.t.Fatal(err)
	}
}

func pathOf(a *agent) string {
	sum := sha256.Sum256([]byte(a.origin()))
	return "/chain/" + hex.EncodeToString(sum[:])
}

// body is a page, which must be there.
func (r *rig) body(path string) string {
	r.t.Helper()
	w := r.get(path)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		r.t.Fatalf("GET %s: %d %s\n%s", path, w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	return w.Body.String()
}

func wants(t *testing.T, where, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s does not say %q", where, text)
		}
	}
}

// What is wrong stands at the top, in words; what was told is no alarm.
func TestPageShowsWhatIsWrong(t *testing.T) {
	s := newScene(t)
	front := s.body("/")
	wants(t, "the overview", front, "Forked: 1 chain has", "Silent: 1 open chain", "Timestamps are missing", "There has never been one")
	if strings.Contains(front, "No fork, no rollback") {
		t.Error("the overview is calm")
	}
	wants(t, "the forked chain", s.body(pathOf(s.fork)), "this chain has two histories", fmt.Sprintf("/fork/%d", s.agent(s.fork.origin()).Forks[0]))
	wants(t, "the silent chain", s.body(pathOf(s.mute)), "Silent for")
	wants(t, "the revoked chain", s.body(pathOf(s.gone)), "Its key is revoked", "are doubtful", ">doubtful<")
	wants(t, "the new chain", s.body(pathOf(s.fresh)), "none yet")
	if ended := s.body(pathOf(s.ended)); strings.Contains(ended, "Silent for") || strings.Contains(ended, ">silent<") {
		t.Error("a closed chain is called silent")
	}
	busy := s.body(pathOf(s.busy))
	if n := strings.Count(busy, `<rect class="silent"`); n != 1 {
		t.Errorf("the busy chain has %d silences, want 1", n)
	}
	if n := strings.Count(busy, `<rect class="rest"`); n != 1 {
		t.Errorf("the busy chain has %d rests, want 1", n)
	}
}

// A plot of many heads reads some of them, and finds the one silence.
func TestPagePlotFindsSilenceAmongMany(t *testing.T) {
	clock := newFakeClock()
	s := &scene{clock: clock, rig: newRig(t, clock.in)}
	s.busy = s.enrolled()
	s.heads(s.busy, 1)
	s.tell(s.busy, api.StateOpen)
	s.heads(s.busy, 120)
	s.clock.pass(7 * time.Minute)
	s.heads(s.busy, 200)
	body := s.body(pathOf(s.busy))
	wants(t, "the plot", body, "heads shown, not all")
	if n := strings.Count(body, `<rect class="silent"`); n != 1 {
		t.Errorf("%d silences, want 1", n)
	}
}

func TestPageHeaders(t *testing.T) {
	s := newScene(t)
	for _, path := range []string{"/", pathOf(s.busy), "/leaf/3", "/search", "/search?q=3"} {
		w := s.get(path)
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || strings.Contains(policy, "unsafe") {
			t.Errorf("GET %s: %d, policy %q", path, w.Code, policy)
		}
		if body := w.Body.String(); strings.Contains(body, "<script") || strings.Contains(body, " style=") || strings.Contains(body, "ZgotmplZ") {
			t.Errorf("GET %s: a script, a style the policy forbids, or a refused value", path)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("GET %s: headers %v", path, w.Header())
		}
	}
	for path, code := range map[string]int{"/chain/00": 404, "/chain/" + strings.Repeat("0", 64): 404, "/leaf/999999": 404, "/leaf/x": 404,
		"/?page=0": 404, "/?page=2": 404, "/?show=none": 404, pathOf(s.busy) + "?before=1": 404, pathOf(s.busy) + "?before=x": 400} {
		if w := s.get(path); w.Code != code {
			t.Errorf("GET %s: %d, want %d", path, w.Code, code)
		}
	}
}

// A name that is markup, or that turns the text around it, is only text.
func TestPageEscapesNames(t *testing.T) {
	const hostile = "<img/src=x/onerror=alert(1)>\u202e\"'&{{.}}"
	r := &rig{t: t, o: witness.Options{Dir: filepath.Join(t.TempDir(), "witness"), Engine: bolt.OpenDir, RatePerSecond: -1,
		StampEvery: time.Hour, Authorities: []witness.Authority{{Name: "silent", Timestamper: silent{}}}}}
	if err := witness.Init(r.o.Dir, hostile, r.o.Engine); err != nil {
		t.Fatal(err)
	}
	r.start()
	t.Cleanup(r.finish)
	r.enrolled()
	for _, path := range []string{"/", "/leaf/0", "/search?q=%3Cimg%2Fsrc%3Dx%3E%E2%80%AE%22%27"} {
		body := r.body(path)
		if strings.Contains(body, "<img") {
			t.Errorf("GET %s: the name is markup", path)
		}
		wants(t, path, body, "&lt;img/src=x/onerror=alert(1)&gt;⟨U&#43;202E⟩")
	}
}

func TestPageSearch(t *testing.T) {
	s := newScene(t)
	head := s.agent(s.busy.origin())
	origin := sha256.Sum256([]byte(s.busy.origin()))
	entry, err := s.client.Entry(context.Background(), head.HeadAt, s.status().Size)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := api.ParseLeaf(entry)
	if err != nil {
		t.Fatal(err)
	}
	leafHash, err := leaf.Hash()
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		hex.EncodeToString(origin[:]): "origin of a chain",
		s.busy.origin():               "origin of a chain",
		head.HeadRoot.Hex():           fmt.Sprintf("root of a chain at size %d", head.HeadSize),
		leafHash.Hex():                "hash of a leaf",
		"7":                           "leaf of the log",
		strings.Repeat("ab", 32):      "Nothing was found",
		"9999999":                     "Nothing was found",
		"junk":                        "want a SHA-256",
	} {
		wants(t, "the search for "+query, s.body("/search?q="+query), want)
	}
	inBase64 := strings.NewReplacer("+", "%2B", "/", "%2F", "=", "%3D").Replace(head.HeadRoot.Base64())
	wants(t, "the search in base64", s.body("/search?q="+inBase64), "root of a chain")
}

// A long list is shown in parts, and what is wrong comes first.
func TestPagePagesChains(t *testing.T) {
	r := newRig(t)
	first := r.enrolled().grow(2, "")
	r.add(first, 0, 2)
	if code := r.postHead(first.clone(1, 1, "clone"), 0, 2, nil); code != http.StatusConflict {
		t.Fatalf("the second history: %d", code)
	}
	for range 110 {
		r.enrolled()
	}
	front, next := r.body("/"), r.body("/?page=2")
	wants(t, "the first page", front, "1–100 of 111", "page 1 of 2")
	wants(t, "the second page", next, "101–111 of 111")
	rows := front[strings.Index(front, "<tbody>"):]
	if i := strings.Index(rows, "<tr"); !strings.HasPrefix(rows[i:], `<tr class="is-bad">`) {
		t.Errorf("the forked chain is not the first: %.40s", rows[i:])
	}
	wants(t, "what needs attention", r.body("/?show=attention"), "1–1 of 1")
}

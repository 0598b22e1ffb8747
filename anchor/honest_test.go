package anchor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// history is a chain that lives through what happens to honest ones.
type history struct {
	t     *testing.T
	rnd   *rand.Rand
	rig   *rig
	dir   string
	c     *chain.Chain
	first tlog.Vkey
	away  atomic.Bool // the witness cannot be reached
	told  []string
	n     int
}

func newHistory(t *testing.T, r *rig, seed uint64) *history {
	h := &history{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), rig: r, dir: filepath.Join(t.TempDir(), "evidence")}
	h.open()
	t.Cleanup(func() { h.must(h.c.Close()) })
	h.first = h.c.HeadKey()
	enroll(t, h.c, r)
	return h
}

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%v, after %s", err, strings.Join(h.told, ", "))
	}
}

func (h *history) open() {
	h.t.Helper()
	c, err := chain.Open(context.Background(), chain.Options{Dir: h.dir, Version: "test", SegmentSize: 16 << 10, LockTimeout: time.Minute,
		KeptHeads: func() (uint64, []byte, error) { return anchor.KeptHead(h.dir) }})
	h.must(err)
	h.c = c
}

// RoundTrip is the way to the witness, which may be cut.
func (h *history) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.away.Load() {
		return nil, errors.New("no way to the witness")
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (h *history) append(r receipts.Receipt) {
	h.t.Helper()
	_, err := h.c.Append(context.Background(), r)
	h.must(err)
}

// session opens, calls and ends in one of the ways a session ends.
func (h *history) session() {
	c := common()
	h.n++
	c.Session = fmt.Sprintf("session %d", h.n)
	h.append(receipts.NewSessionOpen(c, "2025-11-25", time.Minute, receipts.Commit(receipts.FieldPrincipal, [32]byte{1}, nil)))
	for range h.rnd.IntN(4) {
		call := receipts.Call{ID: receipts.NewID(time.Now()), Server: "files", Tool: "read"}
		salt := [32]byte{byte(h.n), 1}
		h.append(receipts.NewDecision(c, receipts.Decision{Call: call, Effect: "allow", Mode: receipts.ModeEnforced},
			receipts.Commit(receipts.FieldArgsSent, salt, []byte(`{}`))))
		if h.rnd.IntN(4) > 0 {
			h.append(receipts.NewOutcome(c, receipts.Outcome{Call: call, Status: receipts.StatusOK},
				receipts.Commit(receipts.FieldResultReceived, salt, []byte("result"))))
		}
	}
	switch h.rnd.IntN(3) {
	case 0:
		h.append(receipts.NewSessionClose(c, receipts.EndClosed))
		h.append(receipts.NewLate(c, receipts.Outcome{Call: receipts.Call{ID: "late"}, Status: receipts.StatusOK}))
	case 1:
		h.append(receipts.NewGap(c, receipts.Gap{Count: 1, Reason: "no space"}))
		h.append(receipts.NewSessionClose(c, receipts.EndInterrupted))
	}
}

// restart closes and opens; crashed, a line was begun and not finished.
func (h *history) restart(crashed bool) {
	h.t.Helper()
	h.must(h.c.Close())
	if crashed {
		h.tear()
	}
	h.open()
}

func (h *history) tear() {
	h.t.Helper()
	segments, err := filepath.Glob(filepath.Join(h.dir, "chain", "*.jsonl"))
	h.must(err)
	sort.Strings(segments)
	f, err := os.OpenFile(segments[len(segments)-1], os.O_WRONLY|os.O_APPEND, 0o600)
	h.must(err)
	_, err = io.WriteString(f, `{"payload":"eyJfdHlwZSI6Imh0`[:1+h.rnd.IntN(28)])
	h.must(errors.Join(err, f.Close()))
}

// stream runs the streamer, until the witness has everything where it can be
// reached.
func (h *history) stream(away bool) {
	h.t.Helper()
	h.away.Store(away)
	stop := stream(h.t, h.c, func(o *anchor.Options) { o.HTTP = &http.Client{Transport: h} })
	h.session()
	if !away {
		until(h.t, "the chain is witnessed", witnessed(h.t, h.dir, sizeOf(h.t, h.dir)))
	}
	stop()
	h.away.Store(false)
}

func (h *history) prune() {
	s, err := anchor.ReadStatus(h.dir, time.Now())
	h.must(err)
	if size := s.Witnesses[0].Size; size > 4 {
		_, _, err = h.c.Prune(context.Background(), h.rnd.Uint64N(size), size)
		if err != nil && !strings.Contains(err.Error(), "nothing to remove") {
			h.must(err)
		}
	}
}

func (h *history) erase() {
	seq := h.rnd.Uint64N(sizeOf(h.t, h.dir))
	_, err := h.c.Erase(context.Background(), chain.Erasure{Fields: []receipts.Erased{{Seq: seq, Field: "args_sent"}}})
	if err != nil && !errors.Is(err, chain.ErrErased) && !errors.Is(err, chain.ErrNotFound) {
		h.must(err)
	}
}

func (h *history) live() {
	acts := []struct {
		name string
		do   func()
	}{
		{"session", h.session}, {"session", h.session},
		{"restart", func() { h.restart(false) }},
		{"crash", func() { h.restart(true) }},
		{"stream", func() { h.stream(false) }}, {"stream", func() { h.stream(false) }},
		{"outage", func() { h.stream(true) }},
		{"rotate", func() { _, err := h.c.Rotate(context.Background()); h.must(err) }},
		{"prune", h.prune},
		{"erase", h.erase},
	}
	act := acts[h.rnd.IntN(len(acts))]
	h.told = append(h.told, act.name)
	act.do()
}

// judge verifies as an auditor would, with everything pinned.
func (h *history) judge(what string, allowed ...anchor.Reason) {
	h.t.Helper()
	r, err := chain.OpenReader(h.dir)
	h.must(err)
	defer r.Close()
	src := anchor.Source{Target: h.dir, Chain: r, Salts: r, Against: "witness", Witness: h.rig.snapshot(h.c.Origin(), 0)}
	rep := anchor.Verify(src, h.rig.trust(h.first))
	for _, f := range rep.Reasons {
		if f.Exit == anchor.ExitFail || !slices.Contains(allowed, f.Reason) {
			h.t.Fatalf("%s, after %s\n%s", what, strings.Join(h.told, ", "), text(rep))
		}
	}
}

// No honest history is called tampered: growth, crashes, outages, rotations,
// prunes and erasures, in any order, verified after each of them.
func TestHonestHistories(t *testing.T) {
	r := newRig(t)
	rounds, acts := 8, 14
	if testing.Short() {
		rounds, acts = 2, 8
	}
	for i := range rounds {
		h := newHistory(t, r, uint64(i))
		for range acts {
			h.live()
			h.judge("called tampered", anchor.Unprotected, anchor.ErasedSalt, anchor.MissingTime)
		}
		h.must(h.c.Close())
		h.tear()
		h.judge("a torn tail called tampered", anchor.Unprotected, anchor.ErasedSalt, anchor.MissingTime, anchor.Torn)
		h.open()
		h.judge("called tampered after recovery", anchor.Unprotected, anchor.ErasedSalt, anchor.MissingTime)
	}
}

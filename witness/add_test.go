package witness_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
)

// Every status, body and content type of C2SP tlog-witness, add-checkpoint.
// Each row starts from a chain of 7 whose head of size 5 was cosigned.
func TestAddCheckpointStatuses(t *testing.T) {
	r := newRig(t)
	stranger := newAgent(t).grow(3, "")
	empty := r.enrolled()
	other := newAgent(t)
	padded := func(a *agent, n int) []byte {
		head := a.head(7)
		line := "— " + strings.Repeat("x", 200) + " " + "AAAAAAA" + strings.Repeat("A", 180) + "=\n"
		return append(head, strings.Repeat(line, n)...)
	}
	tests := []struct {
		name   string
		body   func(a *agent) []byte
		status int
		want   string // of the body: exact for a size line, else a part of it
		kind   string
	}{
		{"extended", func(a *agent) []byte { return a.body(5, 7) }, 200, "— " + logName + "/cosigner ", ""},
		{"same size, same root", func(a *agent) []byte { return a.body(5, 5) }, 200, "— " + logName + "/cosigner ", ""},
		{"more lines by others", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Proof: a.proof(5, 7), Head: signedNote(t, a.checkpoint(7).Text(), other.signer, a.signer)}.Bytes()
		}, 200, "— ", ""},

		{"unknown origin", func(*agent) []byte { return stranger.body(0, 3) }, 404, "token", ""},
		{"the log's own name", func(a *agent) []byte {
			return api.AddRequest{Head: signedNote(t, tlog.Checkpoint{Origin: logName, Size: 1}.Text(), a.signer)}.Bytes()
		}, 404, "", ""},
		{"no line by the key", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Proof: a.proof(5, 7), Head: signedNote(t, a.checkpoint(7).Text(), other.signer)}.Bytes()
		}, 403, "", ""},
		{"a line by the key that fails", func(a *agent) []byte {
			body := a.body(5, 7)
			sig := body[len(body)-8]
			body[len(body)-8] = map[bool]byte{true: 'B', false: 'A'}[sig == 'A']
			return body
		}, 403, "", ""},
		{"a good and a bad line by the key", func(a *agent) []byte {
			good := a.head(7)
			bad, _ := tlog.ParseNote(a.head(6))
			return api.AddRequest{Old: 5, Proof: a.proof(5, 7), Head: append(good, bad.Signatures[0].Line()...)}.Bytes()
		}, 403, "", ""},

		{"old above the size", func(a *agent) []byte {
			return api.AddRequest{Old: 8, Head: a.head(7)}.Bytes()
		}, 400, "old size 8", ""},
		{"old is not the latest", func(a *agent) []byte { return a.body(4, 7) }, 409, "5\n", api.ContentTypeSize},
		{"old is zero", func(a *agent) []byte { return a.body(0, 7) }, 409, "5\n", api.ContentTypeSize},
		{"a smaller head", func(a *agent) []byte { return a.body(3, 4) }, 409, "5\n", api.ContentTypeSize},
		{"conflict comes before the proof", func(a *agent) []byte {
			return api.AddRequest{Old: 4, Proof: a.proof(5, 7), Head: a.head(7)}.Bytes()
		}, 409, "5\n", api.ContentTypeSize},

		{"proof of other sizes", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Proof: a.proof(4, 7), Head: a.head(7)}.Bytes()
		}, 422, "consistency", ""},
		{"no proof", func(a *agent) []byte { return api.AddRequest{Old: 5, Head: a.head(7)}.Bytes() }, 422, "", ""},
		{"proof too long", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Proof: append(a.proof(5, 7), tlog.Hash{}), Head: a.head(7)}.Bytes()
		}, 422, "", ""},
		{"same size, other root", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Head: a.signed(tlog.Checkpoint{Origin: a.origin(), Size: 5, Root: tlog.Hash{1}})}.Bytes()
		}, 422, "size 5", ""},
		{"same size, needless proof", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Proof: []tlog.Hash{{}}, Head: a.head(5)}.Bytes()
		}, 422, "", ""},
		{"proof from zero", func(*agent) []byte {
			empty := empty.grow(3, "")
			return api.AddRequest{Proof: []tlog.Hash{{}}, Head: empty.head(3)}.Bytes()
		}, 422, "want none", ""},
		{"size zero, other root", func(*agent) []byte {
			return api.AddRequest{Head: empty.signed(tlog.Checkpoint{Origin: empty.origin(), Root: tlog.Hash{1}})}.Bytes()
		}, 422, "empty tree", ""},
		{"size zero with a proof", func(*agent) []byte {
			return api.AddRequest{Proof: []tlog.Hash{{}}, Head: empty.head(0)}.Bytes()
		}, 422, "", ""},

		{"empty body", func(*agent) []byte { return nil }, 400, "", ""},
		{"no empty line", func(*agent) []byte { return []byte("old 0\n") }, 400, "", ""},
		{"old with a leading zero", func(a *agent) []byte { return append([]byte("old 05\n\n"), a.head(7)...) }, 400, "", ""},
		{"old with a sign", func(a *agent) []byte { return append([]byte("old +5\n\n"), a.head(7)...) }, 400, "", ""},
		{"CRLF", func(a *agent) []byte { return append([]byte("old 5\r\n\n"), a.head(7)...) }, 400, "", ""},
		{"63 proof lines", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Proof: make([]tlog.Hash, 63), Head: a.head(7)}.Bytes()
		}, 422, "", ""},
		{"64 proof lines", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Proof: make([]tlog.Hash, 64), Head: a.head(7)}.Bytes()
		}, 400, "at most 63", ""},
		{"proof line of 31 bytes", func(a *agent) []byte {
			return append([]byte("old 5\n"+strings.Repeat("A", 40)+"AA==\n\n"), a.head(7)...)
		}, 400, "proof line 1", ""},
		{"loose base64", func(a *agent) []byte {
			return append([]byte("old 5\n"+strings.Repeat("A", 42)+"B=\n\n"), a.head(7)...)
		}, 400, "", ""},
		{"extension line", func(a *agent) []byte {
			return api.AddRequest{Old: 5, Head: signedNote(t, append(a.checkpoint(7).Text(), "more\n"...), a.signer)}.Bytes()
		}, 400, "", ""},
		{"size with a leading zero", func(a *agent) []byte {
			text := strings.Replace(string(a.checkpoint(7).Text()), "\n7\n", "\n07\n", 1)
			return api.AddRequest{Old: 5, Head: signedNote(t, []byte(text), a.signer)}.Bytes()
		}, 400, "", ""},
		{"checkpoint over 128 KiB", func(a *agent) []byte { return api.AddRequest{Old: 5, Head: padded(a, 400)}.Bytes() }, 413, "", ""},
		{"body over 160 KiB", func(*agent) []byte { return make([]byte, api.MaxBody+1) }, 413, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := r.enrolled().grow(7, "")
			r.add(a, 0, 5)
			before := r.status().Size
			w := r.post("/add-checkpoint", test.body(a))
			if w.Code != test.status {
				t.Errorf("status %d, want %d: %s", w.Code, test.status, w.Body)
			}
			if test.kind != "" && (w.Header().Get("Content-Type") != test.kind || w.Body.String() != test.want) {
				t.Errorf("body %q of type %q, want %q of %q", w.Body, w.Header().Get("Content-Type"), test.want, test.kind)
			}
			if !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("body %q, want it to hold %q", w.Body, test.want)
			}
			forks := uint64(len(r.agent(a.origin()).Forks)) // what convicts the sender is logged
			if after := r.status().Size; test.status != 200 && after != before+forks {
				t.Errorf("a refused request grew the log from %d to %d, with %d forks", before, after, forks)
			}
		})
	}
}

func TestFirstHeads(t *testing.T) {
	r := newRig(t)
	a := r.enrolled()
	zero := r.add(a, 0, 0)
	if again := r.add(a, 0, 0); again.Index != zero.Index {
		t.Errorf("size zero again: index %d, want %d", again.Index, zero.Index)
	}
	a.grow(3, "")
	if grown := r.add(a, 0, 3); grown.Index != zero.Index+1 {
		t.Errorf("size three: index %d, want %d", grown.Index, zero.Index+1)
	}
}

// The same head again gets a fresh cosignature and no new leaf, and the times
// of one origin never run back, whatever the clock does.
func TestHeadAgain(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	var mu sync.Mutex
	r := newRig(t, func(o *witness.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	set := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	a := r.enrolled().grow(5, "")
	_, cosigner := r.server.Vkeys()
	first := r.add(a, 0, 5)
	size := r.status().Size
	var times []int64
	for _, step := range []time.Duration{0, 10 * time.Second, -50 * time.Second, 20 * time.Second} {
		set(step)
		again := r.add(a, 5, 5)
		if again.Index != first.Index || r.status().Size != size {
			t.Errorf("again: index %d, log size %d; want %d, %d", again.Index, r.status().Size, first.Index, size)
		}
		note := tlog.Note{Text: a.checkpoint(5).Text(), Signatures: []tlog.Signature{again.Line}}
		if _, err := note.Verify(cosigner); err != nil {
			t.Errorf("cosignature: %v", err)
		}
		at, ok := again.Line.Time()
		if !ok {
			t.Fatal("a cosignature without a time")
		}
		times = append(times, at.Unix()-1_900_000_000)
	}
	for i, want := range []int64{0, 10, 10, 10} {
		if times[i] != want {
			t.Errorf("time %d is %d, want %d (max of the clock and the last time)", i, times[i], want)
		}
	}
}

// Concurrent heads of one origin: of two histories exactly one is cosigned, the
// other is told the size that won.
func TestRacersOfOneOrigin(t *testing.T) {
	r := newRig(t)
	for round := range 20 {
		a := r.enrolled()
		b := &agent{t: t, signer: a.signer}
		a.grow(4, "left")
		b.grow(4, "right")
		start := make(chan struct{})
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			racer := []*agent{a, b}[i%2]
			body := racer.body(0, 4)
			wg.Go(func() {
				<-start
				_, errs[i] = r.server.AddCheckpoint(context.Background(), body)
			})
		}
		close(start)
		wg.Wait()
		won := 0
		for _, err := range errs {
			var conflict api.ErrConflict
			switch {
			case err == nil:
				won++
			case !errors.As(err, &conflict) || conflict.Size != 4:
				t.Errorf("round %d: %v, want a conflict at size 4", round, err)
			}
		}
		if won != 1 {
			t.Errorf("round %d: %d racers won, want 1", round, won)
		}
	}
}

// A stranger costs neither disk nor a leaf, however many there are.
func TestUnknownOriginsCostNoDisk(t *testing.T) {
	r := newRig(t)
	before := r.status()
	for range 100 {
		if w := r.post("/add-checkpoint", newAgent(t).grow(1, "").body(0, 1)); w.Code != http.StatusNotFound {
			t.Fatalf("status %d, want 404", w.Code)
		}
	}
	if after := r.status(); after.Checkpoint != before.Checkpoint || after.Agents != 0 {
		t.Errorf("strangers changed the log: %+v", after)
	}
}

func TestRateLimitIsPerOrigin(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	r := newRig(t, func(o *witness.Options) {
		o.RatePerSecond = 0.2
		o.Now = func() time.Time { return now }
	})
	a, b := r.enrolled().grow(1, ""), r.enrolled().grow(1, "")
	forged := a.body(0, 1)
	forged[len(forged)-8] ^= 1
	for range 3 {
		if w := r.post("/add-checkpoint", forged); w.Code != 403 && w.Code != 400 {
			t.Fatalf("forged: status %d", w.Code)
		}
	}
	if w := r.post("/add-checkpoint", a.body(0, 1)); w.Code != 200 {
		t.Errorf("forgeries used up the origin's share: status %d", w.Code)
	}
	w := r.post("/add-checkpoint", a.body(1, 1))
	if w.Code != 429 || w.Header().Get("Retry-After") != "5" {
		t.Errorf("status %d, Retry-After %q, want 429 and 5", w.Code, w.Header().Get("Retry-After"))
	}
	if w := r.post("/add-checkpoint", b.body(0, 1)); w.Code != 200 {
		t.Errorf("another origin: status %d, want 200", w.Code)
	}
	_, err := r.client.AddCheckpoint(context.Background(), 1, nil, a.head(1))
	var limited api.ErrRateLimited
	if !errors.As(err, &limited) || limited.RetryAfter != 5*time.Second {
		t.Errorf("client: %v, want ErrRateLimited of 5s", err)
	}
}

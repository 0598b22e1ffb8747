package tsa

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// remote serves h and describes it as an authority whose tokens must chain to
// roots.
func remote(t testing.TB, name string, h http.Handler, roots *x509.CertPool) Remote {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return Remote{Name: name, URL: server.URL, Roots: roots}
}

// replies answers every request with the same status, type and body.
func replies(status int, media string, body []byte, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		w.Write(body)
	}
}

// rewriting passes requests to the authority and its answers through edit.
func rewriting(a *Authority, edit func(query Request, reply []byte) []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		query, _ := ParseRequest(body)
		reply, _ := a.Issue(r.Context(), body)
		w.Header().Set("Content-Type", replyType)
		w.Write(edit(query, reply))
	}
}

func newClient(t testing.TB, remotes ...Remote) *Client {
	t.Helper()
	c, err := New(ClientOptions{Authorities: remotes, Now: func() time.Time { return labTime }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestClientSituations puts an authority in trouble before a good one: the
// trouble has its outcome, and the good one stamps.
func TestClientSituations(t *testing.T) {
	good, _ := newAuthority(t)
	other, _ := newAuthority(t)
	gzipped := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write(b)
		z.Close()
		return out.Bytes()
	}
	reissue := func(edit func(*Request)) http.HandlerFunc {
		return rewriting(good, func(q Request, _ []byte) []byte {
			edit(&q)
			der, _ := q.DER()
			reply, _ := good.Issue(context.Background(), der)
			return reply
		})
	}
	for _, tt := range []struct {
		name    string
		handler http.Handler
		want    Outcome
		says    string
	}{
		{"201", rewritten(good, 201, replyType), Stamped, ""},
		{"charset", rewritten(good, 200, replyType+"; charset=binary"), Stamped, ""},
		{"html", replies(200, "text/html", []byte("<p>sign in</p>")), Refused, "text/html"},
		{"400 labelled as reply", replies(400, replyType, []byte("{\"error\":\"\x1b[31mno\"}")), Later, `\x1b`},
		{"500 long", replies(500, "text/plain", bytes.Repeat([]byte("a"), 5000)), Later, "…"},
		{"302", replies(302, "text/html", nil, "Location", "https://elsewhere.example/tsa"), Refused, "https://elsewhere.example/tsa"},
		{"301", replies(301, "text/html", nil, "Location", "/tsa2"), Refused, "/tsa2"},
		{"429", replies(429, "text/plain", nil, "Retry-After", "120"), Later, "429"},
		{"503", replies(503, "text/plain", nil), Later, "503"},
		{"large", replies(200, replyType, make([]byte, MaxToken+1)), Refused, "longer"},
		{"bomb", replies(200, replyType, gzipped(make([]byte, 50<<20)), "Content-Encoding", "gzip"), Refused, "longer"},
		{"unknown coding", replies(200, replyType, []byte("x"), "Content-Encoding", "br"), Refused, "br"},
		{"empty", replies(200, replyType, nil), Refused, "empty"},
		{"garbage", replies(200, replyType, []byte("no DER")), Refused, "DER"},
		{"badAlg", replies(200, replyType, encodeRejection(BadAlg, "no")), Stopped, "badAlg"},
		{"unacceptedPolicy", replies(200, replyType, encodeRejection(UnacceptedPolicy, "no")), Stopped, "unacceptedPolicy"},
		{"timeNotAvailable", replies(200, replyType, encodeRejection(TimeNotAvailable, "wait")), Later, "timeNotAvailable"},
		{"systemFailure", replies(200, replyType, encodeRejection(SystemFailure, "wait")), Later, "systemFailure"},
		{"waiting", replies(200, replyType, sequence(sequence(encodeSmall(3)))), Later, "waiting"},
		{"granted without token", replies(200, replyType, sequence(sequence(encodeSmall(0)))), Refused, "no token"},
		{"other nonce", reissue(func(q *Request) { q.Nonce = NewRequest(labDigest).Nonce }), Refused, "nonce"},
		{"no nonce", reissue(func(q *Request) { q.Nonce = nil }), Refused, "nonce"},
		{"other imprint", reissue(func(q *Request) { q.Imprint = SHA256Imprint([32]byte{9}) }), Refused, "imprint"},
		{"broken signature", rewriting(good, func(_ Request, b []byte) []byte { b[len(b)-1] ^= 1; return b }), Refused, "signature"},
		{"unknown root", other.Handler(), Unanchored, "root"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newClient(t,
				remote(t, "first", tt.handler, good.Roots()),
				remote(t, "second", good.Handler(), good.Roots()))
			run := c.StampAll(context.Background(), labDigest)
			if len(run) != 2 || run[1].Outcome != Stamped || run[1].Token.Authority != "second" {
				t.Fatalf("attempts %+v", run)
			}
			checkAttempt(t, run[0], tt.want, tt.says)
			token, err := newClient(t, c.authorities...).Stamp(context.Background(), labDigest)
			if err != nil || (token.Authority == "first") != (tt.want == Stamped) {
				t.Errorf("Stamp gave a token of %q, err = %v", token.Authority, err)
			}
		})
	}
}

func rewritten(a *Authority, status int, media string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reply, _ := a.Issue(r.Context(), body)
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		w.Write(reply)
	}
}

func checkAttempt(t *testing.T, a Attempt, want Outcome, says string) {
	t.Helper()
	if a.Outcome != want {
		t.Fatalf("outcome %s (%v), want %s", a.Outcome, a.Err, want)
	}
	if says != "" && (a.Err == nil || !strings.Contains(a.Err.Error(), says)) {
		t.Errorf("err = %v, want one that says %q", a.Err, says)
	}
	if a.Err != nil && strings.ContainsAny(a.Err.Error(), "\x1b\n") || a.Err != nil && len(a.Err.Error()) > 1000 {
		t.Errorf("foreign text is not escaped and cut: %q", a.Err)
	}
	if hasToken := a.Token.DER != nil; hasToken != (want == Stamped || want == Unanchored) {
		t.Errorf("a token came with outcome %s: %v", want, hasToken)
	}
}

// TestClientUnanchored: the kept bytes count once the root is added.
func TestClientUnanchored(t *testing.T) {
	a, _ := newAuthority(t)
	c := newClient(t, remote(t, "new", a.Handler(), nil))
	run := c.StampAll(context.Background(), labDigest)
	checkAttempt(t, run[0], Unanchored, "root")
	_, err := c.Stamp(context.Background(), labDigest)
	var failed *StampError
	if !errors.As(err, &failed) || failed.Permanent() {
		t.Fatalf("err = %v", err)
	}
	if _, err := Verify(run[0].Token.DER, VerifyOptions{Digest: labDigest, Roots: a.Roots(), Now: labTime}); err != nil {
		t.Fatal(err)
	}
}

// TestClientNextAtOnce: a refused connection costs nothing.
func TestClientNextAtOnce(t *testing.T) {
	a, _ := newAuthority(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := Remote{Name: "gone", URL: "http://" + l.Addr().String(), Roots: a.Roots()}
	l.Close()
	c := newClient(t, gone, remote(t, "good", a.Handler(), a.Roots()))
	run := c.StampAll(context.Background(), labDigest)
	checkAttempt(t, run[0], Unreachable, "refused")
	checkAttempt(t, run[1], Stamped, "")
}

// TestClientDrip: the deadline is for the exchange, however the bytes come.
func TestClientDrip(t *testing.T) {
	a, _ := newAuthority(t)
	drip := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", replyType)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-r.Context().Done():
				tick.Stop()
				return
			case <-tick.C:
				w.Write([]byte{0x30})
				w.(http.Flusher).Flush()
			}
		}
	})
	c := newClient(t, remote(t, "drip", drip, a.Roots()), remote(t, "good", a.Handler(), a.Roots()))
	c.timeout = 200 * time.Millisecond
	run := c.StampAll(context.Background(), labDigest)
	if len(run) != 2 || run[0].Outcome != Unreachable || !errors.Is(run[0].Err, context.DeadlineExceeded) {
		t.Fatalf("attempts %+v", run)
	}
	checkAttempt(t, run[1], Stamped, "")
}

// TestClientRests: Retry-After rests that authority alone, in both its forms,
// until the time has come.
func TestClientRests(t *testing.T) {
	for header, rest := range map[string]time.Duration{
		"120": 2 * time.Minute,
		labTime.Add(time.Hour).Format(http.TimeFormat): time.Hour,
		"":                     defaultRest,
		"soon":                 defaultRest,
		"-5":                   defaultRest,
		"4000000000":           maxRest,
		"99999999999999999999": defaultRest,
	} {
		t.Run("after "+header, func(t *testing.T) { testRest(t, header, rest) })
	}
}

func testRest(t *testing.T, header string, rest time.Duration) {
	a, _ := newAuthority(t)
	var asked atomic.Int32
	busy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if header != "" {
			w.Header().Set("Retry-After", header)
		}
		w.WriteHeader(http.StatusTooManyRequests)
	})
	at := labTime
	c := newClient(t, remote(t, "busy", busy, a.Roots()), remote(t, "good", a.Handler(), a.Roots()))
	c.now = func() time.Time { return at }
	for _, step := range []struct {
		at    time.Time
		want  Outcome
		asked int32
	}{
		{labTime, Later, 1},
		{labTime, Resting, 1},
		{labTime.Add(rest - 1), Resting, 1},
		{labTime.Add(rest), Later, 2},
	} {
		at = step.at
		run := c.StampAll(context.Background(), labDigest)
		checkAttempt(t, run[0], step.want, "")
		if asked.Load() != step.asked || run[0].RetryAt.Before(at) {
			t.Fatalf("asked %d times, want %d; retry at %v", asked.Load(), step.asked, run[0].RetryAt)
		}
		if at.Equal(labTime) {
			checkAttempt(t, run[1], Stamped, "")
		}
	}
}

// TestClientStops: after a permanent refusal the authority is not asked again
// until an operator says so.
func TestClientStops(t *testing.T) {
	var asked atomic.Int32
	no := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		replies(200, replyType, encodeRejection(UnacceptedPolicy, "not here"))(w, r)
	})
	c := newClient(t, remote(t, "strict", no, nil))
	for range 3 {
		_, err := c.Stamp(context.Background(), labDigest)
		var failed *StampError
		if !errors.As(err, &failed) || !failed.Permanent() {
			t.Fatalf("err = %v", err)
		}
	}
	c.Resume("strict")
	c.StampAll(context.Background(), labDigest)
	if asked.Load() != 2 {
		t.Errorf("asked %d times, want 2", asked.Load())
	}
}

// TestClientClock: a time off by more than the skew is refused both ways; two
// authorities that agree put our own clock under suspicion.
func TestClientClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		a, atA := newAuthority(t)
		b, atB := newAuthority(t)
		*atA, *atB = labTime.Add(off), labTime.Add(off+time.Second)
		c := newClient(t, remote(t, "a", a.Handler(), a.Roots()), remote(t, "b", b.Handler(), b.Roots()))
		run := c.StampAll(context.Background(), labDigest)
		for i, at := range run {
			checkAttempt(t, at, Refused, "clock")
			wantRefusal(t, at.Err, RuleClock)
			if at.OwnClock != (i == 1) {
				t.Errorf("off by %v, attempt %d: own clock suspected %v", off, i, at.OwnClock)
			}
		}
		*atB = labTime.Add(2 * off)
		c.now = func() time.Time { return labTime.Add(-off) }
		if run = c.StampAll(context.Background(), labDigest); run[1].OwnClock {
			t.Error("own clock suspected though the authorities disagree")
		}
	}
}

// TestClientPolicy asks for a policy and insists on it.
func TestClientPolicy(t *testing.T) {
	a, _ := newAuthority(t)
	r := remote(t, "a", a.Handler(), a.Roots())
	r.Policy = DefaultPolicy
	if _, err := newClient(t, r).Stamp(context.Background(), labDigest); err != nil {
		t.Fatal(err)
	}
	r.Policy = "1.2.3"
	run := newClient(t, r).StampAll(context.Background(), labDigest)
	checkAttempt(t, run[0], Stopped, "unacceptedPolicy")
	deaf := rewriting(a, func(q Request, _ []byte) []byte {
		q.Policy = ""
		der, _ := q.DER()
		reply, _ := a.Issue(context.Background(), der)
		return reply
	})
	r = remote(t, "deaf", deaf, a.Roots())
	r.Policy = "1.2.3"
	run = newClient(t, r).StampAll(context.Background(), labDigest)
	wantRefusal(t, run[0].Err, RulePolicy)
}

// TestClientSilentClose: a server that answers and closes without saying so
// loses no request.
func TestClientSilentClose(t *testing.T) {
	a, _ := newAuthority(t)
	closing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reply, _ := a.Issue(r.Context(), body)
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		resp := http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(reply)),
			Header: http.Header{"Content-Type": {replyType}}, Body: io.NopCloser(bytes.NewReader(reply))}
		resp.Write(buf)
		buf.Flush()
	})
	c := newClient(t, remote(t, "closing", closing, a.Roots()))
	for range 20 {
		if _, err := c.Stamp(context.Background(), labDigest); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClientCancelled(t *testing.T) {
	a, _ := newAuthority(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := newClient(t, remote(t, "a", a.Handler(), a.Roots()))
	if _, err := c.Stamp(ctx, labDigest); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if run := c.StampAll(ctx, labDigest); len(run) != 0 {
		t.Errorf("asked after the end: %+v", run)
	}
}

// TestClientReports hands every attempt over, with the bytes of refused ones.
func TestClientReports(t *testing.T) {
	var got []Attempt
	c, err := New(ClientOptions{
		Authorities: []Remote{remote(t, "odd", replies(200, replyType, []byte("odd")), nil)},
		Report:      func(a Attempt) { got = append(got, a) },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Stamp(context.Background(), labDigest)
	wantRefusal(t, err, RuleDER)
	if len(got) != 1 || got[0].Authority != "odd" || string(got[0].Response) != "odd" {
		t.Errorf("reported %+v", got)
	}
}

func TestNewRefusesOptions(t *testing.T) {
	ok := Remote{Name: "a", URL: "https://tsa.example"}
	for name, o := range map[string]ClientOptions{
		"none":     {},
		"twice":    {Authorities: []Remote{ok, ok}},
		"nameless": {Authorities: []Remote{{URL: ok.URL}}},
		"no host":  {Authorities: []Remote{{Name: "a", URL: "https:///tsa"}}},
		"file":     {Authorities: []Remote{{Name: "a", URL: "file:///tsa"}}},
		"not URL":  {Authorities: []Remote{{Name: "a", URL: "http://a b"}}},
		"policy":   {Authorities: []Remote{{Name: "a", URL: ok.URL, Policy: "x"}}},
		"timeout":  {Authorities: []Remote{ok}, Timeout: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

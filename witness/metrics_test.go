package witness_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/store"
)

func (r *rig) metric(name string) string {
	r.t.Helper()
	w := r.get("/metrics")
	if w.Code != http.StatusOK {
		r.t.Fatalf("/metrics: %d %s", w.Code, w.Body)
	}
	m := regexp.MustCompile(`(?m)^toolguardian_witness_` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(w.Body.String())
	if m == nil {
		return ""
	}
	return m[1]
}

func TestMetrics(t *testing.T) {
	clock := newFakeClock()
	one := newOperator(t, func() time.Time { clock.mu.Lock(); defer clock.mu.Unlock(); return clock.wall })
	r := newRig(t, clock.in, func(o *witness.Options) { o.Authorities = []witness.Authority{one.as("one")} })
	a := r.enrolled().grow(4, "")
	for i := range int64(3) {
		if w := r.post("/add-checkpoint", a.body(i, i+1)); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
	}
	r.post("/add-checkpoint", a.body(1, 2))
	r.stamp()
	clock.pass(90 * time.Second)
	for name, want := range map[string]string{
		`appends_total{status="200"}`: "3",
		`appends_total{status="409"}`: "1",
		`append_seconds_count`:        "3",
		`queue_requests`:              "0",
		`ready`:                       "1",
		`log_entries`:                 fmt.Sprint(r.status().Size),
		`unstamped_entries`:           "0",
		`timestamp_operators`:         "1",
		fmt.Sprintf(`chain_lag_seconds{origin=%q,state="open"}`, a.origin()): "90.",
		fmt.Sprintf(`chain_size{origin=%q}`, a.origin()):                     "3",
	} {
		if got := r.metric(name); !strings.HasPrefix(got, strings.TrimSuffix(want, ".")) || want == "" {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if age := r.metric("timestamp_age_seconds"); age != "90" && age != "91" && !strings.HasPrefix(age, "90.") {
		t.Errorf("the newest timestamp is %s old", age)
	}
	if r.metric("batch_requests_count") == "0" || r.metric("commit_seconds_count") == "0" {
		t.Error("no commit was counted")
	}
	clock.set(2 * time.Minute)
	if got := r.metric("ready"); got != "0" {
		t.Errorf("ready is %q while the clock is in doubt", got)
	}
}

// Damage that nobody asks for is found by the self-audit, and shown.
func TestSelfAudit(t *testing.T) {
	f := &flipped{}
	r := newRig(t, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { f.Store = s; return f })
	})
	r.add(r.enrolled().grow(1, ""), 0, 1)
	if got := r.metric("audit_faults"); got != "" || r.status().Audit != nil {
		t.Errorf("before any audit: %q, %+v", got, r.status().Audit)
	}
	if got := r.server.Audit(context.Background()); got.Faults != 0 || got.Size != 2 {
		t.Errorf("a whole log: %+v", got)
	}
	f.tile = &tlog.TileID{}
	if got := r.server.Audit(context.Background()); got.Faults == 0 {
		t.Errorf("a damaged log: %+v", got)
	}
	f.tile = nil
	if got := r.metric("audit_faults"); got == "" || got == "0" {
		t.Errorf("audit_faults is %q", got)
	}
	if st := r.status(); st.Audit == nil || st.Audit.Faults == 0 || st.Audit.At.IsZero() {
		t.Errorf("status: %+v", st.Audit)
	}
}

func TestReadToken(t *testing.T) {
	r := newRig(t, func(o *witness.Options) { o.ReadToken = "a-secret-word" })
	a := r.enrolled().grow(2, "")
	if w := r.post("/add-checkpoint", a.body(0, 1)); w.Code != http.StatusOK {
		t.Errorf("a write: %d", w.Code)
	}
	get := func(path, header string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, path, nil)
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		r.server.Handler().ServeHTTP(w, req)
		return w
	}
	for _, path := range []string{"/checkpoint", "/tile/0/000.p/1", "/metrics", "/vkey", "/proof?index=0"} {
		for _, header := range []string{"", "a-secret-word", "Bearer ", "Bearer a-secret-wor", "bearer a-secret-word "} {
			w := get(path, header)
			if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
				t.Errorf("GET %s with %q: %d", path, header, w.Code)
			}
			if strings.Contains(w.Body.String(), "a-secret-word") {
				t.Error("the refusal shows the token")
			}
		}
		if w := get(path, "Bearer a-secret-word"); w.Code != http.StatusOK || strings.Contains(w.Header().Get("Cache-Control"), "public") {
			t.Errorf("GET %s with the token: %d, cache %q", path, w.Code, w.Header().Get("Cache-Control"))
		}
	}
	if _, _, err := r.client.Head(context.Background(), a.origin()); err == nil {
		t.Error("a client without the token reads")
	}
	if _, _, err := r.client.WithReadToken("a-secret-word").Head(context.Background(), a.origin()); err != nil {
		t.Errorf("a client with the token: %v", err)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if w := get(path, ""); w.Code != http.StatusOK {
			t.Errorf("GET %s: %d", path, w.Code)
		}
	}
}

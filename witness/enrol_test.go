package witness_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
)

func (a *agent) enrolNote() []byte {
	a.t.Helper()
	b, err := api.NewEnrol(a.signer.Vkey()).Sign(a.signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

func (r *rig) token() string {
	r.t.Helper()
	token, err := r.server.NewToken(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func TestEnrolByToken(t *testing.T) {
	r := newRig(t)
	a := newAgent(t).grow(2, "")
	token := r.token()
	index, err := r.client.Enroll(context.Background(), token, a.enrolNote())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := r.client.Entry(context.Background(), index, index+1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := api.ParseLeaf(entry)
	if err != nil || l.Type != api.LeafKey || l.Origin != a.origin() || l.Prev.Present || l.Keys.Present {
		t.Errorf("the key leaf is %+v, %v", l, err)
	}
	k, note, err := api.ParseKeyNote(l.Body)
	if err != nil {
		t.Fatal(err)
	}
	log, _ := r.server.Vkeys()
	if operator, err := k.SignedBy(note, log); operator || err != nil {
		t.Errorf("signed by the operator %v, %v; want by its own key", operator, err)
	}
	r.add(a, 0, 2)

	again, err := r.client.Enroll(context.Background(), token, a.enrolNote())
	if err != nil || again != index {
		t.Errorf("the same enrolment again: %d, %v; want %d", again, err, index)
	}
	b := newAgent(t)
	if _, err := r.client.Enroll(context.Background(), token, b.enrolNote()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("a used token: %v, want ErrForbidden", err)
	}
}

func TestEnrolRefusals(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	var mu sync.Mutex
	r := newRig(t, func(o *witness.Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		o.Mono = func() time.Duration { return o.Now().Sub(time.Unix(1_900_000_000, 0)) }
	})
	other := newRig(t)
	expired := r.token()
	mu.Lock()
	now = now.Add(24 * time.Hour)
	mu.Unlock()
	a, b := newAgent(t), newAgent(t)
	size := r.status().Size

	misnamed, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	thief, err := tlog.NewSigner(a.origin(), tlog.KeyEd25519, misnamed)
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := api.NewEnrol(thief.Vkey()).Sign(thief)
	if err != nil {
		t.Fatal(err)
	}
	byOther, err := api.NewEnrol(a.signer.Vkey()).Sign(b.signer)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(s string) *api.Token {
		tok, err := api.ParseToken(s)
		if err != nil {
			t.Fatal(err)
		}
		return &tok
	}
	forged := parse(r.token())
	forged.Secret[0] ^= 1
	tests := []struct {
		name string
		req  api.EnrolRequest
		want error
	}{
		{"expired", api.EnrolRequest{Token: parse(expired), Note: a.enrolNote()}, api.ErrForbidden},
		{"forged", api.EnrolRequest{Token: forged, Note: a.enrolNote()}, api.ErrForbidden},
		{"another witness's", api.EnrolRequest{Token: parse(other.token()), Note: a.enrolNote()}, api.ErrForbidden},
		{"none, not added", api.EnrolRequest{Note: a.enrolNote()}, api.ErrForbidden},
		{"a key that the origin does not name", api.EnrolRequest{Token: parse(r.token()), Note: stolen}, api.ErrBadRequest},
		{"signed by another", api.EnrolRequest{Token: parse(r.token()), Note: byOther}, api.ErrForbidden},
		{"no note", api.EnrolRequest{Token: parse(r.token())}, api.ErrBadRequest},
		{"a head for a note", api.EnrolRequest{Token: parse(r.token()), Note: a.head(0)}, api.ErrBadRequest},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := r.server.Enroll(context.Background(), test.req.Bytes())
			if !errors.Is(err, test.want) {
				t.Errorf("enrol: %v, want %v", err, test.want)
			}
			if got := r.status().Size; got != size {
				t.Errorf("a refused enrolment grew the log to %d", got)
			}
		})
	}
	// The client does not even send a token to a witness with other keys.
	if _, err := r.client.Enroll(context.Background(), other.token(), a.enrolNote()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("client: %v, want ErrForbidden", err)
	}
}

// Of many chains that race for one token, one enrols.
func TestTokenIsSpentOnce(t *testing.T) {
	r := newRig(t)
	token := r.token()
	errs := make([]error, 10)
	var wg sync.WaitGroup
	for i := range errs {
		note := newAgent(t).enrolNote()
		wg.Go(func() { _, errs[i] = r.client.Enroll(context.Background(), token, note) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, api.ErrForbidden) {
			t.Errorf("enrol: %v, want ErrForbidden", err)
		}
	}
	if won != 1 || r.status().Agents != 1 {
		t.Errorf("%d enrolments and %d agents by one token", won, r.status().Agents)
	}
}

func TestEnrolByOperator(t *testing.T) {
	r := newRig(t)
	a := newAgent(t).grow(1, "")
	index, err := r.server.AddAgent(context.Background(), a.signer.Vkey().String())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := r.client.Entry(context.Background(), index, index+1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := api.ParseLeaf(entry)
	if err != nil {
		t.Fatal(err)
	}
	k, note, err := api.ParseKeyNote(l.Body)
	if err != nil {
		t.Fatal(err)
	}
	log, _ := r.server.Vkeys()
	if operator, err := k.SignedBy(note, log); !operator || err != nil {
		t.Errorf("signed by the operator %v, %v; want true", operator, err)
	}
	if got, err := r.client.Enroll(context.Background(), "", a.enrolNote()); err != nil || got != index {
		t.Errorf("enrol without a token: %d, %v; want the operator's leaf %d", got, err, index)
	}
	r.add(a, 0, 1)
	for _, bad := range []string{"", "x", log.String(), a.signer.Vkey().String() + "\n"} {
		if _, err := r.server.AddAgent(context.Background(), bad); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("add agent %q: %v, want ErrBadRequest", bad, err)
		}
	}
}

func TestEvents(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(2, "")
	head := r.add(a, 0, 2).Index
	post := func(e api.Event, s *tlog.Signer) (uint64, error) {
		t.Helper()
		b, err := e.Sign(s)
		if err != nil {
			t.Fatal(err)
		}
		return r.client.Event(context.Background(), b)
	}
	event := api.Event{Origin: a.origin(), Log: logName, Size: 2, State: api.StateOpen, Heartbeat: 60, After: head}
	open, err := post(event, a.signer)
	if err != nil || open != head+1 {
		t.Fatalf("open: %d, %v; want leaf %d", open, err, head+1)
	}
	if again, err := post(event, a.signer); err != nil || again != open {
		t.Errorf("open again: %d, %v; want no new leaf", again, err)
	}
	closed := event
	closed.State, closed.After = api.StateClosed, open
	shut, err := post(closed, a.signer)
	if err != nil || shut != open+1 {
		t.Fatalf("closed: %d, %v", shut, err)
	}
	if _, err := post(event, a.signer); !errors.Is(err, api.ErrUnprocessable) {
		t.Errorf("the first note played again: %v, want ErrUnprocessable", err)
	}
	future := event
	future.After = shut + 1
	if _, err := post(future, a.signer); !errors.Is(err, api.ErrUnprocessable) {
		t.Errorf("after a leaf that is not there: %v, want ErrUnprocessable", err)
	}
	elsewhere := event
	elsewhere.Log = "other.example/log"
	if _, err := post(elsewhere, a.signer); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("for another log: %v, want ErrBadRequest", err)
	}
	if _, err := post(event, newAgent(t).signer); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("by another key: %v, want ErrForbidden", err)
	}
	stranger := event
	stranger.Origin = newAgent(t).origin()
	if _, err := post(stranger, a.signer); !errors.Is(err, api.ErrUnknownOrigin) {
		t.Errorf("of a stranger: %v, want ErrUnknownOrigin", err)
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
}

func mustLog(r *rig) tlog.Vkey {
	log, _ := r.server.Vkeys()
	return log
}

package witness_test

import (
	"context"
	"errors"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
)

// nextKey is another head key under the origin of a.
func (a *agent) nextKey() *tlog.Signer {
	a.t.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		a.t.Fatal(err)
	}
	s, err := tlog.NewSigner(a.origin(), tlog.KeyEd25519, priv)
	if err != nil {
		a.t.Fatal(err)
	}
	return s
}

// withKey is the same chain under another head key.
func (a *agent) withKey(s *tlog.Signer) *agent {
	b := *a
	b.signer = s
	return &b
}

func (a *agent) rotation(to *tlog.Signer, from uint64, by ...*tlog.Signer) []byte {
	a.t.Helper()
	old, next := a.signer.Vkey(), to.Vkey()
	b, err := api.KeyNote{Act: api.KeyRotate, Origin: a.origin(), FromSize: from, Old: &old, New: &next}.Sign(by...)
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

// rotate posts a rotation by both keys and gives the chain under its new key.
func (r *rig) rotate(a *agent, from uint64) *agent {
	r.t.Helper()
	next := a.nextKey()
	if _, err := r.client.Key(context.Background(), a.rotation(next, from, a.signer, next)); err != nil {
		r.t.Fatal(err)
	}
	return a.withKey(next)
}

func TestRotation(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(20, "")
	r.add(a, 0, 5)
	next := a.nextKey()
	note := a.rotation(next, 8, a.signer, next)
	index, err := r.client.Key(context.Background(), note)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.client.Key(context.Background(), note); err != nil || again != index {
		t.Errorf("the same rotation again: %d, %v; want %d", again, err, index)
	}
	b := a.withKey(next)
	refusals := []struct {
		name string
		body []byte
		want error
	}{
		{"the old key", a.body(5, 8), api.ErrForbidden},
		{"the old key, larger", a.body(5, 9), api.ErrForbidden},
		{"the new key below from-size", b.body(5, 7), api.ErrUnprocessable},
		{"the new key on the old head", b.body(5, 5), api.ErrUnprocessable},
	}
	for _, test := range refusals {
		if _, err := r.server.AddCheckpoint(context.Background(), test.body); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	r.add(b, 5, 8)
	r.add(b, 8, 12)
	event, err := api.Event{Origin: a.origin(), Log: logName, Size: 12, State: api.StateOpen, Heartbeat: 60, After: index + 1}.Sign(a.signer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Event(context.Background(), event); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("an event by the old key: %v, want ErrForbidden", err)
	}
	if got := r.agent(a.origin()); got.Key != next.Vkey().String() || got.KeyFrom != 8 || got.KeyIndex != index || got.Revoked != nil {
		t.Errorf("the agent is %+v", got)
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
}

// Every way in which a rotation can be refused (E53: a retired key never comes
// back).
func TestRotationRefusals(t *testing.T) {
	r := newRig(t)
	sibling := r.enrolled()
	for _, test := range []struct {
		name string
		body func(a *agent) []byte
		want error
	}{
		{"by the old key alone", func(a *agent) []byte { n := a.nextKey(); return a.rotation(n, 9, a.signer) }, api.ErrBadRequest},
		{"by the new key alone", func(a *agent) []byte { n := a.nextKey(); return a.rotation(n, 9, n) }, api.ErrBadRequest},
		{"by a stranger and the new key", func(a *agent) []byte {
			n := a.nextKey()
			return a.rotation(n, 9, newAgent(t).signer, n)
		}, api.ErrForbidden},
		{"by the organisation's other chain", func(a *agent) []byte {
			n := a.nextKey()
			return a.rotation(n, 9, sibling.signer, n)
		}, api.ErrForbidden},
		{"below the newest head", func(a *agent) []byte { n := a.nextKey(); return a.rotation(n, 4, a.signer, n) }, api.ErrUnprocessable},
		{"from size zero", func(a *agent) []byte { n := a.nextKey(); return a.rotation(n, 0, a.signer, n) }, api.ErrForbidden},
		{"to the key itself", func(a *agent) []byte { return a.rotation(a.signer, 9, a.signer, a.signer) }, api.ErrForbidden},
		{"an enrolment", func(a *agent) []byte { return a.enrolNote() }, api.ErrBadRequest},
		{"a revocation by the key", func(a *agent) []byte {
			old := a.signer.Vkey()
			b, err := api.KeyNote{Act: api.KeyRevoke, Origin: a.origin(), Old: &old, Since: api.At(0)}.Sign(a.signer)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}, api.ErrBadRequest},
		{"of a stranger", func(*agent) []byte { s := newAgent(t); n := s.nextKey(); return s.rotation(n, 9, s.signer, n) }, api.ErrUnknownOrigin},
		{"junk", func(*agent) []byte { return []byte("tool-guardian/key/v1\n") }, api.ErrBadRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := r.enrolled().grow(9, "")
			r.add(a, 0, 5)
			size := r.status().Size
			if _, err := r.client.Key(context.Background(), test.body(a)); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if got := r.status().Size; got != size {
				t.Errorf("a refused key note grew the log to %d", got)
			}
			r.add(a, 5, 9)
		})
	}
}

func TestRetiredKeyNeverComesBack(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(9, "")
	b := r.rotate(a, 3)
	back, next := b.rotation(a.signer, 6, b.signer, a.signer), b.nextKey()
	if _, err := r.client.Key(context.Background(), back); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("back to the first key: %v, want ErrForbidden", err)
	}
	if _, err := r.server.RotateAgent(context.Background(), a.signer.Vkey().String(), 6); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("back to the first key by the operator: %v, want ErrForbidden", err)
	}
	if _, err := r.server.AddAgent(context.Background(), a.signer.Vkey().String()); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("enrolled again: %v, want ErrForbidden", err)
	}
	if _, err := r.client.Key(context.Background(), a.rotation(next, 6, a.signer, next)); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("rotated from the retired key: %v, want ErrForbidden", err)
	}
	r.add(b, 0, 4)
}

// After a revocation nothing of the origin is taken but an operator's rotation.
func TestRevocation(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	a := r.enrolled().grow(20, "")
	first := r.add(a, 0, 3)
	second := r.add(a, 3, 5)
	if _, err := r.server.RevokeAgent(ctx, a.origin(), api.At(second.Index+9)); !errors.Is(err, api.ErrUnprocessable) {
		t.Errorf("since a leaf to come: %v, want ErrUnprocessable", err)
	}
	if _, err := r.server.RevokeAgent(ctx, a.origin(), api.At(second.Index)); err != nil {
		t.Fatal(err)
	}
	got := r.agent(a.origin())
	if got.Revoked == nil || got.Revoked.Since != second.Index || got.Revoked.Index != second.Index+1 {
		t.Fatalf("revoked: %+v", got.Revoked)
	}
	if _, err := r.server.RevokeAgent(ctx, a.origin(), api.At(first.Index)); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("revoked twice: %v, want ErrForbidden", err)
	}
	next := a.nextKey()
	stamp, err := api.Stamp{Origin: a.origin(), Log: logName, Commitments: []tlog.Hash{{1}}}.Sign(a.signer)
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]func() error{
		"head":     func() error { _, err := r.server.AddCheckpoint(ctx, a.body(5, 7)); return err },
		"rotation": func() error { _, err := r.client.Key(ctx, a.rotation(next, 9, a.signer, next)); return err },
		"stamp":    func() error { _, err := r.client.Stamp(ctx, stamp); return err },
		"enrol":    func() error { _, err := r.client.Enroll(ctx, "", a.enrolNote()); return err },
	} {
		if err := try(); !errors.Is(err, api.ErrForbidden) {
			t.Errorf("%s by a revoked key: %v, want ErrForbidden", name, err)
		}
	}
	if _, err := r.server.RotateAgent(ctx, next.Vkey().String(), 9); err != nil {
		t.Fatal(err)
	}
	b := a.withKey(next)
	r.add(b, 5, 9)
	if got := r.agent(a.origin()); got.Revoked != nil || got.Key != next.Vkey().String() {
		t.Errorf("after the operator's rotation: %+v", got)
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
}

// The operator acts on a running server through the admin socket, and on the
// folder of a stopped one.
func TestOperatorsKeyActs(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	a, b := r.enrolled().grow(9, ""), r.enrolled().grow(9, "")
	r.add(a, 0, 3)
	act := func(a *agent) {
		t.Helper()
		op, err := witness.Operate(ctx, r.o)
		if err != nil {
			t.Fatal(err)
		}
		defer op.Close()
		if _, err := op.RevokeAgent(ctx, a.origin(), api.Ref{}); err != nil {
			t.Error(err)
		}
		if _, err := op.RevokeAgent(ctx, "agents.invalid/c/"+"00000000000000000000000000000000", api.Ref{}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("of a stranger: %v, want ErrUnknownOrigin", err)
		}
		if _, err := op.RotateAgent(ctx, a.nextKey().Vkey().String(), 5); err != nil {
			t.Error(err)
		}
		if _, err := op.RotateAgent(ctx, "no key", 5); !errors.Is(err, api.ErrBadRequest) {
			t.Errorf("a bad key: %v, want ErrBadRequest", err)
		}
	}
	act(a)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	act(b)
	r.start()
	for _, a := range []*agent{a, b} {
		if got := r.agent(a.origin()); got.Key == a.signer.Vkey().String() || got.KeyFrom != 5 {
			t.Errorf("the agent is %+v", got)
		}
	}
}

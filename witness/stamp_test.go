package witness_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
)

func (a *agent) stamp(s api.Stamp) []byte {
	a.t.Helper()
	b, err := s.Sign(a.signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return b
}

func TestStamps(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	a := r.enrolled()
	one := api.Stamp{Origin: a.origin(), Log: logName, Commitments: []tlog.Hash{{1}, {2}}}
	root := api.Stamp{Origin: a.origin(), Log: logName, Root: &api.StampRoot{Size: 1000, Root: tlog.Hash{3}}}
	for _, s := range []api.Stamp{one, root} {
		index, err := r.client.Stamp(ctx, a.stamp(s))
		if err != nil {
			t.Fatal(err)
		}
		entry, err := r.client.Entry(ctx, index, r.status().Size)
		if err != nil {
			t.Fatal(err)
		}
		l, err := api.ParseLeaf(entry)
		if err != nil || l.Type != api.LeafStamp || string(l.Body) != string(a.stamp(s)) {
			t.Errorf("leaf %d is %+v, %v", index, l, err)
		}
		if again, err := r.client.Stamp(ctx, a.stamp(s)); err != nil || again != index {
			t.Errorf("the same note again: %d, %v; want %d", again, err, index)
		}
	}
	size := r.status().Size
	stranger, other := newAgent(t), r.enrolled()
	size++
	elsewhere := one
	elsewhere.Log = "other.example/log"
	many := one
	many.Commitments = make([]tlog.Hash, api.MaxCommitments+1)
	for name, test := range map[string]struct {
		body []byte
		want error
	}{
		"for another log":        {a.stamp(elsewhere), api.ErrBadRequest},
		"257 commitments":        {a.stamp(many), api.ErrBadRequest},
		"none":                   {a.stamp(api.Stamp{Origin: a.origin(), Log: logName}), api.ErrBadRequest},
		"a root over nothing":    {a.stamp(api.Stamp{Origin: a.origin(), Log: logName, Root: &api.StampRoot{}}), api.ErrBadRequest},
		"by another chain's key": {other.stamp(one), api.ErrForbidden},
		"of a stranger":          {stranger.stamp(api.Stamp{Origin: stranger.origin(), Log: logName, Commitments: one.Commitments}), api.ErrUnknownOrigin},
		"junk":                   {[]byte(strings.Repeat("x", 100)), api.ErrBadRequest},
	} {
		if _, err := r.client.Stamp(ctx, test.body); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if got := r.status().Size; got != size {
		t.Errorf("refused stamps grew the log from %d to %d", size, got)
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
}

func TestStampsAreRateLimited(t *testing.T) {
	r := newRig(t, func(o *witness.Options) { o.RatePerSecond = 0.2 })
	a := r.enrolled()
	note := a.stamp(api.Stamp{Origin: a.origin(), Log: logName, Commitments: []tlog.Hash{{1}}})
	if _, err := r.client.Stamp(context.Background(), note); err != nil {
		t.Fatal(err)
	}
	var limited api.ErrRateLimited
	if _, err := r.client.Stamp(context.Background(), note); !errors.As(err, &limited) {
		t.Errorf("the second note at once: %v, want ErrRateLimited", err)
	}
}

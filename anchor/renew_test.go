package anchor_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"strings"
	"testing"

	"toolguardian/anchor"
	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// renewed is the container of receipt 5 whose token is covered by a later one.
func renewed(t *testing.T, w *world) anchor.Container {
	t.Helper()
	p := w.proved(t, 5)
	c := openChain(t, w.dir)
	record(t, c, 1)
	stop := stream(t, c)
	until(t, "witnessed", witnessed(t, w.dir, sizeOf(t, w.dir)))
	stop()
	later := w.rig.stamped(w.origin)
	size := logSize(t, later.Stamped)
	index, leaf := timeLeaf(t, w, sha256.Sum256(p.Evidence.Times[0].Token), size)
	b, err := w.rig.client.Proof(context.Background(), index, size)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := tlog.ParseProof(b)
	if err != nil {
		t.Fatal(err)
	}
	p.Renewals = []anchor.Renewal{{Bytes: leaf, Proof: proof, Time: later.Stamped.Times[0]}}
	return p
}

// timeLeaf finds the leaf of a token.
func timeLeaf(t *testing.T, w *world, token tlog.Hash, size uint64) (uint64, []byte) {
	t.Helper()
	for i := range size {
		b, err := w.rig.client.Entry(context.Background(), i, size)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := api.ParseLeaf(b)
		if err != nil || leaf.Type != api.LeafTime {
			continue
		}
		if body, err := api.ParseTimeBody(leaf.Body); err == nil && body.Token == token {
			return i, b
		}
	}
	t.Fatal("the token has no leaf")
	return 0, nil
}

func TestRenewals(t *testing.T) {
	w := newWorld(t)
	good := renewed(t, w).Bytes()
	if r := w.judge(good); r.Exit != 0 || !strings.Contains(text(r), "renewal 1: the token before was logged and stamped again by 20") {
		t.Fatal(text(r))
	}
	for _, tc := range []struct {
		name   string
		change func(r *anchor.Renewal, c *anchor.Container)
		exit   int
		want   string
	}{
		{"a leaf that is none", func(r *anchor.Renewal, _ *anchor.Container) { r.Bytes = []byte("x") }, 1, "MALFORMED"},
		{"a leaf of another type", func(r *anchor.Renewal, c *anchor.Container) { r.Bytes = c.Evidence.LeafBytes }, 1, "SPLICED"},
		{"the leaf of another token", func(r *anchor.Renewal, _ *anchor.Container) { r.Bytes = renamed(r.Bytes) }, 1, "SPLICED"},
		{"a path that leads elsewhere", func(r *anchor.Renewal, _ *anchor.Container) { r.Proof.Hashes[0][0] ^= 1 }, 1, "ABSENT"},
		{"another index", func(r *anchor.Renewal, _ *anchor.Container) { r.Proof.Index-- }, 1, "ABSENT"},
		{"the token that is renewed", func(r *anchor.Renewal, c *anchor.Container) { r.Time = c.Evidence.Times[0] }, 1, "ALTERED"},
		{"a token that is none", func(r *anchor.Renewal, _ *anchor.Container) { r.Time.Token = []byte{0x30, 0} }, 2, "BAD_TIME"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := anchor.ParseContainer(good)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(&c.Renewals[0], &c)
			if r := w.judge(c.Bytes()); r.Exit != tc.exit || reasons(r) != tc.want {
				t.Errorf("exit %d reasons %q, want %d %q\n%s", r.Exit, reasons(r), tc.exit, tc.want, text(r))
			}
		})
	}
	tr := w.trust()
	tr.TSARoots = nil
	if r := anchor.Verify(anchor.Source{Container: good}, tr); r.Exit != 0 || !strings.Contains(text(r), "renewal 1: token of ") {
		t.Error(text(r))
	}
}

// renamed changes one digit of the token's hash in a time leaf.
func renamed(leaf []byte) []byte {
	i := bytes.Index(leaf, []byte("\ntoken ")) + len("\ntoken ")
	out := bytes.Clone(leaf)
	out[i] = "0123456789abcdef0"[strings.IndexByte("0123456789abcdef", out[i])+1]
	return out
}

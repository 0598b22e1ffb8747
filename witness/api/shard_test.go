package api

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
)

func sampleShard(t testing.TB) ShardBody {
	t.Helper()
	log := testSigner(t, "w/log", tlog.KeyEd25519)
	body := ShardBody{Former: "w/log", Log: log.Vkey(), Cosigner: testSigner(t, "w/log/cosigner", tlog.KeyCosignature).Vkey(),
		Size: 7, Reason: ShardRollback}
	for _, size := range []uint64{3, 7} {
		text := tlog.Checkpoint{Origin: "w/log", Size: size, Root: tlog.Hash{byte(size)}}.Text()
		sig, err := log.Sign(text)
		if err != nil {
			t.Fatal(err)
		}
		body.Checkpoints = append(body.Checkpoints, tlog.Note{Text: text, Signatures: []tlog.Signature{sig}}.Bytes())
	}
	return body
}

func TestShardBody(t *testing.T) {
	body := sampleShard(t)
	got, err := ParseShardBody(body.Bytes())
	if err != nil || !bytes.Equal(got.Bytes(), body.Bytes()) {
		t.Fatalf("%+v, %v", got, err)
	}
	bare := body
	bare.Checkpoints, bare.Size = nil, 0
	if _, err := ParseShardBody(bare.Bytes()); err != nil {
		t.Errorf("without checkpoints: %v", err)
	}
}

func TestBadShardBodies(t *testing.T) {
	good := sampleShard(t)
	with := func(change func(*ShardBody)) string {
		b := good
		b.Checkpoints = append([][]byte(nil), good.Checkpoints...)
		change(&b)
		return string(b.Bytes())
	}
	other := testSigner(t, "w/other", tlog.KeyEd25519)
	for name, text := range map[string]string{
		"empty":             "",
		"no last newline":   strings.TrimSuffix(string(good.Bytes()), "\n"),
		"trailing line":     string(good.Bytes()) + "more\n",
		"leading zero":      strings.Replace(string(good.Bytes()), "size 7", "size 07", 1),
		"unknown reason":    with(func(b *ShardBody) { b.Reason = "boredom" }),
		"another log's key": with(func(b *ShardBody) { b.Log = other.Vkey() }),
		"keys exchanged":    with(func(b *ShardBody) { b.Log, b.Cosigner = b.Cosigner, b.Log }),
		"size too small":    with(func(b *ShardBody) { b.Size = 6 }),
		"altered checkpoint": with(func(b *ShardBody) {
			b.Checkpoints[0] = bytes.Replace(b.Checkpoints[0], []byte("\n3\n"), []byte("\n4\n"), 1)
		}),
		"no checkpoint":      with(func(b *ShardBody) { b.Checkpoints[0] = []byte("x") }),
		"lines out of order": strings.Replace(string(good.Bytes()), "former w/log\n", "", 1) + "former w/log\n",
	} {
		if got, err := ParseShardBody([]byte(text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v; want ErrMalformed", name, got, err)
		}
	}
}

func FuzzShardBody(f *testing.F) {
	f.Add(sampleShard(f).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseShardBody(b); err == nil && !bytes.Equal(s.Bytes(), b) {
			t.Errorf("shard body %q comes back as %q", b, s.Bytes())
		}
	})
}

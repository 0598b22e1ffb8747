package witness_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/transparency-dev/formats/proof"
	modtlog "golang.org/x/mod/sumdb/tlog"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// A log of several tiles, as an outsider reads it: roots, tiles, inclusion and
// consistency against golang.org/x/mod, proofs also by transparency-dev.
func TestOutsiderReadsTheLog(t *testing.T) {
	r := newRig(t)
	var heads []uint64
	agents := []*agent{r.enrolled().grow(300, "a"), r.enrolled().grow(300, "b")}
	log, _ := r.server.Vkeys()
	m := newMonitor(t, log)
	for i := range int64(140) {
		for _, a := range agents {
			heads = append(heads, r.add(a, i, i+1).Index)
		}
		if i%20 == 0 {
			m.follow(r.client)
		}
	}
	tree, entries := m.follow(r.client)
	if len(entries) != 282 {
		t.Fatalf("%d leaves, want 2 keys and 280 heads", len(entries))
	}
	checkTiles(t, r, tree, entries)
	for _, index := range []uint64{0, 1, 2, 255, 256, 281} {
		checkProof(t, r, m, index, entries[index])
	}
	for _, pair := range [][2]int64{{1, 282}, {2, 3}, {256, 282}, {255, 257}, {282, 282}} {
		checkConsistency(t, r, m, pair[0], pair[1])
	}
	checkBackLinks(t, entries)
	if got := heads[len(heads)-1]; got != 281 {
		t.Errorf("the last head has index %d, want 281", got)
	}
}

func checkTiles(t *testing.T, r *rig, tree modtlog.Tree, entries [][]byte) {
	t.Helper()
	hashes := &agent{t: t}
	for _, e := range entries {
		hashes.append(e)
	}
	for _, tile := range modtlog.NewTiles(8, 0, tree.N) {
		want, err := modtlog.ReadTileData(tile, hashes)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.client.Tile(context.Background(), tlog.TileID{Level: tile.L, Index: uint64(tile.N)}, tile.W)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("tile %v: %v, other bytes than golang.org/x/mod's", tile, err)
		}
	}
}

func checkProof(t *testing.T, r *rig, m *monitor, index uint64, entry []byte) {
	t.Helper()
	b, err := r.client.Proof(context.Background(), index, 0)
	if err != nil {
		t.Fatal(err)
	}
	var foreign proof.TLogProof
	if err := foreign.Unmarshal(b); err != nil {
		t.Errorf("transparency-dev/formats refuses the proof: %v\n%s", err, b)
	}
	p, err := tlog.ParseProof(b)
	if err != nil {
		t.Fatal(err)
	}
	tree := m.note(p.Checkpoint)
	var record modtlog.RecordProof
	for _, h := range p.Hashes {
		record = append(record, modtlog.Hash(h))
	}
	if err := modtlog.CheckRecord(record, tree.N, tree.Hash, int64(index), modtlog.RecordHash(entry)); err != nil {
		t.Errorf("inclusion of %d in %d: %v", index, tree.N, err)
	}
	read, err := r.client.Entry(context.Background(), index, uint64(tree.N))
	if err != nil || string(read) != string(entry) {
		t.Errorf("entry %d: %v, other bytes", index, err)
	}
}

func checkConsistency(t *testing.T, r *rig, m *monitor, from, to int64) {
	t.Helper()
	hashes, err := r.client.Consistency(context.Background(), uint64(from), uint64(to))
	if err != nil {
		t.Fatal(err)
	}
	roots := map[int64]modtlog.Hash{}
	for _, size := range []int64{from, to} {
		b, err := r.client.Proof(context.Background(), 0, uint64(size))
		if err != nil {
			t.Fatalf("checkpoint of size %d: %v", size, err)
		}
		p, err := tlog.ParseProof(b)
		if err != nil {
			t.Fatal(err)
		}
		roots[size] = m.note(p.Checkpoint).Hash
	}
	if from == to {
		if len(hashes) != 0 {
			t.Errorf("consistency of %d with itself has %d hashes", from, len(hashes))
		}
		return
	}
	var tp modtlog.TreeProof
	for _, h := range hashes {
		tp = append(tp, modtlog.Hash(h))
	}
	if err := modtlog.CheckTree(tp, to, roots[to], from, roots[from]); err != nil {
		t.Errorf("consistency %d to %d: %v", from, to, err)
	}
}

// checkBackLinks walks every origin back from its last leaf.
func checkBackLinks(t *testing.T, entries [][]byte) {
	t.Helper()
	prev := map[string]api.Ref{}
	keys := map[string]api.Ref{}
	for i, e := range entries {
		l, err := api.ParseLeaf(e)
		if err != nil {
			t.Fatalf("leaf %d: %v", i, err)
		}
		if l.Prev != prev[l.Origin] || l.Type != api.LeafTime && l.Keys != keys[l.Origin] {
			t.Errorf("leaf %d of %s: prev %s keys %s, want %s, %s", i, l.Origin, l.Prev, l.Keys, prev[l.Origin], keys[l.Origin])
		}
		prev[l.Origin] = api.At(uint64(i))
		if l.Type == api.LeafKey {
			keys[l.Origin] = api.At(uint64(i))
		}
	}
}

// A head leaf is the canonical note with two lines, and its proof leads from
// the origin's previous head.
func TestHeadLeaf(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(9, "")
	other := newAgent(t)
	r.add(a, 0, 4)
	head := signedNote(t, a.checkpoint(9).Text(), other.signer, a.signer)
	added, err := r.server.AddCheckpoint(context.Background(), api.AddRequest{Old: 4, Proof: a.proof(4, 9), Head: head}.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := r.client.Entry(context.Background(), added.Index, added.Size)
	if err != nil {
		t.Fatal(err)
	}
	l, err := api.ParseLeaf(entry)
	if err != nil {
		t.Fatal(err)
	}
	n, err := tlog.ParseNote(l.Body)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := tlog.ParseNote(a.head(9))
	if err != nil {
		t.Fatal(err)
	}
	want := tlog.Note{Text: mine.Text, Signatures: []tlog.Signature{mine.Signatures[0], added.Line}}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("the body of the head leaf (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(a.proof(4, 9), l.Proof); diff != "" {
		t.Errorf("the proof of the head leaf (-want +got):\n%s", diff)
	}
	served, index, err := r.client.Head(context.Background(), a.origin())
	if err != nil || index != added.Index {
		t.Fatalf("head: index %d, %v", index, err)
	}
	_, cosigner := r.server.Vkeys()
	sn, err := tlog.ParseNote(served)
	if err != nil || len(sn.Signatures) != 3 {
		t.Fatalf("the served head has %d lines, %v; want the foreign one too", len(sn.Signatures), err)
	}
	for _, k := range []tlog.Vkey{a.signer.Vkey(), cosigner} {
		if _, err := sn.Verify(k); err != nil {
			t.Errorf("the served head: %v", err)
		}
	}
}

// What others signed is served with the head, within the bounds of a note, and
// our own old lines never come back beside the new one.
func TestForeignLines(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(2, "")
	_, cosigner := r.server.Vkeys()
	signers := []*tlog.Signer{a.signer}
	for range 95 {
		signers = append(signers, newAgent(t).signer)
	}
	many := signedNote(t, a.checkpoint(1).Text(), signers...)
	if _, err := r.client.AddCheckpoint(context.Background(), 0, nil, many); err != nil {
		t.Fatal(err)
	}
	served, _, err := r.client.Head(context.Background(), a.origin())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.AddCheckpoint(context.Background(), 1, nil, served); err != nil {
		t.Fatalf("what we serve, sent back: %v", err)
	}
	served, _, err = r.client.Head(context.Background(), a.origin())
	if err != nil {
		t.Fatal(err)
	}
	n, err := tlog.ParseNote(served)
	if err != nil {
		t.Fatal(err)
	}
	ours := n.Only(func(s tlog.Signature) bool { return s.Name == cosigner.Name }).Signatures
	if len(ours) != 1 || len(n.Signatures) < 80 {
		t.Errorf("the served head has %d lines, %d of them ours; want one of ours and most of the others", len(n.Signatures), len(ours))
	}
}

func TestHeadOfNobody(t *testing.T) {
	r := newRig(t)
	a := r.enrolled()
	for _, origin := range []string{a.origin(), "nobody", logName} {
		if _, _, err := r.client.Head(context.Background(), origin); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("head of %s: %v, want ErrNotFound", origin, err)
		}
	}
	sum := sha256.Sum256([]byte(a.origin()))
	for _, path := range []string{"/checkpoint/", "/x/checkpoint", "/" + strings.ToUpper(hex.EncodeToString(sum[:])) + "/checkpoint"} {
		if w := r.get(path); w.Code != 404 {
			t.Errorf("%s: status %d, want 404", path, w.Code)
		}
	}
}

// A width that no size of the log has is not served, and only a full tile's
// path may be kept for ever.
func TestTilePathsAndCaches(t *testing.T) {
	r := newRig(t)
	a := r.enrolled().grow(300, "")
	for i := range int64(259) {
		r.add(a, i, i+1)
	}
	tests := []struct {
		path  string
		code  int
		cache string
		size  int
	}{
		{"/tile/0/000", 200, "public, max-age=31536000, immutable", 8192},
		{"/tile/0/000.p/5", 200, "no-store", 160},
		{"/tile/0/001.p/4", 200, "no-store", 128},
		{"/tile/0/001.p/5", 404, "", 0},
		{"/tile/0/001", 404, "", 0},
		{"/tile/1/000.p/1", 200, "no-store", 32},
		{"/tile/1/000.p/2", 404, "", 0},
		{"/tile/1/000", 404, "", 0},
		{"/tile/2/000.p/1", 404, "", 0},
		{"/tile/63/000.p/1", 404, "", 0},
		{"/tile/64/000", 404, "", 0},
		{"/tile/00/000", 404, "", 0},
		{"/tile/0/0", 404, "", 0},
		{"/tile/0/000.p/0", 404, "", 0},
		{"/tile/0/000.p/256", 404, "", 0},
		{"/tile/0/x001/000", 404, "", 0},
		{"/tile/entries/000", 200, "public, max-age=31536000, immutable", -1},
		{"/tile/entries/001.p/4", 200, "no-store", -1},
		{"/tile/entries/001", 404, "", 0},
		{"/checkpoint", 200, "no-store", -1},
		{"/checkpoint/latest", 200, "no-store", -1},
		{"/proof?index=3", 200, "no-store", -1},
		{"/proof?index=260&size=260", 404, "", 0},
		{"/proof?index=1&size=9999", 404, "", 0},
		{"/proof?index=-1", 400, "", 0},
		{"/proof", 400, "", 0},
		{"/consistency?from=5&to=4", 400, "", 0},
		{"/consistency?from=5&to=261", 404, "", 0},
		{"/consistency?from=0&to=260", 200, "no-store", 0},
		{"/consistency?from=1", 400, "", 0},
		{"/blob/00", 404, "", 0},
		{"/blob/" + strings.Repeat("0", 64), 404, "", 0},
		{"/timestamp?from=0", 404, "", 0},
		{"/timestamp/260.note", 404, "", 0},
		{"/timestamp/260/silent.tsr", 404, "", 0},
		{"/healthz", 200, "no-store", -1},
		{"/readyz", 200, "no-store", -1},
		{"/vkey", 200, "no-store", -1},
	}
	for _, test := range tests {
		w := r.get(test.path)
		if w.Code != test.code || test.code == 200 && w.Header().Get("Cache-Control") != test.cache {
			t.Errorf("%s: status %d, cache %q; want %d, %q", test.path, w.Code, w.Header().Get("Cache-Control"), test.code, test.cache)
		}
		if test.code == 200 && test.size >= 0 && w.Body.Len() != test.size {
			t.Errorf("%s: %d bytes, want %d", test.path, w.Body.Len(), test.size)
		}
	}
}

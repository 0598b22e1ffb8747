package witness_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
	"toolguardian/witness/store/bolt"
)

// rolledBack is a witness whose folder was restored from an old copy: a's heads 4
// and 5 are lost.
type rolledBack struct {
	*rig
	head    string // the head file
	a, b    *agent
	proof   []byte // tlog-proof of a's head 5 in the lost log
	leaf    []byte
	lost    string // the newest checkpoint of the lost log
	log     tlog.Vkey
	oldSize uint64
}

func newRolledBack(t *testing.T) rolledBack {
	t.Helper()
	w := rolledBack{head: filepath.Join(t.TempDir(), "head")}
	w.rig = newRig(t, withBuiltIn, func(o *witness.Options) { o.HeadFile = w.head })
	w.a, w.b = w.enrolled().grow(9, ""), w.enrolled()
	w.log = mustLog(w.rig)
	w.add(w.a, 0, 3)
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.oldSize = mustCheckpoint(t, readFile(t, w.head)).Size
	old := readFile(t, filepath.Join(w.o.Dir, "log.db"))
	w.start()
	w.add(w.a, 3, 4)
	added := w.add(w.a, 4, 5)
	var err error
	if w.proof, err = w.client.Proof(context.Background(), added.Index, w.status().Size); err != nil {
		t.Fatal(err)
	}
	if w.leaf, err = w.client.Entry(context.Background(), added.Index, w.status().Size); err != nil {
		t.Fatal(err)
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.lost = string(readFile(t, w.head))
	writeFile(t, filepath.Join(w.o.Dir, "log.db"), old)
	return w
}

// A restored folder that has grown past the old size is refused all the same.
func TestGrownPastTheOldSize(t *testing.T) {
	w := newRolledBack(t)
	o := w.o
	o.HeadFile = ""
	secret := &rig{t: t, o: o}
	secret.start()
	for i := range int64(6) {
		secret.add(w.a, 3+i, 4+i)
	}
	if err := secret.end(); err != nil {
		t.Fatal(err)
	}
	if err := w.tryStart(); !errors.Is(err, witness.ErrRolledBack) {
		t.Errorf("start: %v, want ErrRolledBack", err)
	}
	w.recover(api.ShardRollback)
	w.start()
}

func (r *rig) recover(why api.ShardReason, known ...[]byte) witness.Recovered {
	r.t.Helper()
	got, err := witness.Recover(r.o, why, known...)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// The next shard has other keys, begins with what is known of the former one,
// and its agents go on where this witness last saw them.
func TestRecover(t *testing.T) {
	w := newRolledBack(t)
	got := w.recover(api.ShardRollback)
	lost := mustCheckpoint(t, []byte(w.lost))
	if got.Origin != logName+"/2" || got.Shard != 2 || got.Agents != 2 || got.FormerSize != w.oldSize || got.KnownSize != lost.Size {
		t.Errorf("recovered %+v; want %s/2, 2 agents, sizes %d and %d", got, logName, w.oldSize, lost.Size)
	}
	w.start()
	log, cosigner := w.server.Vkeys()
	if log.Name != logName+"/2" || log.Equal(w.log) || cosigner.Name != logName+"/2/cosigner" {
		t.Errorf("the new shard's keys are %s and %s", log, cosigner)
	}
	checkCarried(t, w)

	// The client's way back: told the size, it proves from there.
	_, err := w.client.AddCheckpoint(context.Background(), 5, w.a.proof(5, 6), w.a.head(6))
	var conflict api.ErrConflict
	if !errors.As(err, &conflict) || conflict.Size != 3 {
		t.Fatalf("a head from the lost size: %v, want a conflict at 3", err)
	}
	w.add(w.a, 3, 6)
	w.add(w.b.grow(1, ""), 0, 1)
	if err := w.server.Stamp(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, entries := newMonitor(t, log).follow(w.client)
	checkBackLinks(t, entries)
}

func checkCarried(t *testing.T, w rolledBack) {
	t.Helper()
	_, entries := newMonitor(t, mustLog(w.rig)).follow(w.client)
	checkBackLinks(t, entries)
	var types []string
	var heads, firsts int
	for _, e := range entries {
		l, err := api.ParseLeaf(e)
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, string(l.Type))
		switch l.Type {
		case api.LeafShard:
			firsts++
			body, err := api.ParseShardBody(l.Body)
			if err != nil || body.Reason != api.ShardRollback || !body.Log.Equal(w.log) {
				t.Errorf("shard leaf %+v, %v", body, err)
			}
			if last := string(body.Checkpoints[len(body.Checkpoints)-1]); last != w.lost || len(body.Checkpoints) != 2 {
				t.Errorf("%d known checkpoints, the last is\n%s, want the head file's\n%s", len(body.Checkpoints), last, w.lost)
			}
		case api.LeafHead:
			heads++
			checkCarriedHead(t, w, l)
		}
	}
	if heads != 1 || firsts != 1 || types[0] != "shard" {
		t.Errorf("leaves %v, want a shard leaf first and one head", types)
	}
}

func checkCarriedHead(t *testing.T, w rolledBack, l api.Leaf) {
	t.Helper()
	_, cosigner := w.server.Vkeys()
	cp, note, err := tlog.ParseSignedCheckpoint(l.Body)
	if err != nil || cp != w.a.checkpoint(3) || len(l.Proof) != 0 || len(note.Signatures) != 2 {
		t.Errorf("carried head %+v with %d proof lines, %d signatures, %v", cp, len(l.Proof), len(note.Signatures), err)
	}
	for _, k := range []tlog.Vkey{w.a.signer.Vkey(), cosigner} {
		if _, err := note.Verify(k); err != nil {
			t.Errorf("carried head: %v", err)
		}
	}
}

func mustCheckpoint(t testing.TB, b []byte) tlog.Checkpoint {
	t.Helper()
	cp, _, err := tlog.ParseSignedCheckpoint(b)
	if err != nil {
		t.Fatal(err)
	}
	return cp
}

// Old proofs hold against the old shard, which is read and never written.
func TestFormerShardStaysReadable(t *testing.T) {
	w := newRolledBack(t)
	before := sha256.Sum256(readFile(t, filepath.Join(w.o.Dir, "log.db")))
	w.recover(api.ShardRollback)
	w.start()
	p, err := tlog.ParseProof(w.proof)
	if err != nil {
		t.Fatal(err)
	}
	_, note, err := p.Verify(tlog.LeafHash(w.leaf))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Verify(w.log); err != nil {
		t.Errorf("the lost log's proof: %v", err)
	}
	old := api.New(w.url+"/shards/1", nil)
	tree, entries := newMonitor(t, w.log).follow(old)
	if uint64(tree.N) != w.oldSize || len(entries) != int(w.oldSize) {
		t.Errorf("the former shard has size %d, want %d", tree.N, w.oldSize)
	}
	if log, _, err := old.Vkeys(context.Background()); err != nil || !log.Equal(w.log) {
		t.Errorf("the former shard's key: %v, %v", log, err)
	}
	if b, err := old.Proof(context.Background(), 0, w.oldSize); err != nil || len(b) == 0 {
		t.Errorf("a proof in the former shard: %v", err)
	}
	for _, path := range []string{"/shards/1/add-checkpoint", "/shards/1/event"} {
		if rec := w.post(path, w.a.body(3, 4)); rec.Code < 400 {
			t.Errorf("POST %s: %d", path, rec.Code)
		}
	}
	for path, want := range map[string]int{"/shards/2/checkpoint": 404, "/shards/1/checkpoint": 200, "/shards/1/tile/0/000.p/1": 200} {
		if rec := w.get(path); rec.Code != want {
			t.Errorf("GET %s: %d, want %d", path, rec.Code, want)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if after := sha256.Sum256(readFile(t, filepath.Join(w.o.Dir, "log.db"))); after != before {
		t.Error("the former shard's file has changed")
	}
}

// The head file follows into the new shard, and guards it from then on.
func TestShardsAreGuardedToo(t *testing.T) {
	w := newRolledBack(t)
	w.recover(api.ShardRollback)
	w.start()
	w.firstStamp()
	w.add(w.a, 3, 6)
	want := w.status().Checkpoint
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if got := string(readFile(t, w.head)); got != want {
		t.Errorf("the head file has\n%s, want\n%s", got, want)
	}
	// Without its new shard the folder is an old copy again.
	shards, aside := filepath.Join(w.o.Dir, "shards"), filepath.Join(t.TempDir(), "shards")
	if err := os.Rename(shards, aside); err != nil {
		t.Fatal(err)
	}
	if err := w.tryStart(); err == nil {
		t.Error("the folder without its new shard starts")
	}
	if err := os.Rename(aside, shards); err != nil {
		t.Fatal(err)
	}
	if got := w.recover(api.ShardGrowth); got.Origin != logName+"/3" || got.KnownSize != got.FormerSize {
		t.Errorf("growth: %+v", got)
	}
	w.start()
	w.add(w.a, 6, 7)
	for path, want := range map[string]int{"/shards/1/checkpoint": 200, "/shards/2/checkpoint": 200, "/shards/3/checkpoint": 404} {
		if rec := w.get(path); rec.Code != want {
			t.Errorf("GET %s: %d, want %d", path, rec.Code, want)
		}
	}
}

// A lost key ends a shard too: its checkpoints are read by the public keys.
func TestRecoverFromALostKey(t *testing.T) {
	w := newRolledBack(t)
	if err := os.Remove(filepath.Join(w.o.Dir, "log.key")); err != nil {
		t.Fatal(err)
	}
	if err := w.tryStart(); err == nil {
		t.Fatal("a witness without its key starts")
	}
	w.recover(api.ShardLostKey)
	w.start()
	w.add(w.a, 3, 4)
}

// Every key leaf is carried over, those of operator acts too, which no key of
// the new shard has signed; a key that was ever in force stays known.
func TestRecoverCarriesKeys(t *testing.T) {
	r := newRig(t)
	a, gone := r.enrolled().grow(5, ""), r.enrolled()
	r.add(a, 0, 2)
	first := a.signer
	second := rekeyed(t, a)
	if _, err := r.server.RotateAgent(context.Background(), second.signer.Vkey().String(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := r.server.RevokeAgent(context.Background(), gone.origin(), api.Ref{}); err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.recover(api.ShardGrowth)
	r.start()
	r.add(second, 2, 3)
	if _, err := r.server.AddCheckpoint(context.Background(), a.body(3, 4)); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("the replaced key: %v, want ErrForbidden", err)
	}
	if _, err := r.server.AddCheckpoint(context.Background(), gone.grow(1, "").body(0, 1)); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("the revoked key: %v, want ErrForbidden", err)
	}
	if _, err := r.server.RotateAgent(context.Background(), first.Vkey().String(), 9); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("back to the replaced key: %v, want ErrForbidden", err)
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
}

// rekeyed is the same chain under another key.
func rekeyed(t *testing.T, a *agent) *agent {
	t.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := tlog.NewSigner(a.origin(), tlog.KeyEd25519, priv)
	if err != nil {
		t.Fatal(err)
	}
	b := *a
	b.signer = signer
	return &b
}

func TestRecoverRefusals(t *testing.T) {
	w := newRolledBack(t)
	if _, err := witness.Recover(w.o, "boredom"); err == nil || !strings.Contains(err.Error(), "growth") {
		t.Errorf("an unknown reason: %v, want the reasons", err)
	}
	other := newAgent(t)
	if _, err := witness.Recover(w.o, api.ShardRollback, other.head(0)); err == nil {
		t.Error("a checkpoint of another log was taken")
	}
	none := w.o
	none.Dir = t.TempDir()
	if _, err := witness.Recover(none, api.ShardRollback); !errors.Is(err, witness.ErrNotInitialised) {
		t.Errorf("an empty folder: %v, want ErrNotInitialised", err)
	}
	if files, err := os.ReadDir(filepath.Join(w.o.Dir, "shards")); err == nil && len(files) > 0 {
		t.Errorf("refusals left %v", files)
	}
	o := w.o
	o.HeadFile = ""
	running := &rig{t: t, o: o}
	running.start()
	if _, err := witness.Recover(w.o, api.ShardRollback); err == nil || !strings.Contains(err.Error(), "locked by pid") {
		t.Errorf("recover beside the server: %v, want who holds the log", err)
	}
	if err := running.end(); err != nil {
		t.Fatal(err)
	}
	w.recover(api.ShardRollback)
}

// A crash while a shard is built leaves the former one in force.
func TestHalfAShardIsNone(t *testing.T) {
	r := newRig(t)
	if err := os.MkdirAll(filepath.Join(r.o.Dir, "shards", ".new-123"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.restart()
	if got := r.status().Origin; got != logName {
		t.Errorf("in force is %s", got)
	}
	if w := r.get("/shards/1/checkpoint"); w.Code != http.StatusNotFound {
		t.Errorf("a shard in force under /shards: %d", w.Code)
	}
}

// A witness that its own signature convicted goes on in a shard that says so.
func TestRecoverAfterConviction(t *testing.T) {
	w := newRolledBack(t)
	w.o.HeadFile = ""
	w.start()
	if err := w.server.Misbehaviour(context.Background(), []byte(w.lost)); err != nil {
		t.Fatal(err)
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if err := w.tryStart(); !errors.Is(err, witness.ErrMisbehaved) {
		t.Errorf("start: %v, want ErrMisbehaved", err)
	}
	if got := w.recover(api.ShardRollback); got.KnownSize != mustCheckpoint(t, []byte(w.lost)).Size {
		t.Errorf("the convicting checkpoint is not known: %+v", got)
	}
	w.start()
	w.add(w.a, 3, 6)
}

// failing is an engine whose n-th store in a folder other than keep fails its
// commit.
func failing(keep string, n int, lost error) witness.Engine {
	return func(dir string) (store.Store, error) {
		s, err := bolt.OpenDir(dir)
		if n--; err != nil || dir == keep || n > 0 {
			return s, err
		}
		f := &faulty{Store: s}
		f.arm(0, false, lost)
		return f, nil
	}
}

// A shard whose writing fails is none: the former one stays in force.
func TestRecoverFails(t *testing.T) {
	w := newRolledBack(t)
	o := w.o
	for n := range 2 { // the former shard is opened first, then the new one twice
		o.Engine = failing(w.o.Dir, n+2, errDisk)
		if got, err := witness.Recover(o, api.ShardRollback); err == nil {
			t.Fatalf("recovered on a failing disk: %+v", got)
		}
	}
	if files, err := os.ReadDir(filepath.Join(w.o.Dir, "shards")); err != nil || len(files) != 0 {
		t.Errorf("it left %v, %v", files, err)
	}
	if err := w.tryStart(); !errors.Is(err, witness.ErrRolledBack) {
		t.Errorf("start: %v, want ErrRolledBack still", err)
	}
	if got := w.recover(api.ShardRollback); got.Shard != 2 {
		t.Errorf("recovered %+v", got)
	}
	w.start()
}

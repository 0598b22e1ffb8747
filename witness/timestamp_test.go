package witness_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/tsa"
	"toolguardian/witness"
	"toolguardian/witness/api"
)

func withBuiltIn(o *witness.Options) { o.Authorities = nil }

func TestTimestampByBuiltInAuthority(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, withBuiltIn)
	a := r.enrolled().grow(3, "")
	head := r.add(a, 0, 3)
	if err := r.server.Stamp(ctx); err != nil {
		t.Fatal(err)
	}
	size, err := r.client.TimestampFrom(ctx, head.Index+1)
	if err != nil || size <= head.Index {
		t.Fatalf("first stamped size after leaf %d: %d, %v", head.Index, size, err)
	}
	names, err := r.client.TimestampAuthorities(ctx, size)
	if err != nil || len(names) != 1 || names[0] != witness.SelfIssued {
		t.Fatalf("authorities %q, %v", names, err)
	}
	signed, err := r.client.TimestampNote(ctx, size)
	if err != nil {
		t.Fatal(err)
	}
	newMonitor(t, mustLog(r)).note(signed)
	resp, err := r.client.Timestamp(ctx, size, names[0])
	if err != nil {
		t.Fatal(err)
	}
	status, token, err := tsa.ParseResponse(resp)
	if err != nil {
		t.Fatalf("status %+v, %v", status, err)
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
	leaf := timeLeafOf(t, entries, size)
	checkTimeLeaf(t, r, leaf, signed, token)
}

func timeLeafOf(t *testing.T, entries [][]byte, size uint64) api.TimeBody {
	t.Helper()
	for _, e := range entries {
		l, err := api.ParseLeaf(e)
		if err != nil {
			t.Fatal(err)
		}
		if l.Type != api.LeafTime {
			continue
		}
		if l.Origin != logName || l.Keys.Present {
			t.Errorf("a time leaf of %s with keys %s", l.Origin, l.Keys)
		}
		body, err := api.ParseTimeBody(l.Body)
		if err != nil {
			t.Fatal(err)
		}
		if body.Size == size {
			return body
		}
	}
	t.Fatalf("no time leaf for size %d", size)
	return api.TimeBody{}
}

// The leaf, the note and the token must tell of the same bytes, and the token
// must verify against the root that is served as a blob.
func checkTimeLeaf(t *testing.T, r *rig, leaf api.TimeBody, signed, token []byte) {
	t.Helper()
	ctx := context.Background()
	if string(leaf.Note(logName)) != string(signed) {
		t.Errorf("the leaf's note is\n%s, the stamped one\n%s", leaf.Note(logName), signed)
	}
	if leaf.Token != tlog.Hash(sha256.Sum256(token)) {
		t.Error("the leaf names another token")
	}
	der, err := r.client.Blob(ctx, leaf.Token)
	if err != nil || string(der) != string(token) {
		t.Errorf("the token's blob: %v, other bytes", err)
	}
	if len(leaf.Blobs) != 1 || leaf.Blobs[0].Kind != api.BlobCert {
		t.Fatalf("blobs %+v, want the root certificate", leaf.Blobs)
	}
	root, err := r.client.Blob(ctx, leaf.Blobs[0].Hash)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tsa.Verify(token, tsa.VerifyOptions{Digest: sha256.Sum256(signed), Roots: poolOf(t, root)})
	if err != nil {
		t.Fatalf("the token: %v", err)
	}
	if age := time.Since(got.Time); age < -time.Minute || age > time.Minute {
		t.Errorf("the token is %v old", age)
	}
}

// Time leaves alone are never stamped, or a quiet log would grow for ever.
func TestQuietLogIsNotStampedAgain(t *testing.T) {
	ctx := context.Background()
	r := newRig(t, withBuiltIn)
	if err := r.server.Stamp(ctx); err != nil {
		t.Fatal(err)
	}
	if got := r.status(); got.Size != 0 || got.Stamped != 0 {
		t.Errorf("an empty log was stamped: %+v", got)
	}
	a := r.enrolled().grow(2, "")
	r.add(a, 0, 1)
	stamp := func() witness.Status {
		t.Helper()
		if err := r.server.Stamp(ctx); err != nil {
			t.Fatal(err)
		}
		return r.status()
	}
	first := stamp()
	if again := stamp(); again.Size != first.Size || first.Stamped == 0 || first.StampedAt.IsZero() {
		t.Errorf("a quiet log went from %+v to %+v", first, again)
	}
	r.restart()
	if again := stamp(); again.Size != first.Size {
		t.Errorf("after a restart a quiet log grew from %d to %d", first.Size, again.Size)
	}
	r.add(a, 1, 2)
	if after := stamp(); after.Stamped <= first.Stamped {
		t.Errorf("new leaves were not stamped: %d, then %d", first.Stamped, after.Stamped)
	}
}

// liar gives a token over other bytes; broken gives none.
type liar struct{ *tsa.Authority }

func (l liar) Stamp(ctx context.Context, _ [32]byte) (tsa.Token, error) {
	return l.Authority.Stamp(ctx, [32]byte{1})
}

type broken struct{}

func (broken) Stamp(context.Context, [32]byte) (tsa.Token, error) {
	return tsa.Token{}, errors.New("no route")
}

// A bad token is never kept, and does not keep the good one out.
func TestBadAuthorities(t *testing.T) {
	authority, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	verify := tsa.VerifyOptions{Roots: pemPool(t, authority.RootPEM())}
	good := witness.Authority{Name: "good", Timestamper: authority, Verify: verify}
	lies := witness.Authority{Name: "lies", Timestamper: liar{authority}, Verify: verify}
	down := witness.Authority{Name: "down", Timestamper: broken{}, Verify: verify}

	r := newRig(t, func(o *witness.Options) { o.Authorities = []witness.Authority{lies, down} })
	a := r.enrolled().grow(1, "")
	size := r.add(a, 0, 1).Size
	if err := r.server.Stamp(context.Background()); err == nil {
		t.Error("a round without a good token succeeded")
	}
	if got := r.status(); got.Size != size || got.Stamped != 0 {
		t.Errorf("a bad token was kept: %+v", got)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	also := good
	also.Name = "also"
	r.o.Authorities = []witness.Authority{lies, good, down, also}
	r.start()
	if err := r.server.Stamp(context.Background()); err != nil {
		t.Fatal(err)
	}
	if names, err := r.client.TimestampAuthorities(context.Background(), size); err != nil || strings.Join(names, " ") != "good also" {
		t.Errorf("authorities %q, %v; want the two good ones", names, err)
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
}

// The first activity is stamped without waiting for the interval.
func TestFirstActivityIsStampedSoon(t *testing.T) {
	r := newRig(t, withBuiltIn)
	r.add(r.enrolled().grow(1, ""), 0, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		if _, err := r.client.TimestampFrom(ctx, 1); err == nil {
			return
		} else if !errors.Is(err, api.ErrNotFound) {
			t.Fatal(err)
		}
	}
}

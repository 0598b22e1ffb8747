package witness_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toolguardian/tsa"
	"toolguardian/witness"
	"toolguardian/witness/api"
)

// operator is an authority with a switch.
type operator struct {
	*tsa.Authority
	down atomic.Bool
}

func (o *operator) Stamp(ctx context.Context, digest [32]byte) (tsa.Token, error) {
	if o.down.Load() {
		return tsa.Token{}, errors.New("no route")
	}
	return o.Authority.Stamp(ctx, digest)
}

func newOperator(t testing.TB, now func() time.Time) *operator {
	t.Helper()
	a, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: t.TempDir(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return &operator{Authority: a}
}

func (o *operator) as(name string) witness.Authority {
	return witness.Authority{Name: name, Timestamper: o, Verify: tsa.VerifyOptions{Roots: o.Roots()}}
}

func (r *rig) stamp() witness.TimeStatus {
	r.t.Helper()
	if err := r.server.Stamp(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	return r.status().Time
}

// Two names of one operator count once; another operator counts.
func TestQuorumCountsOperators(t *testing.T) {
	one, two := newOperator(t, nil), newOperator(t, nil)
	two.down.Store(true)
	r := newRig(t, func(o *witness.Options) {
		o.Authorities, o.TimeQuorum = []witness.Authority{one.as("one"), one.as("one-again"), two.as("two")}, 2
	})
	a := r.enrolled().grow(2, "")
	r.add(a, 0, 1)
	if err := r.server.Stamp(context.Background()); err == nil {
		// The first activity may have stamped already: then two is what is missing.
		if st := r.status().Time; st.Operators != 1 {
			t.Errorf("%d operators, want 1", st.Operators)
		}
	}
	st := r.status().Time
	if st.Full != 0 || st.Size == 0 || st.Operators != 1 || st.Quorum != 2 {
		t.Errorf("with one operator of two: %+v", st)
	}
	if got := st.Authorities[2]; got.Stamped || !strings.Contains(got.Error, "no route") {
		t.Errorf("the authority that is down: %+v", got)
	}

	// What is missing is remembered beyond the process, and asked for alone.
	r.restart()
	two.down.Store(false)
	size := r.status().Size
	st = r.stamp()
	if st.Full != st.Size || st.Operators != 2 || st.Unstamped != 0 {
		t.Errorf("with both: %+v", st)
	}
	if grown := r.status().Size - size; grown > 1 {
		t.Errorf("%d leaves for one token that was missing", grown)
	}
	names, err := r.client.TimestampAuthorities(context.Background(), st.Size)
	slices.Sort(names)
	if err != nil || strings.Join(names, " ") != "one one-again two" {
		t.Errorf("authorities %q, %v", names, err)
	}
	if again := r.stamp(); again.Size != st.Size || r.status().Size != size+1 && r.status().Size != size {
		t.Errorf("a full checkpoint was stamped again: %+v", again)
	}
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	checkBackLinks(t, entries)
}

// Without any answer the checkpoint is published, shown as unstamped, and the
// next round speaks for all that waited.
func TestLackOfTimeIsShown(t *testing.T) {
	one := newOperator(t, nil)
	one.down.Store(true)
	r := newRig(t, func(o *witness.Options) { o.Authorities = []witness.Authority{one.as("one")} })
	a := r.enrolled().grow(3, "")
	for i := range int64(3) {
		r.add(a, i, i+1)
		if err := r.server.Stamp(context.Background()); err == nil {
			t.Error("a round without a token succeeded")
		}
	}
	if st := r.status(); st.Time.Unstamped != st.Size || !st.Time.At.IsZero() || st.Size != 4 {
		t.Errorf("nothing is stamped: %+v", st.Time)
	}
	r.restart()
	if st := r.status(); st.Time.Unstamped != st.Size {
		t.Errorf("after a restart: %+v", st.Time)
	}
	one.down.Store(false)
	if st := r.stamp(); st.Size != 4 || st.Unstamped != 0 || !st.SelfIssued {
		t.Errorf("after the authority is back: %+v", st)
	}
}

// Time leaves alone are stamped again after a year: the later token covers the
// earlier one before its certificates age.
func TestYearlyRenewal(t *testing.T) {
	clock := newFakeClock()
	one := newOperator(t, func() time.Time { clock.mu.Lock(); defer clock.mu.Unlock(); return clock.wall })
	r := newRig(t, clock.in, func(o *witness.Options) { o.Authorities = []witness.Authority{one.as("one")} })
	r.add(r.enrolled().grow(1, ""), 0, 1)
	first := r.stamp()
	clock.pass(364 * 24 * time.Hour)
	if st := r.stamp(); st.Size != first.Size {
		t.Errorf("renewed after 364 days: %+v", st)
	}
	clock.pass(2 * 24 * time.Hour)
	second := r.stamp()
	if second.Size != first.Size+1 {
		t.Errorf("after 366 days the newest stamped size is %d, want %d, which covers the first token", second.Size, first.Size+1)
	}
	if st := r.stamp(); st.Size != second.Size {
		t.Errorf("renewed twice: %+v", st)
	}
}

func TestImpossibleQuorumIsRefused(t *testing.T) {
	one := newOperator(t, nil)
	r := newRig(t)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	o := r.o
	o.Authorities, o.TimeQuorum = []witness.Authority{one.as("one")}, 2
	if _, err := witness.New(o); err == nil || !strings.Contains(err.Error(), "TimeQuorum") {
		t.Errorf("two of one: %v", err)
	}
}

// lists is an issuer that serves a revocation list.
type lists struct {
	issuer *x509.Certificate
	key    *ecdsa.PrivateKey
	web    *httptest.Server
	asked  atomic.Int32
}

func newLists(t *testing.T, now time.Time) (*lists, *x509.Certificate) {
	t.Helper()
	l := &lists{}
	l.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.asked.Add(1)
		signer := l.key
		if r.URL.Path == "/forged" {
			signer = mustKey(t)
		}
		der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now, NextUpdate: now.Add(time.Hour)},
			l.issuer, signer)
		if r.URL.Path == "/long" {
			der = make([]byte, 1<<20)
		}
		if err == nil {
			w.Write(der)
		}
	}))
	t.Cleanup(l.web.Close)
	l.key = mustKey(t)
	l.issuer = l.certify(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCRLSign | x509.KeyUsageCertSign, SubjectKeyId: []byte{1}}, nil, now)
	leaf := l.certify(t, &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "signer"},
		CRLDistributionPoints: []string{l.web.URL + "/forged", l.web.URL + "/long", "ldap://nowhere.invalid/", l.web.URL + "/good"}}, l.issuer, now)
	return l, leaf
}

func mustKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (l *lists) certify(t *testing.T, c, parent *x509.Certificate, now time.Time) *x509.Certificate {
	t.Helper()
	c.NotBefore, c.NotAfter = now.Add(-time.Hour), now.Add(24*time.Hour)
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, l.key.Public(), l.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// A forged, an endless and an unreachable list are left out; the good one is
// kept until its own end.
func TestRevocationLists(t *testing.T) {
	clock := newFakeClock()
	now := func() time.Time { clock.mu.Lock(); defer clock.mu.Unlock(); return clock.wall }
	l, signer := newLists(t, now())
	kept := witness.NewRevocationLists(l.web.Client(), now, slog.New(slog.NewTextHandler(io.Discard, nil)))
	chain := []*x509.Certificate{signer, l.issuer}
	got := kept.Of(context.Background(), chain)
	if len(got) != 1 {
		t.Fatalf("%d lists, want the good one", len(got))
	}
	list, err := x509.ParseRevocationList(got[0])
	if err != nil || list.CheckSignatureFrom(l.issuer) != nil {
		t.Errorf("the list: %v", err)
	}
	asked := l.asked.Load()
	if again := kept.Of(context.Background(), chain); len(again) != 1 || l.asked.Load() != asked+2 {
		t.Errorf("a kept list was asked for again: %d requests", l.asked.Load()-asked)
	}
	clock.pass(2 * time.Hour)
	if again := kept.Of(context.Background(), chain); len(again) != 1 || l.asked.Load() != asked+5 {
		t.Errorf("an outlived list was not asked for again: %d requests", l.asked.Load()-asked)
	}
}

// The lists that were judged are named by the time leaf and served.
func TestValidationBlobs(t *testing.T) {
	one := newOperator(t, nil)
	list := []byte("a revocation list")
	r := newRig(t, func(o *witness.Options) {
		a := one.as("one")
		a.Revocation = func(_ context.Context, chain []*x509.Certificate) [][]byte {
			if len(chain) < 2 {
				t.Errorf("a chain of %d", len(chain))
			}
			return [][]byte{list}
		}
		o.Authorities = []witness.Authority{a}
	})
	r.add(r.enrolled().grow(1, ""), 0, 1)
	st := r.stamp()
	_, entries := newMonitor(t, mustLog(r)).follow(r.client)
	body := timeLeafOf(t, entries, st.Size)
	kinds := map[api.BlobKind]int{}
	for _, ref := range body.Blobs {
		kinds[ref.Kind]++
		b, err := r.client.Blob(context.Background(), ref.Hash)
		if err != nil {
			t.Error(err)
		}
		if ref.Kind == api.BlobCRL && string(b) != string(list) {
			t.Errorf("the list is %q", b)
		}
	}
	if kinds[api.BlobCRL] != 1 || kinds[api.BlobCert] == 0 {
		t.Errorf("blobs %v, want the list and the certificates outside the token", kinds)
	}
}

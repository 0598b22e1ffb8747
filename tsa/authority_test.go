package tsa

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// newAuthority opens an authority in a new folder with a clock that the test
// moves.
func newAuthority(t testing.TB) (*Authority, *time.Time) {
	t.Helper()
	at := labTime
	a, err := NewAuthority(AuthorityOptions{Dir: filepath.Join(t.TempDir(), "tsa"), Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	return a, &at
}

func TestAuthorityStamps(t *testing.T) {
	a, at := newAuthority(t)
	*at = labTime.Add(999 * time.Millisecond)
	token, err := a.Stamp(context.Background(), labDigest)
	if err != nil {
		t.Fatal(err)
	}
	if !token.Time.Equal(labTime) || token.Accuracy != time.Second || !token.AccuracyStated || !token.SelfIssued || token.Policy != DefaultPolicy {
		t.Errorf("states %v ± %v, policy %s, self-issued %v", token.Time, token.Accuracy, token.Policy, token.SelfIssued)
	}
	again, err := Verify(token.DER, VerifyOptions{Digest: labDigest, Roots: a.Roots(), Now: labTime.AddDate(500, 0, 0)})
	if err != nil || again.SignerExpired {
		t.Errorf("centuries later: err = %v, expired %v", err, again.SignerExpired)
	}
}

func TestAuthorityReopens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "tsa")
	now := func() time.Time { return labTime }
	first, err := NewAuthority(AuthorityOptions{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	token, err := first.Stamp(context.Background(), labDigest)
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewAuthority(AuthorityOptions{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.RootPEM(), second.RootPEM()) {
		t.Error("another root after reopening")
	}
	if _, err := Verify(token.DER, VerifyOptions{Digest: labDigest, Roots: second.Roots(), Now: labTime}); err != nil {
		t.Error(err)
	}
	checkPrivate(t, dir)
}

// checkPrivate requires 0700 and 0600 throughout, and nothing left beside dir.
func checkPrivate(t *testing.T, dir string) {
	t.Helper()
	beside, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(beside) != 1 {
		t.Errorf("beside the folder lie %v (err = %v)", beside, err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAuthorityRefusesItsFolder(t *testing.T) {
	for _, tt := range []struct {
		name string
		harm func(dir string) error
		want string
	}{
		{"readable key", func(dir string) error { return os.Chmod(filepath.Join(dir, keyFile), 0o644) }, "chmod 600"},
		{"empty key", func(dir string) error { return os.Truncate(filepath.Join(dir, keyFile), 0) }, "no PEM private key"},
		{"another key", func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, rootKeyFile))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, keyFile), b, 0o600))
		}, "same backup"},
		{"no format", func(dir string) error { return os.Remove(filepath.Join(dir, formatFile)) }, "no folder of an authority"},
		{"newer format", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, formatFile), []byte("tool-guardian/tsa/2\n"), 0o600)
		}, "newer version"},
		{"broken clock file", func(dir string) error { return os.WriteFile(filepath.Join(dir, clockFile), []byte("x"), 0o600) }, "remove it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tsa")
			if _, err := NewAuthority(AuthorityOptions{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			if err := tt.harm(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := NewAuthority(AuthorityOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("err = %v, want one that says %q", err, tt.want)
			}
		})
	}
	for _, o := range []AuthorityOptions{{}, {Dir: t.TempDir(), Policy: "not.an.oid"}} {
		if _, err := NewAuthority(o); err == nil {
			t.Errorf("accepts %+v", o)
		}
	}
}

// TestAuthorityClock: no second is stated after a later one, across a restart
// too, and signing goes on when the clock has caught up.
func TestAuthorityClock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tsa")
	at := labTime
	now := func() time.Time { return at }
	a, err := NewAuthority(AuthorityOptions{Dir: dir, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	stamp := func(want error) {
		t.Helper()
		if _, err := a.Stamp(context.Background(), labDigest); !errors.Is(err, want) {
			t.Fatalf("at %v: err = %v, want %v", at, err, want)
		}
	}
	stamp(nil)
	at = labTime.Add(-time.Second)
	stamp(ErrClockWentBack)
	if a, err = NewAuthority(AuthorityOptions{Dir: dir, Now: now}); err != nil {
		t.Fatal(err)
	}
	stamp(ErrClockWentBack)
	response, err := a.Issue(context.Background(), mustDER(t, NewRequest(labDigest)))
	if err != nil {
		t.Fatal(err)
	}
	status, _, err := ParseResponse(response)
	wantRefusal(t, err, RuleStatus)
	if len(status.Failure) != 1 || status.Failure[0] != TimeNotAvailable || status.Permanent() {
		t.Errorf("answered %v", status)
	}
	at = labTime
	stamp(nil)
}

func mustDER(t testing.TB, r Request) []byte {
	t.Helper()
	der, err := r.DER()
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestIssue sends requests good and bad; the answers are always DER.
func TestIssue(t *testing.T) {
	a, _ := newAuthority(t)
	sum := func(h crypto.Hash) Imprint { return Imprint{Hash: h, Sum: digest(h, []byte("data"))} }
	good := NewRequest(labDigest)
	imprint := func(oid string, n int) []byte {
		return sequence(sequence(tlv(tagOID, []byte(oid)), tlv(tagNull)), tlv(tagOctetString, make([]byte, n)))
	}
	const granted = -1
	for _, tt := range []struct {
		name    string
		request []byte
		want    Failure
	}{
		{"ours", mustDER(t, good), granted},
		{"SHA-384, no nonce, no certificate", mustDER(t, Request{Imprint: sum(crypto.SHA384)}), granted},
		{"SHA-512, nonce 0, policy", mustDER(t, Request{Imprint: sum(crypto.SHA512), Nonce: new(big.Int), Policy: DefaultPolicy, CertReq: true}), granted},
		{"other policy", mustDER(t, Request{Imprint: good.Imprint, Policy: "1.2.3"}), UnacceptedPolicy},
		{"empty", nil, BadDataFormat},
		{"garbage", []byte("POST / HTTP/1.1"), BadDataFormat},
		{"version 2", sequence(encodeSmall(2), imprint(oidSHA256, 32)), BadRequest},
		{"SHA-1", sequence(encodeSmall(1), imprint(oidSHA1, 20)), BadAlg},
		{"short digest", sequence(encodeSmall(1), imprint(oidSHA256, 31)), BadDataFormat},
		{"negative nonce", sequence(encodeSmall(1), imprint(oidSHA256, 32), tlv(tagInteger, []byte{0xff})), BadRequest},
		{"extension", sequence(encodeSmall(1), imprint(oidSHA256, 32), tlv(tagContext0)), UnacceptedExtension},
		{"out of order", sequence(encodeSmall(1), imprint(oidSHA256, 32), tlv(tagBoolean, []byte{0xff}), encodeSmall(1)), BadDataFormat},
		{"behind the end", append(mustDER(t, good), 0), BadDataFormat},
		{"too long", make([]byte, maxRequest+1), BadRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			response, err := a.Issue(context.Background(), tt.request)
			if err != nil {
				t.Fatal(err)
			}
			status, token, err := ParseResponse(response)
			if tt.want == granted {
				checkIssued(t, a, tt.request, token, err)
				return
			}
			wantRefusal(t, err, RuleStatus)
			if len(status.Failure) != 1 || status.Failure[0] != tt.want || len(status.Text) != 1 {
				t.Fatalf("answered %v", status)
			}
		})
	}
}

func checkIssued(t *testing.T, a *Authority, request, token []byte, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	sd, refused := parseSignedData(token)
	if refused != nil {
		t.Fatal(refused)
	}
	if embedded := len(sd.certs) > 0; embedded != r.CertReq {
		t.Errorf("certificate embedded: %v, asked for: %v", embedded, r.CertReq)
	}
	got, err := Verify(token, VerifyOptions{Imprint: r.Imprint, Nonce: r.Nonce, Roots: a.Roots(), ExtraCerts: [][]byte{a.keys.signer.Raw}, Now: labTime})
	if err != nil {
		t.Fatal(err)
	}
	if (got.Nonce == nil) != (r.Nonce == nil) {
		t.Errorf("nonce %v, asked for %v", got.Nonce, r.Nonce)
	}
}

func TestRequestReadsBack(t *testing.T) {
	want := NewRequest(labDigest)
	want.Policy = DefaultPolicy
	got, err := ParseRequest(mustDER(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if got.Nonce.Cmp(want.Nonce) != 0 || got.Policy != want.Policy || !got.CertReq || !bytes.Equal(got.Imprint.Sum, labDigest[:]) {
		t.Errorf("%+v reads as %+v", want, got)
	}
	if want.Nonce.Sign() <= 0 || want.Nonce.Cmp(NewRequest(labDigest).Nonce) == 0 {
		t.Error("the nonce is not fresh and positive")
	}
	for _, bad := range []Request{{}, {Imprint: Imprint{Hash: crypto.SHA1, Sum: make([]byte, 20)}},
		{Imprint: want.Imprint, Policy: "x"}, {Imprint: want.Imprint, Nonce: big.NewInt(-1)}} {
		if _, err := bad.DER(); err == nil {
			t.Errorf("encodes %+v", bad)
		}
	}
}

func TestHandler(t *testing.T) {
	a, _ := newAuthority(t)
	server := httptest.NewServer(a.Handler())
	defer server.Close()
	query := mustDER(t, NewRequest(labDigest))
	for _, tt := range []struct {
		name, method, media string
		body                []byte
		want                int
	}{
		{"query", http.MethodPost, queryType, query, 200},
		{"query with parameter", http.MethodPost, queryType + "; charset=binary", query, 200},
		{"bad query", http.MethodPost, queryType, []byte("x"), 200},
		{"GET", http.MethodGet, queryType, nil, 405},
		{"form", http.MethodPost, "application/x-www-form-urlencoded", query, 415},
		{"no type", http.MethodPost, "", query, 415},
		{"large", http.MethodPost, queryType, make([]byte, maxRequest+1), 413},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequest(tt.method, server.URL, bytes.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", tt.media)
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tt.want {
				t.Fatalf("%s, err = %v, want status %d", resp.Status, err, tt.want)
			}
			if tt.want != 200 {
				return
			}
			if got := resp.Header.Get("Content-Type"); got != replyType {
				t.Errorf("content type %q", got)
			}
			if checkDER(body) != nil {
				t.Error("the answer is not DER")
			}
		})
	}
}

// TestAuthorityTogether: opened for the first time by several at once there is
// one root, and stamps made side by side have their own serial numbers.
func TestAuthorityTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tsa")
	const n = 4
	roots, serials := make([][]byte, n), make([]*big.Int, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			a, err := NewAuthority(AuthorityOptions{Dir: dir, Now: func() time.Time { return labTime }})
			if err != nil {
				t.Error(err)
				return
			}
			roots[i] = a.RootPEM()
		})
	}
	group.Wait()
	a, err := NewAuthority(AuthorityOptions{Dir: dir, Now: func() time.Time { return labTime }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		group.Go(func() {
			token, err := a.Stamp(context.Background(), labDigest)
			if err != nil {
				t.Error(err)
				return
			}
			serials[i] = token.Serial
		})
	}
	group.Wait()
	for i := range n {
		if !bytes.Equal(roots[i], a.RootPEM()) {
			t.Errorf("opener %d got another root", i)
		}
		for j := range i {
			if serials[i] == nil || serials[j] == nil || serials[i].Cmp(serials[j]) == 0 {
				t.Errorf("serial numbers %v and %v", serials[i], serials[j])
			}
		}
	}
	checkPrivate(t, dir)
}

func TestWrapToken(t *testing.T) {
	l := newLab(t)
	token := l.issue(l.statement())
	status, got, err := ParseResponse(WrapToken(token))
	if err != nil || status.Code != 0 || !bytes.Equal(got, token) {
		t.Fatalf("status %v, err = %v", status, err)
	}
	if again, err := SplitToken(token); err != nil || !bytes.Equal(again, token) {
		t.Fatalf("a token is not its own: %v", err)
	}
}

func TestStatus(t *testing.T) {
	text := strings.Repeat("w\x1b", 200)
	for _, tt := range []struct {
		name      string
		info      []byte
		code      int
		permanent bool
		says      string
	}{
		{"modifications", sequence(encodeSmall(1)), 1, false, "granted with modifications"},
		{"two failures", sequence(encodeSmall(2), tlv(tagBitString, []byte{0, 0x20, 0, 0, 0x40})), 2, true, "badRequest, systemFailure"},
		{"text not in a sequence", sequence(encodeSmall(2), tlv(tagUTF8, []byte("no"))), 2, false, `"no"`},
		{"long text", sequence(encodeSmall(3), sequence(tlv(tagUTF8, []byte(text)))), 3, false, "…"},
		{"unnamed failure", sequence(encodeSmall(2), tlv(tagBitString, []byte{6, 0x40})), 2, false, "failure bit 1"},
		{"revocation", sequence(encodeSmall(5)), 5, false, "revocation notification"},
		{"unknown", sequence(encodeSmall(6)), -1, false, "unreadable status"},
		{"none", sequence(), -1, false, "unreadable status"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, _, err := ParseResponse(sequence(tt.info))
			wantRefusal(t, err, RuleStatus)
			if status.Code != tt.code || status.Permanent() != tt.permanent || !strings.Contains(status.String(), tt.says) {
				t.Errorf("%v (code %d, permanent %v), want %q", status, status.Code, status.Permanent(), tt.says)
			}
			if strings.Contains(status.String(), "\x1b") || len(status.String()) > 1000 {
				t.Errorf("text is not escaped and cut: %q", status)
			}
		})
	}
}

package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
)

// served is a command that listens, inside this process.
type served struct {
	url string
	err *lockedBuffer
	end func() Code
}

// lockedBuffer is read while the command still writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startServing runs a command that listens until the test ends.
func startServing(t *testing.T, args ...string) served {
	t.Helper()
	addr := filepath.Join(t.TempDir(), "url")
	ctx, cancel := context.WithCancel(context.Background())
	s := served{err: new(lockedBuffer)}
	done := make(chan Code, 1)
	go func() {
		done <- run(ctx, append(args, "--listen", "127.0.0.1:0", "--addr-file", addr), Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: s.err, Now: time.Now,
			Getenv: func(string) string { return "" }, Environ: func() []string { return nil }})
	}()
	s.end = sync.OnceValue(func() Code { cancel(); return <-done })
	t.Cleanup(func() {
		if code := s.end(); code != OK {
			t.Errorf("%v: exit %d: %s", args, code, s.err)
		}
	})
	eventually(t, func() bool {
		b, err := os.ReadFile(addr)
		s.url = strings.TrimSpace(string(b))
		return err == nil || len(done) > 0
	})
	if s.url == "" {
		t.Fatalf("%v does not listen: %s", args, s.err)
	}
	return s
}

func eventually(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(30 * time.Second); !done(); {
		select {
		case <-end:
			t.Fatal("it did not come about within 30 seconds")
		case <-tick.C:
		}
	}
}

func newWitnessDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "witness")
	if got := try(t, "witness", "init", "--data", dir, "--origin", "witness.test.invalid/log"); got.code != OK {
		t.Fatal(got.err)
	}
	return dir
}

func witnessStatusOf(t *testing.T, dir string) (st witness.Status) {
	t.Helper()
	got := try(t, "witness", "status", "--data", dir, "--json")
	if got.code != OK {
		t.Fatal(got.err)
	}
	if err := json.Unmarshal([]byte(got.out), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// chainKey is the vkey of a chain that does not exist.
func chainKey(t *testing.T) string {
	t.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(priv[32:])
	signer, err := tlog.NewSigner("agents.invalid/c/"+hex.EncodeToString(sum[:16]), tlog.KeyEd25519, priv)
	if err != nil {
		t.Fatal(err)
	}
	return signer.Vkey().String()
}

// Two authorities stamp each checkpoint; one that lies about its root is kept
// apart and does not count.
func TestServeWithAuthorities(t *testing.T) {
	base := t.TempDir()
	var words []string
	for _, name := range []string{"one", "two", "stranger"} {
		dir := filepath.Join(base, name)
		s := startServing(t, "tsa", "serve", "--data", dir)
		ca := filepath.Join(dir, "root.pem")
		if name == "stranger" {
			ca = filepath.Join(base, "one", "root.pem")
		}
		words = append(words, "--tsa", name+"="+s.url+",ca="+ca)
	}
	dir := newWitnessDir(t)
	args := append([]string{"witness", "serve", "--data", dir, "--tsa-quorum", "2", "--stamp-every", "20ms", "--log", "json"}, words...)
	s := startServing(t, args...)
	if got := try(t, "witness", "agents", "add", chainKey(t), "--data", dir); got.code != OK {
		t.Fatal(got.err)
	}
	var st witness.TimeStatus
	eventually(t, func() bool { st = witnessStatusOf(t, dir).Time; return st.Full > 0 })
	if st.Operators != 2 || st.Quorum != 2 || st.Unstamped != 0 || !st.SelfIssued {
		t.Errorf("%+v", st)
	}
	if a := st.Authorities[2]; a.Name != "stranger" || a.Stamped || !strings.Contains(a.Error, "unanchored") {
		t.Errorf("the stranger: %+v", a)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "tsa-refused")); err != nil || len(files) == 0 {
		t.Errorf("what the stranger sent was not kept: %v", err)
	}
	if got := try(t, "witness", "status", "--data", dir); !strings.Contains(got.out, "2 of 2 operators") || !strings.Contains(got.out, "stranger") {
		t.Errorf("status says\n%s", got.out)
	}
	if code := s.end(); code != OK {
		t.Errorf("exit %d: %s", code, s.err)
	}
	for line := range strings.Lines(s.err.String()) {
		if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
			t.Errorf("a log line is not JSON: %s", line)
		}
	}
}

func TestServeWords(t *testing.T) {
	dir := newWitnessDir(t)
	cert, key := writePair(t, t.TempDir(), "a")
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"--tsa nonsense", "--tsa =http://a.invalid/", "--tsa A=http://a.invalid/", "--tsa a=ftp://a.invalid/",
		"--tsa a=http://a.invalid/,ca=/no/such/file", "--tsa a=http://a.invalid/,ca=" + key, "--tsa a=http://a.invalid/,what",
		"--tsa a=http://a.invalid/ --tsa a=http://b.invalid/", "--tsa-quorum 2", "--tsa-quorum 0",
		"--tsa a=http://a.invalid/ --tsa-quorum 2",
		"--tls-cert " + cert, "--tls-key " + key, "--tls-cert " + cert + " --tls-key " + cert, "--tls-cert /none --tls-key /none",
		"--read-token-file /none", "--read-token-file " + short, "--log xml", "--listen nowhere",
		"--cosigners /none", "--cosigners " + key, "--cosign-log nonsense",
	} {
		got := try(t, append([]string{"witness", "serve", "--data", dir}, strings.Fields(words)...)...)
		if got.code != Usage {
			t.Errorf("%s: exit %d, %s", words, got.code, got.err)
		}
	}
}

func writePair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, priv.Public(), priv)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// HTTPS with a renewed certificate, without a restart, and nothing below TLS 1.2.
func TestServeTLS(t *testing.T) {
	files := t.TempDir()
	cert, key := writePair(t, files, "first")
	s := startServing(t, "witness", "serve", "--data", newWitnessDir(t), "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatalf("the address is %s", s.url)
	}
	if name := served443(t, s.url, cert); name != "first" {
		t.Errorf("served by %q", name)
	}
	old := &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	if c, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), old); err == nil {
		c.Close()
		t.Error("TLS 1.1 is spoken")
	}
	if err := os.WriteFile(key, []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(cert, later, later); err != nil {
		t.Fatal(err)
	}
	if name := served443(t, s.url, cert); name != "first" {
		t.Errorf("while the new pair does not fit, served by %q", name)
	}
	writePair(t, files, "second")
	if err := os.Chtimes(cert, later.Add(time.Hour), later.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if name := served443(t, s.url, cert); name != "second" {
		t.Errorf("after the renewal served by %q", name)
	}
}

// served443 asks for /healthz and gives the name of the certificate shown.
func served443(t *testing.T, url, cert string) string {
	t.Helper()
	b, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %d", resp.StatusCode)
	}
	return resp.TLS.PeerCertificates[0].Subject.CommonName
}

package tsa_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"toolguardian/tsa"
)

// openssl runs the command in dir and fails the test with its output.
func openssl(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("openssl", args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("openssl %v: %v\n%s%s", args, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

func needOpenSSL(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed: it is the second implementation here")
	}
}

func writeFiles(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func openAuthority(t *testing.T) *tsa.Authority {
	t.Helper()
	a, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: filepath.Join(t.TempDir(), "tsa")})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOpenSSLVerifiesOurTokens: the token alone against the data, and openssl's
// own requests answered by us.
func TestOpenSSLVerifiesOurTokens(t *testing.T) {
	needOpenSSL(t)
	a, dir, data := openAuthority(t), t.TempDir(), []byte("a note\n")
	token, err := a.Stamp(context.Background(), sha256.Sum256(data))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string][]byte{"data": data, "token": token.DER, "root.pem": a.RootPEM()})
	openssl(t, dir, "ts", "-verify", "-token_in", "-in", "token", "-data", "data", "-CAfile", "root.pem",
		"-attime", fmt.Sprint(token.Time.Unix()))
	for _, hash := range []string{"-sha256", "-sha384", "-sha512"} {
		t.Run("query "+hash, func(t *testing.T) {
			openssl(t, dir, "ts", "-query", "-data", "data", hash, "-cert", "-tspolicy", a.Policy(), "-out", "q.tsq")
			response, err := a.Issue(context.Background(), readFile(t, dir, "q.tsq"))
			if err != nil {
				t.Fatal(err)
			}
			writeFiles(t, dir, map[string][]byte{"r.tsr": response})
			openssl(t, dir, "ts", "-verify", "-in", "r.tsr", "-queryfile", "q.tsq", "-CAfile", "root.pem")
		})
	}
}

// TestOpenSSLReadsOurRefusals: a rejection is DER that openssl can show.
func TestOpenSSLReadsOurRefusals(t *testing.T) {
	needOpenSSL(t)
	a, dir := openAuthority(t), t.TempDir()
	response, err := a.Issue(context.Background(), []byte("no request"))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string][]byte{"r.tsr": response})
	if out := openssl(t, dir, "ts", "-reply", "-in", "r.tsr", "-text"); !bytes.Contains(out, []byte("Rejected")) {
		t.Errorf("openssl shows %s", out)
	}
}

const opensslConfig = `
[tsa]
default_tsa = authority
[authority]
serial = serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1, millisecs:500, microsecs:100
ordering = yes
tsa_name = yes
ess_cert_id_alg = %s
crypto_device = builtin
[root]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
[leaf]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
[req]
distinguished_name = name
[name]
`

// TestWeVerifyOpenSSL: openssl as the authority, answering our request, with EC
// and RSA keys and both kinds of ESS attribute.
func TestWeVerifyOpenSSL(t *testing.T) {
	needOpenSSL(t)
	for _, tt := range []struct {
		name, ess string
		key       []string
		v1        bool
	}{
		{"EC", "sha256", []string{"-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"}, false},
		{"EC, ESS SHA-512", "sha512", []string{"-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"}, false},
		{"RSA, ESS v1", "sha1", []string{"-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) { testWeVerifyOpenSSL(t, tt.ess, tt.key, tt.v1) })
	}
}

func testWeVerifyOpenSSL(t *testing.T, ess string, key []string, v1 bool) {
	dir := t.TempDir()
	opensslAuthority(t, dir, ess, key)
	request := tsa.NewRequest(sha256.Sum256([]byte("data")))
	query, err := request.DER()
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string][]byte{"q.tsq": query})
	openssl(t, dir, "ts", "-reply", "-config", "conf", "-queryfile", "q.tsq", "-signer", "leaf.pem", "-inkey", "leaf.key", "-out", "r.tsr")
	_, token, err := tsa.ParseResponse(readFile(t, dir, "r.tsr"))
	if err != nil {
		t.Fatal(err)
	}
	o := tsa.VerifyOptions{Data: []byte("data"), Nonce: request.Nonce, Policies: []string{"1.2.3.4.1"}, Roots: pemPool(t, filepath.Join(dir, "root.pem"))}
	if v1 {
		_, err := tsa.Verify(token, o)
		wantRule(t, err, tsa.RuleESS)
		o.AllowESSv1 = true
	}
	got, err := tsa.Verify(token, o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Accuracy.Microseconds() != 1500100 || got.SelfIssued {
		t.Errorf("accuracy %v, self-issued %v", got.Accuracy, got.SelfIssued)
	}
	o.Data = []byte("other")
	_, err = tsa.Verify(token, o)
	wantRule(t, err, tsa.RuleImprint)
}

// opensslAuthority makes a root, a signer and a configuration in dir.
func opensslAuthority(t *testing.T, dir, ess string, key []string) {
	t.Helper()
	writeFiles(t, dir, map[string][]byte{"conf": fmt.Appendf(nil, opensslConfig, ess), "serial": []byte("01\n")})
	openssl(t, dir, append([]string{"genpkey", "-out", "root.key"}, key...)...)
	openssl(t, dir, append([]string{"genpkey", "-out", "leaf.key"}, key...)...)
	openssl(t, dir, "req", "-new", "-x509", "-config", "conf", "-extensions", "root", "-key", "root.key", "-subj", "/CN=root", "-days", "2", "-out", "root.pem")
	openssl(t, dir, "req", "-new", "-config", "conf", "-key", "leaf.key", "-subj", "/CN=leaf", "-out", "leaf.csr")
	openssl(t, dir, "x509", "-req", "-in", "leaf.csr", "-CA", "root.pem", "-CAkey", "root.key", "-set_serial", "2",
		"-days", "1", "-extfile", "conf", "-extensions", "leaf", "-out", "leaf.pem")
}

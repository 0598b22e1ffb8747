package tsa_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"toolguardian/tsa"
)

var servingAt = regexp.MustCompile(`Serving timestamp server at (http://\S+)`)

// startSigstore runs sigstore's timestamp-server with a key in memory and
// returns its URL.
func startSigstore(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("timestamp-server")
	if err != nil {
		t.Skip("sigstore's timestamp-server is not on the PATH: it is another foreign authority here")
	}
	cmd := exec.Command(path, "serve", "--timestamp-signer", "memory", "--host", "127.0.0.1", "--port", "0", "--disable-ntp-monitoring")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		io.Copy(io.Discard, out)
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := servingAt.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(io.Discard, out) // its log must not block it
			return m[1]
		}
	}
	t.Fatal("timestamp-server ended before it served")
	return ""
}

// TestSigstoreAuthority: our client stamps at sigstore's server, with its root
// pinned.
func TestSigstoreAuthority(t *testing.T) {
	url := startSigstore(t)
	chain := fetchChain(t, url+"/api/v1/timestamp/certchain")
	root := chain[len(chain)-1]
	var extra [][]byte
	for _, cert := range chain {
		extra = append(extra, cert.Raw)
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	c, err := tsa.New(tsa.ClientOptions{Authorities: []tsa.Remote{{
		Name: "sigstore", URL: url + "/api/v1/timestamp", Roots: pool, ExtraCerts: extra,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.Stamp(context.Background(), sha256.Sum256([]byte("data")))
	if err != nil {
		t.Fatal(err)
	}
	if token.Authority != "sigstore" || token.SelfIssued || len(token.Chain) != len(chain) {
		t.Errorf("token of %q, chain of %d", token.Authority, len(token.Chain))
	}
}

func fetchChain(t *testing.T, url string) (chain []*x509.Certificate) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	rest, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, cert)
	}
	if len(chain) < 2 {
		t.Fatalf("a chain of %d certificates", len(chain))
	}
	return chain
}

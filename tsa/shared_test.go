package tsa_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

// sharedPath is the folder of foreign tokens, which are not part of the repo.
func sharedPath() (dir string, present bool) {
	root := os.Getenv("TOOL_GUARDIAN_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "shared")
	}
	dir = filepath.Join(root, "tsa")
	_, err := os.Stat(dir)
	return dir, err == nil
}

// sharedDir skips the test where the foreign tokens are absent.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir, present := sharedPath()
	if !present {
		t.Skipf("no foreign tokens in %s", dir)
	}
	return dir
}

func readFile(t testing.TB, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pemCerts returns the DER of every certificate in the named files.
func pemCerts(t testing.TB, paths ...string) [][]byte {
	t.Helper()
	var ders [][]byte
	for _, path := range paths {
		rest := readFile(t, path)
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			ders = append(ders, bytes.Clone(block.Bytes))
		}
	}
	if len(ders) == 0 {
		t.Fatalf("no certificates in %v", paths)
	}
	return ders
}

// pemPool pins every certificate in the named files that Go can read.
func pemPool(t testing.TB, paths ...string) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	for _, der := range pemCerts(t, paths...) {
		if cert, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(cert)
		}
	}
	return pool
}

// lastAsRoot pins the last certificate alone: the files list leaf first.
func lastAsRoot(t testing.TB, ders [][]byte) *x509.CertPool {
	t.Helper()
	cert, err := x509.ParseCertificate(ders[len(ders)-1])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool
}

package cli

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// rootsFile holds the roots of timestamp authorities that this host trusts for
// the lower bound of its own receipts, in PEM.
func rootsFile(evidence string) string { return filepath.Join(evidence, "anchor", "tsa-roots.pem") }

// keepRoots stores the named PEM file for the streamer.
func keepRoots(evidence, name string) error {
	if name == "" {
		return nil
	}
	if _, err := readRoots(name); err != nil {
		return err
	}
	b, err := readInput(name)
	if err != nil {
		return err
	}
	return os.WriteFile(rootsFile(evidence), b, 0o600)
}

// keptRoots reads them; without the file receipts carry no lower bound.
func keptRoots(evidence string) (*x509.CertPool, error) {
	name := rootsFile(evidence)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return readRoots(name)
}

package tsa

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Files in the authority's folder. The root's key signs nothing in operation;
// it is kept so that a lost signer can be replaced under the same pin.
const (
	formatFile  = "FORMAT"
	formatText  = "tool-guardian/tsa/1\n"
	rootFile    = "root.pem"
	rootKeyFile = "root.key"
	certFile    = "signer.pem"
	keyFile     = "signer.key"
)

// authorityKeys is what issuing needs.
type authorityKeys struct {
	root   *x509.Certificate
	signer *x509.Certificate
	key    *ecdsa.PrivateKey
}

// openKeys loads the folder, making it first where it is absent or empty.
func openKeys(dir string, now time.Time) (authorityKeys, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return authorityKeys{}, err
	}
	if len(entries) == 0 {
		if err := createKeys(dir, now); err != nil {
			return authorityKeys{}, fmt.Errorf("create keys in %s: %w", dir, err)
		}
	}
	return loadKeys(dir)
}

// createKeys writes everything into a folder beside dir and renames it. A crash
// leaves either no authority or a whole one; of two processes the first wins.
func createKeys(dir string, now time.Time) error {
	files, err := newKeyFiles(now)
	if err != nil {
		return err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	beside, err := os.MkdirTemp(parent, ".tsa-") // 0700
	if err != nil {
		return err
	}
	defer os.RemoveAll(beside)
	for name, b := range files {
		if err := writeNew(filepath.Join(beside, name), b); err != nil {
			return err
		}
	}
	if err := syncDir(beside); err != nil {
		return err
	}
	// Neither call harms a folder that is not empty.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Rename(beside, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func newKeyFiles(now time.Time) (map[string][]byte, error) {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, rootTemplate(now), rootTemplate(now), rootKey.Public(), rootKey)
	if err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(rootDER)
	if err != nil {
		return nil, err
	}
	certDER, err := x509.CreateCertificate(rand.Reader, signerTemplate(now), root, key.Public(), rootKey)
	if err != nil {
		return nil, err
	}
	rootKeyPEM, errRoot := encodeKey(rootKey)
	keyPEM, errKey := encodeKey(key)
	return map[string][]byte{
		formatFile: []byte(formatText),
		rootFile:   encodeCert(rootDER), rootKeyFile: rootKeyPEM,
		certFile: encodeCert(certDER), keyFile: keyPEM,
	}, errors.Join(errRoot, errKey)
}

// validity has no end (RFC 5280 section 4.1.2.5): a token is judged at its
// genTime, and an expiry would only make old tokens look bad.
func validity(now time.Time) (from, to time.Time) {
	return now.UTC().Add(-time.Hour), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
}

func rootTemplate(now time.Time) *x509.Certificate {
	from, to := validity(now)
	return &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{Organization: []string{SelfIssuedOrganization}, CommonName: "Tool Guardian time root"},
		NotBefore:             from,
		NotAfter:              to,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

// signerTemplate writes the extended key usage itself, because RFC 3161 section
// 2.3 wants it critical.
func signerTemplate(now time.Time) *x509.Certificate {
	from, to := validity(now)
	return &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{Organization: []string{SelfIssuedOrganization}, CommonName: "Tool Guardian built-in time"},
		NotBefore:             from,
		NotAfter:              to,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{
			Id:       asn1.ObjectIdentifier{2, 5, 29, 37},
			Critical: true,
			Value:    sequence(tlv(tagOID, []byte(oidTimeStamping))),
		}},
	}
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func loadKeys(dir string) (k authorityKeys, err error) {
	format, err := os.ReadFile(filepath.Join(dir, formatFile))
	if err != nil {
		return k, fmt.Errorf("%s holds files but is no folder of an authority: %w; name an empty or absent folder", dir, err)
	}
	if string(format) != formatText {
		return k, fmt.Errorf("%s has format %s, known is %q: use a newer version", dir, shown(format), formatText)
	}
	if k.root, err = loadCert(filepath.Join(dir, rootFile)); err != nil {
		return k, err
	}
	if k.signer, err = loadCert(filepath.Join(dir, certFile)); err != nil {
		return k, err
	}
	if k.key, err = loadKey(filepath.Join(dir, keyFile)); err != nil {
		return k, err
	}
	if !k.key.PublicKey.Equal(k.signer.PublicKey) {
		return k, fmt.Errorf("%s is not the key of %s: restore both from the same backup", keyFile, certFile)
	}
	return k, nil
}

func loadCert(path string) (*x509.Certificate, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s holds no PEM certificate: restore it from a backup", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cert, nil
}

// loadKey refuses a key that others may read.
func loadKey(path string) (*ecdsa.PrivateKey, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s may be read by others (mode %#o): chmod 600 it", path, info.Mode().Perm())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%s holds no PEM private key: restore it from a backup", path)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%s is not an EC P-256 key", path)
	}
	return key, nil
}

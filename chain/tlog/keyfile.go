package tlog

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

const (
	keyFileHeader = "tool-guardian/key/1\n"
	pemType       = "PRIVATE KEY"
	maxKeyFile    = 4 << 10
)

// GenerateKey returns a new Ed25519 key.
func GenerateKey() (ed25519.PrivateKey, error) {
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	return priv, err
}

// MarshalPrivateKey returns the text of a key file: a version line, then
// PKCS #8 in PEM (RFC 8410), which openssl reads. Without a whole key it
// returns nil.
func MarshalPrivateKey(priv ed25519.PrivateKey) []byte {
	if !wholeKey(priv) {
		return nil
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil
	}
	return append([]byte(keyFileHeader), pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})...)
}

// ParsePrivateKey accepts exactly what MarshalPrivateKey writes. Its errors
// hold nothing of the key.
func ParsePrivateKey(b []byte) (ed25519.PrivateKey, error) {
	text, ok := bytes.CutPrefix(b, []byte(keyFileHeader))
	if !ok {
		return nil, fmt.Errorf("key: the first line is not %q", keyFileHeader)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return nil, errors.New("key: no PEM block PRIVATE KEY")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("key: not PKCS #8")
	}
	priv, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("key: not an Ed25519 key")
	}
	if !bytes.Equal(MarshalPrivateKey(priv), b) {
		return nil, errors.New("key: not in canonical form")
	}
	return priv, nil
}

// LoadKeyFile reads a key file. It refuses a file that is empty, not regular,
// or open to anyone but its owner.
func LoadKeyFile(path string) (ed25519.PrivateKey, error) {
	f, err := openKeyFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	switch {
	case len(b) == 0:
		return nil, fmt.Errorf("key file %s is empty: creating it was interrupted; remove it if the key was never used, else restore it", path)
	case len(b) > maxKeyFile:
		return nil, fmt.Errorf("key file %s: more than %d bytes", path, maxKeyFile)
	}
	priv, err := ParsePrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return priv, nil
}

// openKeyFile looks before it opens, since opening a pipe would wait for a
// writer, and again at what it opened.
func openKeyFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("key file %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	if err := checkKeyMode(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkKeyMode(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	// Windows keeps access lists, not these bits.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("key file %s: mode %04o lets others read it; run: chmod 600 %s", path, mode, path)
	}
	return nil
}

// CreateKeyFile generates a key and writes it to a new file with mode 0600;
// an existing file is an error matching fs.ErrExist. The key is durable on
// return. A crash before that leaves no file, or one that LoadKeyFile refuses.
func CreateKeyFile(path string) (ed25519.PrivateKey, error) {
	priv, err := GenerateKey()
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	_, err = f.Write(MarshalPrivateKey(priv))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		// The file is ours alone, and no one has seen the key.
		return nil, fmt.Errorf("create key: %w", errors.Join(err, os.Remove(path)))
	}
	return priv, nil
}

// syncDir makes the file's name durable; its own sync does not.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

package chain

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"toolguardian/chain/tlog"
)

const (
	headKeyName    = "head.key"
	receiptKeyName = "receipt.key"
	maxKeyFile     = 4 << 10
)

// keyPair is what signs: receipts with one key, heads with the other.
type keyPair struct {
	head, receipt ed25519.PrivateKey
}

func newKeyPair() (keyPair, error) {
	head, err := tlog.GenerateKey()
	if err != nil {
		return keyPair{}, err
	}
	receipt, err := tlog.GenerateKey()
	return keyPair{head: head, receipt: receipt}, err
}

func (k keyPair) files() map[string]ed25519.PrivateKey {
	return map[string]ed25519.PrivateKey{headKeyName: k.head, receiptKeyName: k.receipt}
}

// store writes both files into an existing folder that no one else reads yet.
func (k keyPair) store(f FS, dir string) error {
	for name, priv := range k.files() {
		if err := createFile(f, filepath.Join(dir, name), tlog.MarshalPrivateKey(priv), os.O_EXCL); err != nil {
			return fmt.Errorf("write key: %w", noSpace(err))
		}
	}
	return f.SyncDir(dir)
}

func loadKeyPair(f FS, dir string) (keyPair, error) {
	head, err := loadKey(f, filepath.Join(dir, headKeyName))
	if err != nil {
		return keyPair{}, err
	}
	receipt, err := loadKey(f, filepath.Join(dir, receiptKeyName))
	return keyPair{head: head, receipt: receipt}, err
}

// loadKey refuses a file that others may read, that is empty, or no key.
func loadKey(f FS, name string) (ed25519.PrivateKey, error) {
	file, err := f.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w: put the file back, or move the evidence folder away to begin anew", ErrKey, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	defer file.Close()
	info, err := file.Info()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if err := checkKeyFile(name, info); err != nil {
		return nil, err
	}
	b, err := readUpTo(file, name, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	priv, err := tlog.ParsePrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKey, name, err)
	}
	return priv, nil
}

func checkKeyFile(name string, info Info) error {
	switch {
	case !info.Mode.IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", ErrKey, name)
	case info.Size == 0:
		return fmt.Errorf("%w: %s is empty: put the key back from a copy", ErrKey, name)
	case runtime.GOOS != "windows" && info.Mode.Perm()&0o077 != 0:
		return fmt.Errorf("%w: %s has mode %04o, others may read it: chmod 600 %s", ErrKey, name, info.Mode.Perm(), name)
	}
	return nil
}

// originOf names the chain whose first head key this is.
func originOf(label string, head ed25519.PublicKey) string {
	sum := sha256.Sum256(head)
	return label + "/c/" + hex.EncodeToString(sum[:16])
}

// originHex is the last element of an origin, "" for what is none.
func originHex(origin string) string {
	_, digits, ok := strings.Cut(origin, "/c/")
	if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != 16 {
		return ""
	}
	return digits
}

// publicOf is the public half of a key from loadKey or newKeyPair.
func publicOf(priv ed25519.PrivateKey) ed25519.PublicKey {
	return priv.Public().(ed25519.PublicKey)
}

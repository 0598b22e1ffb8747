package tlog_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
)

func TestCreateAndLoadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "head.key")
	made, err := tlog.CreateKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	loaded, err := tlog.LoadKeyFile(path)
	if err != nil || !loaded.Equal(made) {
		t.Errorf("loaded another key, or %v", err)
	}
	if _, err := tlog.CreateKeyFile(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created over an existing file: %v", err)
	}
	if again, err := tlog.LoadKeyFile(path); err != nil || !again.Equal(made) {
		t.Errorf("the refused creation changed the file: %v", err)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	dir := t.TempDir()
	good := tlog.MarshalPrivateKey(testKey("k"))
	write := func(name string, b []byte, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, says := range map[string]string{
		filepath.Join(dir, "absent"):             "no such file",
		dir:                                      "not a regular file",
		os.DevNull:                               "not a regular file",
		write("empty", nil, 0o600):               "is empty",
		write("torn", good[:len(good)-9], 0o600): "PEM",
		write("long", bytes.Repeat(good, 100), 0o600):                                 "more than",
		write("version 2", bytes.Replace(good, []byte("/1"), []byte("/2"), 1), 0o600): "tool-guardian/key/1",
		write("group reads", good, 0o640):                                             "chmod 600",
		write("others read", good, 0o604):                                             "chmod 600",
		write("others write", good, 0o602):                                            "chmod 600",
	} {
		if runtime.GOOS == "windows" && says == "chmod 600" {
			continue
		}
		if _, err := tlog.LoadKeyFile(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", filepath.Base(path), err, says)
		}
	}
	if _, err := tlog.LoadKeyFile(write("read only", good, 0o400)); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

func TestParsePrivateKeyRefuses(t *testing.T) {
	good := string(tlog.MarshalPrivateKey(testKey("k")))
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	const header = "tool-guardian/key/1\n"
	for name, s := range map[string]string{
		"empty":           "",
		"header alone":    header,
		"no header":       strings.TrimPrefix(good, header),
		"trailing line":   good + "\n",
		"leading text":    strings.Replace(good, header, header+"x\n", 1),
		"PEM headers":     strings.Replace(good, "KEY-----\n", "KEY-----\nA: b\n\n", 1),
		"carriage return": strings.ReplaceAll(good, "\n", "\r\n"),
		"public key":      strings.ReplaceAll(good, "PRIVATE", "PUBLIC"),
		"EC key":          header + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"no DER":          header + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})),
	} {
		if _, err := tlog.ParsePrivateKey([]byte(s)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if tlog.MarshalPrivateKey(nil) != nil || tlog.MarshalPrivateKey(make([]byte, 64)) != nil {
		t.Error("wrote a key that is none")
	}
}

func TestOpensslReadsKey(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	cmd := exec.Command(openssl, "pkey", "-pubout", "-outform", "DER")
	cmd.Stdin = bytes.NewReader(tlog.MarshalPrivateKey(testKey("k")))
	der, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.ParsePKIXPublicKey(der)
	if err != nil || !testKey("k").Public().(ed25519.PublicKey).Equal(pub.(ed25519.PublicKey)) {
		t.Errorf("openssl reads another key: %v", err)
	}
}

func FuzzPrivateKey(f *testing.F) {
	f.Add(tlog.MarshalPrivateKey(testKey("k")))
	f.Add([]byte("tool-guardian/key/1\n-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := tlog.ParsePrivateKey(b); err == nil {
			sameBytes(t, b, tlog.MarshalPrivateKey(k))
		}
	})
}

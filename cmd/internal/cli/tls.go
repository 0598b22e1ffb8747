package cli

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

func (l listenOptions) scheme() string {
	if l.cert == "" {
		return "http"
	}
	return "https"
}

// tls is nil for plain HTTP.
func (l listenOptions) tls() (*tls.Config, error) {
	if l.cert == "" {
		return nil, nil
	}
	c := &certificate{cert: l.cert, key: l.key}
	if _, err := c.get(nil); err != nil {
		return nil, usagef("--tls-cert, --tls-key: %v", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}, nil
}

// certificate is read again when its file changes, so that a renewal needs no
// restart. While a half-written pair does not fit, the one before serves on.
type certificate struct {
	cert, key string

	mu     sync.Mutex
	loaded *tls.Certificate // guarded by mu
	at     time.Time        // the file's time when it was loaded; guarded by mu
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if err == nil && c.loaded != nil && info.ModTime().Equal(c.at) {
		return c.loaded, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	if err == nil {
		c.loaded, c.at = &pair, info.ModTime()
	}
	if c.loaded != nil {
		return c.loaded, nil
	}
	return nil, err
}

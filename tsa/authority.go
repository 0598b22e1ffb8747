package tsa

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// AuthorityOptions configures the built-in authority.
type AuthorityOptions struct {
	Dir    string           // keys and certificates; created on first use
	Policy string           // dotted OID; empty: DefaultPolicy
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: discards
}

// Authority is the built-in, self-issued authority.
type Authority struct{}

// NewAuthority opens the authority in o.Dir, creating its keys on first use.
func NewAuthority(o AuthorityOptions) (*Authority, error) { return nil, errors.New("not built yet") }

// Stamp issues a token over a SHA-256 digest in process.
func (a *Authority) Stamp(ctx context.Context, digest [32]byte) (Token, error) {
	return Token{}, errors.New("not built yet")
}

// Issue answers a DER request with a DER response; refusals are responses too.
func (a *Authority) Issue(ctx context.Context, request []byte) ([]byte, error) {
	return nil, errors.New("not built yet")
}

// Handler answers POSTed requests.
func (a *Authority) Handler() http.Handler { return http.NotFoundHandler() }

// RootPEM is the root certificate to pin.
func (a *Authority) RootPEM() []byte { return nil }

package tsa

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// Remote is one authority a Client may ask.
type Remote struct {
	Name       string // label, unique among the client's authorities
	URL        string // http or https
	Roots      *x509.CertPool
	ExtraCerts [][]byte // DER, for authorities that embed no certificate
	Policy     string   // asked for; empty: the authority's default
	AllowESSv1 bool
}

// ClientOptions configures a Client.
type ClientOptions struct {
	Authorities []Remote          // asked in this order; at least one
	Transport   http.RoundTripper // nil: http.DefaultTransport
	Timeout     time.Duration     // one exchange, from dialling to the last byte; zero: 10 s
	MaxSkew     time.Duration     // genTime against our clock, both ways; zero: DefaultMaxSkew
	Now         func() time.Time  // nil: time.Now
	Logger      *slog.Logger      // nil: discards
	Report      func(Attempt)     // called for every attempt, if not nil
}

// Attempt is one authority's part in a call.
type Attempt struct {
	Authority string
	Token     Token
	Err       error
	Response  []byte // what the authority sent, kept for diagnosis; nil when nothing usable came
}

// Client asks authorities for tokens.
type Client struct{}

// New copies and validates o.
func New(o ClientOptions) (*Client, error) { return nil, errors.New("not built yet") }

// Stamp returns the first verified token.
func (c *Client) Stamp(ctx context.Context, imprint [32]byte) (Token, error) {
	return Token{}, errors.New("not built yet")
}

// StampAll asks every authority and returns an attempt for each.
func (c *Client) StampAll(ctx context.Context, imprint [32]byte) []Attempt { return nil }

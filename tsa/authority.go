package tsa

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// DefaultPolicy is the policy OID of the built-in authority, below the arc for
// numbers of one's own choosing (X.667): time as this host's clock has it,
// self-issued. The last arc has 31 bits, since readers built on Go's
// encoding/asn1 hold no longer one.
const DefaultPolicy = "2.25.1374928615"

// AuthorityOptions configures the built-in authority.
type AuthorityOptions struct {
	Dir    string           // keys and certificates; created on first use, 0700
	Policy string           // dotted OID; empty: DefaultPolicy
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: discards
}

// Authority is the built-in authority. Its tokens are self-issued: they prove
// nothing to whom the operator must not be believed. It is safe for concurrent
// use.
type Authority struct {
	policy string
	keys   authorityKeys
	roots  *x509.CertPool
	clock  *clockGuard
	logger *slog.Logger
}

// NewAuthority opens the authority in o.Dir. Where the folder is absent or
// empty it makes a root and a signer (EC P-256, without an end of validity). It
// refuses key files that others may read. One process at a time issues from a
// folder: the clock's guard is kept in memory between its writes.
func NewAuthority(o AuthorityOptions) (*Authority, error) {
	if o.Dir == "" {
		return nil, errors.New("timestamp authority: no folder for its keys is given")
	}
	if o.Policy == "" {
		o.Policy = DefaultPolicy
	}
	if _, err := encodeOID(o.Policy); err != nil {
		return nil, fmt.Errorf("timestamp authority: policy %q is not a dotted OID: %w", o.Policy, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	keys, err := openKeys(o.Dir, o.Now())
	if err != nil {
		return nil, fmt.Errorf("timestamp authority: %w", err)
	}
	clock, err := openClock(o.Dir, o.Now)
	if err != nil {
		return nil, fmt.Errorf("timestamp authority: %w", err)
	}
	a := &Authority{policy: o.Policy, keys: keys, clock: clock, logger: o.Logger, roots: x509.NewCertPool()}
	a.roots.AddCert(keys.root)
	return a, nil
}

// RootPEM is the root certificate that a verifier pins, in PEM.
func (a *Authority) RootPEM() []byte { return encodeCert(a.keys.root.Raw) }

// Roots is a pool with the root alone.
func (a *Authority) Roots() *x509.CertPool { return a.roots.Clone() }

// Policy is the dotted OID that its tokens state.
func (a *Authority) Policy() string { return a.policy }

// Stamp issues a token over a SHA-256 digest without HTTP, verified. Its method
// is the one of [Client].
func (a *Authority) Stamp(ctx context.Context, digest [32]byte) (Token, error) {
	if err := ctx.Err(); err != nil {
		return Token{}, err
	}
	_, token, err := a.grant(NewRequest(digest))
	return token, err
}

// Issue answers a DER TimeStampReq with a DER TimeStampResp. Refusals are
// responses too; the error is ctx's alone.
func (a *Authority) Issue(ctx context.Context, request []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := ParseRequest(request)
	if err != nil {
		return a.reject(err), nil
	}
	response, _, err := a.grant(r)
	if err != nil {
		return a.reject(err), nil
	}
	return response, nil
}

// reject says the requester's fault in full and our own in general terms.
func (a *Authority) reject(err error) []byte {
	var refused *RequestRefusal
	if errors.As(err, &refused) {
		return encodeRejection(refused.Failure, refused.Detail)
	}
	a.logger.Error("timestamp not issued", "err", err)
	if errors.Is(err, ErrClockWentBack) {
		return encodeRejection(TimeNotAvailable, "the clock went back")
	}
	return encodeRejection(SystemFailure, "internal failure")
}

// grant states the time once. Nothing leaves that our own verifier refuses.
func (a *Authority) grant(r Request) (response []byte, _ Token, _ error) {
	if r.Policy != "" && r.Policy != a.policy {
		return nil, Token{}, deny(UnacceptedPolicy, "the only policy is %s", a.policy)
	}
	at, err := a.clock.read()
	if err != nil {
		return nil, Token{}, err
	}
	content, err := statement{policy: a.policy, imprint: r.Imprint, serial: newSerial(), at: at, nonce: r.Nonce}.der()
	if err != nil {
		return nil, Token{}, err
	}
	der, err := encodeToken(content, a.keys.signer, a.keys.key, r.CertReq)
	if err != nil {
		return nil, Token{}, err
	}
	response = encodeGranted(der)
	token, err := a.check(response, r, at)
	return response, token, err
}

func (a *Authority) check(response []byte, r Request, at time.Time) (Token, error) {
	_, der, err := ParseResponse(response)
	if err != nil {
		return Token{}, fmt.Errorf("our own answer is refused: %w", err)
	}
	token, err := Verify(der, VerifyOptions{
		Imprint: r.Imprint, Nonce: r.Nonce, Policies: []string{a.policy},
		Roots: a.roots, ExtraCerts: [][]byte{a.keys.signer.Raw}, Now: at,
	})
	if err != nil {
		return Token{}, fmt.Errorf("our own answer is refused: %w", err)
	}
	return token, nil
}

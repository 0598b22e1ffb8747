package tsa

import (
	"bytes"
	"crypto/x509"
	"math/big"
	"slices"
	"strings"
	"time"
)

// Verify judges a TimeStampToken (a ContentInfo, not a response; see
// [ParseResponse] and [SplitToken]) by o. The error is a [*Refusal] with the
// first rule that is broken; the Token that comes with an error is empty. Verify reads no clock but for a zero o.Now, no
// file and no network.
func Verify(token []byte, o VerifyOptions) (Token, error) {
	v := judge(token, o)
	switch {
	case v.chain != nil:
		return Token{}, v.chain
	case v.rest != nil:
		return Token{}, v.rest
	}
	return v.token, nil
}

// Unverified returns what a token states without judging any of it but its
// form. It is for showing, never for deciding.
func Unverified(token []byte) (Token, error) {
	if r := checkDER(token); r != nil {
		return Token{}, r
	}
	sd, r := parseSignedData(token)
	if r != nil {
		return Token{}, r
	}
	info, r := parseTSTInfo(sd.content)
	if r != nil {
		return Token{}, r
	}
	info.DER = token
	return info.Token, nil
}

// verdict keeps the chain's refusal apart: a token that fails by its root alone
// is sound but unanchored.
type verdict struct {
	token Token
	chain *Refusal // the chain is not one to a pinned root
	rest  *Refusal // anything else
}

func judge(token []byte, o VerifyOptions) verdict {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	sd, signer, r := authenticate(token, o)
	if r != nil {
		return verdict{rest: r}
	}
	info, r := parseTSTInfo(sd.content)
	if r != nil {
		return verdict{rest: r}
	}
	info.DER, info.Signer, info.Authority = token, signer, signer.Subject.CommonName
	if r := checkUsage(signer); r != nil {
		return verdict{rest: r}
	}
	at := o.At
	if at.IsZero() {
		at = info.Time
	}
	v := verdict{}
	info.Chain, v.chain = buildChain(signer, sd, o, at)
	if v.rest = checkStatement(info, o); v.rest == nil {
		info.RevocationAsOf, v.rest = checkRevocation(info.Chain, info.Time, o.CRLs, sd.crls)
	}
	info.SignerExpired = expiredSince(info.Chain, o.Now)
	info.SelfIssued = selfIssued(info.Chain)
	v.token = info.Token
	return v
}

// authenticate is steps one to four: form, attributes, signer, signature.
// Cheap checks come first, so that forged bytes cost no more than one public
// key operation.
func authenticate(token []byte, o VerifyOptions) (signedData, *x509.Certificate, *Refusal) {
	if r := checkDER(token); r != nil {
		return signedData{}, nil, r
	}
	sd, r := parseSignedData(token)
	if r != nil {
		return sd, nil, r
	}
	attrs, r := readAttributes(sd.signer.attrs)
	if r != nil {
		return sd, nil, r
	}
	m, r := acceptMethod(sd.signer)
	if r != nil {
		return sd, nil, r
	}
	signer, r := findSigner(sd, attrs.ess, o)
	if r != nil {
		return sd, nil, r
	}
	if r := checkKey(signer, m); r != nil {
		return sd, nil, r
	}
	if !bytes.Equal(digest(m.hash, sd.content), attrs.digest) {
		return sd, nil, refuse(RuleDigest, "message-digest is not the signed content's")
	}
	if !validSignature(signer, m, sd.signer) {
		return sd, nil, refuse(RuleSignature, "the signature does not verify under the named certificate")
	}
	return sd, signer, nil
}

// checkStatement is step six: what the token states against what was asked.
func checkStatement(t tstInfo, o VerifyOptions) *Refusal {
	if len(o.Policies) > 0 && !slices.Contains(o.Policies, t.Policy) {
		return refuse(RulePolicy, "policy %s, allowed is %s", t.Policy, strings.Join(o.Policies, ", "))
	}
	if r := checkImprint(t, o); r != nil {
		return r
	}
	if r := checkNonce(t.Nonce, o.Nonce); r != nil {
		return r
	}
	if t.critical != "" {
		return refuse(RuleExtension, "unknown critical extension %s", t.critical)
	}
	skew := o.MaxSkew
	if skew == 0 {
		skew = DefaultMaxSkew
	}
	if ahead := t.Time.Sub(o.Now); ahead > skew {
		return refuse(RuleClock, "genTime %s is %s ahead of our clock", t.Time.Format(time.RFC3339), ahead.Round(time.Second))
	}
	return nil
}

// checkImprint compares algorithm and sum; the sum's length follows from the
// algorithm, so a truncated sum never matches.
func checkImprint(t tstInfo, o VerifyOptions) *Refusal {
	if !t.Imprint.Hash.Available() {
		return refuse(RuleImprint, "imprint algorithm %s", t.imprint.name())
	}
	want := Imprint{Hash: o.Imprint.Hash, Sum: o.Imprint.Sum}
	switch {
	case o.Data != nil:
		want = Imprint{Hash: t.Imprint.Hash, Sum: digest(t.Imprint.Hash, o.Data)}
	case want.Sum == nil:
		want = SHA256Imprint(o.Digest)
	}
	if len(t.sum) != t.Imprint.Hash.Size() {
		return refuse(RuleImprint, "imprint of %d bytes, %v has %d", len(t.sum), t.Imprint.Hash, t.Imprint.Hash.Size())
	}
	if want.Hash != t.Imprint.Hash {
		return refuse(RuleImprint, "imprint by %v, asked for was %v", t.Imprint.Hash, want.Hash)
	}
	if !bytes.Equal(want.Sum, t.sum) {
		return refuse(RuleImprint, "the token stamps other data: imprint %x, not %x", t.sum, want.Sum)
	}
	return nil
}

func checkNonce(got, want *big.Int) *Refusal {
	switch {
	case want == nil:
		return nil
	case got == nil:
		return refuse(RuleNonce, "the request's nonce is missing")
	case got.Cmp(want) != 0:
		return refuse(RuleNonce, "the nonce is not the request's")
	}
	return nil
}

// SelfIssuedOrganization is the root's organization in certificates of
// [Authority].
const SelfIssuedOrganization = "Self-issued time, no independent evidence"

func selfIssued(chain []*x509.Certificate) bool {
	return len(chain) > 0 && slices.Contains(chain[len(chain)-1].Subject.Organization, SelfIssuedOrganization)
}

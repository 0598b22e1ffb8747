package tsa

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"testing"
	"time"
)

func wantRefusal(t *testing.T, err error, want Rule) {
	t.Helper()
	var refused *Refusal
	if !errors.As(err, &refused) || refused.Rule != want {
		t.Fatalf("err = %v, want a refusal by rule %q", err, want)
	}
}

func TestVerifyStates(t *testing.T) {
	l := newLab(t)
	der := l.issue(l.statement())
	got, err := Verify(der, l.options())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.DER, der) || !got.Time.Equal(labTime) || got.Serial.Int64() != 7 || got.Policy != "1.2.3.4" || got.Nonce.Int64() != 99 {
		t.Errorf("states %v, serial %v, policy %s, nonce %v", got.Time, got.Serial, got.Policy, got.Nonce)
	}
	if at, stated := got.UpperBound(); !stated || !at.Equal(labTime.Add(time.Second)) {
		t.Errorf("upper bound %v (stated %v)", at, stated)
	}
	if !got.SelfIssued || len(got.Chain) != 2 || !got.Signer.Equal(l.signer) {
		t.Errorf("self-issued %v, chain of %d", got.SelfIssued, len(got.Chain))
	}
}

// TestVerifyLeaf changes the signer's certificate, which is otherwise good.
func TestVerifyLeaf(t *testing.T) {
	usage := func(critical bool, oids ...[]byte) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 37}, Critical: critical, Value: sequence(oids...)}}
		}
	}
	stamping := tlv(tagOID, []byte(oidTimeStamping))
	signing := tlv(tagOID, []byte("\x2b\x06\x01\x05\x05\x07\x03\x03"))
	for _, tt := range []struct {
		name string
		edit func(*x509.Certificate)
		want Rule
	}{
		{"usage not critical", usage(false, stamping), RuleUsage},
		{"two usages", usage(true, stamping, signing), RuleUsage},
		{"another usage", usage(true, signing), RuleUsage},
		{"no usage", func(c *x509.Certificate) { c.ExtraExtensions = nil }, RuleUsage},
		{"a CA", func(c *x509.Certificate) {
			c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
		}, RuleUsage},
		{"key usage for more", func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageKeyAgreement }, RuleUsage},
		{"expired at genTime", func(c *x509.Certificate) { c.NotAfter = labTime.Add(-time.Second) }, RuleValidity},
		{"not yet valid", func(c *x509.Certificate) { c.NotBefore = labTime.Add(time.Second) }, RuleValidity},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, tt.edit)
			_, err := Verify(l.issue(l.statement()), l.options())
			wantRefusal(t, err, tt.want)
		})
	}
}

// TestVerifyStatement changes what is stated or asked for.
func TestVerifyStatement(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*statement, *VerifyOptions)
		want Rule
	}{
		{"other data", func(_ *statement, o *VerifyOptions) { o.Digest[0]++ }, RuleImprint},
		{"other data given whole", func(_ *statement, o *VerifyOptions) { o.Data = []byte{} }, RuleImprint},
		{"other algorithm asked", func(_ *statement, o *VerifyOptions) { o.Imprint = Imprint{Hash: 7, Sum: make([]byte, 64)} }, RuleImprint},
		{"other nonce", func(_ *statement, o *VerifyOptions) { o.Nonce = big.NewInt(98) }, RuleNonce},
		{"no nonce", func(s *statement, _ *VerifyOptions) { s.nonce = nil }, RuleNonce},
		{"other policy", func(s *statement, _ *VerifyOptions) { s.policy = "1.2.3.5" }, RulePolicy},
		{"future", func(_ *statement, o *VerifyOptions) { o.Now = labTime.Add(-DefaultMaxSkew - time.Second) }, RuleClock},
		{"serial of 161 bits", func(s *statement, _ *VerifyOptions) { s.serial = new(big.Int).Lsh(big.NewInt(1), 160) }, RuleTSTInfo},
		{"no roots", func(_ *statement, o *VerifyOptions) { o.Roots = nil }, RuleRoot},
		{"judged before the certificates", func(_ *statement, o *VerifyOptions) { o.At = labTime.AddDate(-1, 0, 0) }, RuleValidity},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			s, o := l.statement(), l.options()
			tt.edit(&s, &o)
			_, err := Verify(l.issue(s), o)
			wantRefusal(t, err, tt.want)
		})
	}
}

func TestVerifyExpiredSince(t *testing.T) {
	l := newLab(t, func(c *x509.Certificate) { c.NotAfter = labTime.Add(time.Hour) })
	o := l.options()
	o.Now = labTime.AddDate(5, 0, 0)
	got, err := Verify(l.issue(l.statement()), o)
	if err != nil || !got.SignerExpired {
		t.Fatalf("err = %v, expired since = %v; want valid at genTime and said to be expired", err, got.SignerExpired)
	}
	o.At = o.Now
	_, err = Verify(l.issue(l.statement()), o)
	wantRefusal(t, err, RuleValidity)
}

// TestVerifyUnembedded: the certificate may come from outside, but only as what
// the signed hash names.
func TestVerifyUnembedded(t *testing.T) {
	l := newLab(t)
	content, err := l.statement().der()
	if err != nil {
		t.Fatal(err)
	}
	der, err := encodeToken(content, l.signer, l.key, false)
	if err != nil {
		t.Fatal(err)
	}
	o := l.options()
	_, err = Verify(der, o)
	wantRefusal(t, err, RuleESS)
	o.ExtraCerts = [][]byte{{0x30, 0x00}, l.root.Raw, l.signer.Raw}
	if _, err := Verify(der, o); err != nil {
		t.Fatal(err)
	}
	twin := l.certify(signerTemplate(labTime), l.root, l.key, l.rootKey)
	o.ExtraCerts = [][]byte{twin.Raw}
	_, err = Verify(der, o)
	wantRefusal(t, err, RuleESS)
}

// TestVerifyExtraNeverTrusted: a self-made root handed in beside the token, or
// inside it, anchors nothing.
func TestVerifyExtraNeverTrusted(t *testing.T) {
	l, other := newLab(t), newLab(t)
	o := l.options()
	o.Roots = other.options().Roots
	o.ExtraCerts = [][]byte{l.root.Raw, l.signer.Raw}
	_, err := Verify(l.issue(l.statement()), o)
	wantRefusal(t, err, RuleRoot)
}

func TestRevocation(t *testing.T) {
	before, after := labTime.Add(-time.Minute), labTime.Add(time.Minute)
	for _, tt := range []struct {
		name   string
		at     time.Time
		reason int
		want   Rule
	}{
		{"superseded later", after, 4, ""},
		{"unspecified later", after, 0, ""},
		{"ceased later", after, 5, ""},
		{"affiliation later", after, 3, ""},
		{"superseded before", before, 4, RuleRevoked},
		{"superseded at that second", labTime, 4, RuleRevoked},
		{"key compromise later", after, 1, RuleRevoked},
		{"CA compromise later", after, 2, RuleRevoked},
		{"hold later", after, 6, RuleRevoked},
		{"privilege withdrawn later", after, 9, RuleRevoked},
		{"no reason later", after, -1, RuleRevoked},
		{"no reason before", before, -1, RuleRevoked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			o := l.options()
			o.CRLs = [][]byte{l.revoke(l.signer, tt.at, tt.reason)}
			got, err := Verify(l.issue(l.statement()), o)
			if tt.want != "" {
				wantRefusal(t, err, tt.want)
				return
			}
			if err != nil || !got.RevocationAsOf.Equal(labTime) {
				t.Fatalf("err = %v, as of %v", err, got.RevocationAsOf)
			}
		})
	}
}

// TestRevocationForeign: lists that the issuer did not sign change nothing.
func TestRevocationForeign(t *testing.T) {
	l, forger := newLab(t), newLab(t)
	o := l.options()
	o.CRLs = [][]byte{
		forger.revoke(l.signer, labTime, 1), // same issuer name, another key
		l.revoke(l.root, labTime, 1),        // another certificate
		{0x30, 0x00}, nil, []byte("no list"),
	}
	o.CRLs = append(o.CRLs, bytes.Clone(o.CRLs[1]))
	o.CRLs[5][len(o.CRLs[5])-1] ^= 1 // broken signature
	if _, err := Verify(l.issue(l.statement()), o); err != nil {
		t.Fatal(err)
	}
	o.CRLs = append(o.CRLs, l.revoke(l.signer, labTime, 1))
	_, err := Verify(l.issue(l.statement()), o)
	wantRefusal(t, err, RuleRevoked)
}

// TestRevocationEmbedded: a list in the token's own crls field, beside an OCSP
// response, is judged like one kept beside the token.
func TestRevocationEmbedded(t *testing.T) {
	l := newLab(t)
	ocsp := tlv(tagContext1, tlv(tagOID, []byte("\x2b\x06\x01\x05\x05\x07\x10\x02")), sequence())
	later := l.revoke(l.signer, labTime.Add(time.Hour), 4)
	got, err := Verify(embed(t, l.issue(l.statement()), later, ocsp), l.options())
	if err != nil || got.RevocationAsOf.IsZero() {
		t.Fatalf("err = %v, as of %v", err, got.RevocationAsOf)
	}
	_, err = Verify(embed(t, l.issue(l.statement()), ocsp, l.revoke(l.signer, labTime, 1)), l.options())
	wantRefusal(t, err, RuleRevoked)
}

// embed puts revocation data before the SignerInfos.
func embed(t *testing.T, token []byte, data ...[]byte) []byte {
	t.Helper()
	c, ok := openContentInfo(token)
	if !ok {
		t.Fatal("no SignedData")
	}
	var parts [][]byte
	for !c.done() {
		if c.peek(tagSet) && len(parts) > 2 {
			parts = append(parts, tlv(tagContext1, data...))
		}
		e, ok := c.next()
		if !ok {
			t.Fatal("SignedData ends early")
		}
		parts = append(parts, e.full)
	}
	return sequence(tlv(tagOID, []byte(oidSignedData)), tlv(tagContext0, sequence(parts...)))
}

// TestVerifyContent signs TSTInfo that is not of RFC 3161's form.
func TestVerifyContent(t *testing.T) {
	l := newLab(t)
	good, err := l.statement().der()
	if err != nil {
		t.Fatal(err)
	}
	inside := func() *cursor {
		c := cursor{rest: good}
		e, _ := c.only(tagSequence)
		return e.inside()
	}
	extension := func(critical ...[]byte) []byte {
		parts := append([][]byte{tlv(tagOID, []byte{0x2a, 3, 4})}, critical...)
		return tlv(tagContext1, sequence(append(parts, tlv(tagOctetString))...))
	}
	isTrue := tlv(tagBoolean, []byte{0xff})
	for _, tt := range []struct {
		name    string
		content []byte
		want    Rule
	}{
		{"as it is", good, ""},
		{"unknown extension", sequence(inside().rest, extension()), ""},
		{"unknown critical extension", sequence(inside().rest, extension(isTrue)), RuleExtension},
		{"extension twice critical", sequence(inside().rest, extension(isTrue, isTrue)), RuleTSTInfo},
		{"a field too many", sequence(inside().rest, encodeSmall(1)), RuleTSTInfo},
		{"bytes behind", append(bytes.Clone(good), 5, 0), RuleTSTInfo},
		{"a set", append([]byte{tagSet}, good[1:]...), RuleTSTInfo},
		{"empty", nil, RuleTSTInfo},
		{"empty sequence", sequence(), RuleTSTInfo},
		{"version 2", sequence(encodeSmall(2), inside().rest[3:]), RuleTSTInfo},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Verify(l.sign(tt.content), l.options())
			if tt.want != "" {
				wantRefusal(t, err, tt.want)
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}

package tsa

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha1" // certificate hashes of ESSCertID v1
	_ "crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
)

// RSA sizes in bits. The upper bound keeps hostile certificates cheap.
const (
	minRSA = 2048
	maxRSA = 8192
)

// scheme is how a signature is checked.
type scheme int

const (
	schemePKCS1 scheme = iota + 1
	schemePSS
	schemeECDSA
	schemeEd25519
)

// method is the accepted signature method of a SignerInfo.
type method struct {
	scheme scheme
	hash   crypto.Hash
}

// acceptMethod requires SHA-2 for both digest and signature, the same for both
// (RFC 5652 section 5.4 hashes the attributes with the digest algorithm).
func acceptMethod(s signerInfo) (method, *Refusal) {
	h, ok := sha2(s.digest)
	if !ok {
		return method{}, refuse(RuleAlgorithm, "message digest %s", s.digest.name())
	}
	m := method{hash: h}
	switch {
	case s.method.oid == oidRSA && s.method.plain(),
		s.method.oid == rsaOID(h) && s.method.plain():
		m.scheme = schemePKCS1
	case s.method.oid == oidRSAPSS && regularPSS(s.method.params, h):
		m.scheme = schemePSS
	case s.method.oid == ecdsaOID(h) && s.method.absent:
		m.scheme = schemeECDSA
	case s.method.oid == oidEd25519 && s.method.absent && h == crypto.SHA512: // RFC 8419 section 3.1
		m.scheme = schemeEd25519
	default:
		return m, refuse(RuleAlgorithm, "signature algorithm %s with digest %v", s.method.name(), h)
	}
	return m, nil
}

func rsaOID(h crypto.Hash) string {
	switch h {
	case crypto.SHA256:
		return oidRSAWithSHA256
	case crypto.SHA384:
		return oidRSAWithSHA384
	}
	return oidRSAWithSHA512
}

func ecdsaOID(h crypto.Hash) string {
	switch h {
	case crypto.SHA256:
		return oidECWithSHA256
	case crypto.SHA384:
		return oidECWithSHA384
	}
	return oidECWithSHA512
}

// regularPSS accepts one form of RSASSA-PSS-params (RFC 4055 section 3.1): h
// everywhere, MGF1, a salt as long as the hash, no other trailer.
func regularPSS(params element, h crypto.Hash) bool {
	if params.tag != tagSequence {
		return false
	}
	c := params.inside()
	digest, okDigest := taggedAlgorithm(c, 0xa0)
	mgf, okMGF := taggedAlgorithm(c, 0xa1)
	salt, okSalt := c.take(0xa2)
	if !okDigest || !okMGF || !okSalt || !c.done() {
		return false
	}
	if got, ok := sha2(digest); !ok || got != h || mgf.oid != oidMGF1 || mgf.absent || mgf.params.tag != tagSequence {
		return false
	}
	inner, ok := readAlgorithm(mgf.params.inside())
	if !ok {
		return false
	}
	if got, ok := sha2(inner); !ok || got != h {
		return false
	}
	n, ok := salt.inside().only(tagInteger)
	length, small := small(n.body)
	return ok && small && length == int64(h.Size())
}

func taggedAlgorithm(c *cursor, tag byte) (algorithm, bool) {
	e, ok := c.take(tag)
	if !ok {
		return algorithm{}, false
	}
	id, ok := e.inside().only(tagSequence)
	if !ok {
		return algorithm{}, false
	}
	return readAlgorithm(id.inside())
}

// checkKey requires a key of the method's kind and of sufficient size.
func checkKey(cert *x509.Certificate, m method) *Refusal {
	switch key := cert.PublicKey.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
			return refuse(RuleKey, "RSA key of %d bits, accepted are %d to %d", bits, minRSA, maxRSA)
		}
		return kind(m.scheme == schemePKCS1 || m.scheme == schemePSS)
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return kind(m.scheme == schemeECDSA)
		}
		return refuse(RuleKey, "curve %s, accepted are P-256, P-384 and P-521", key.Curve.Params().Name)
	case ed25519.PublicKey:
		return kind(m.scheme == schemeEd25519 && len(key) == ed25519.PublicKeySize)
	}
	return refuse(RuleUnsupported, "a signer key of a kind that cannot be read")
}

func kind(fits bool) *Refusal {
	if fits {
		return nil
	}
	return refuse(RuleAlgorithm, "the signature algorithm does not fit the signer's key")
}

// validSignature checks the signature over the signed attributes, which are
// hashed as an explicit SET OF (RFC 5652 section 5.4).
func validSignature(cert *x509.Certificate, m method, s signerInfo) bool {
	signed := append([]byte{tagSet}, s.attrs.full[1:]...)
	if m.scheme == schemeEd25519 {
		return ed25519.Verify(cert.PublicKey.(ed25519.PublicKey), signed, s.signature)
	}
	sum := digest(m.hash, signed)
	switch m.scheme {
	case schemePKCS1:
		return rsa.VerifyPKCS1v15(cert.PublicKey.(*rsa.PublicKey), m.hash, sum, s.signature) == nil
	case schemePSS:
		o := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: m.hash}
		return rsa.VerifyPSS(cert.PublicKey.(*rsa.PublicKey), m.hash, sum, s.signature, o) == nil
	case schemeECDSA:
		return ecdsa.VerifyASN1(cert.PublicKey.(*ecdsa.PublicKey), sum, s.signature)
	}
	return false
}

func digest(h crypto.Hash, data []byte) []byte {
	d := h.New()
	d.Write(data)
	return d.Sum(nil)
}

package tsa

import (
	"bytes"
	"crypto"
	"crypto/x509"
)

// oidExtKeyUsage is 2.5.29.37 and its only accepted value 1.3.6.1.5.5.7.3.8.
const (
	oidExtKeyUsage  = "2.5.29.37"
	oidTimeStamping = "\x2b\x06\x01\x05\x05\x07\x03\x08"
)

// findSigner looks up the certificate that the signed ESS hash names, among the
// embedded and the extra ones, then compares it with everything else that
// names it. A substituted certificate is therefore never found.
func findSigner(sd signedData, ess certID, o VerifyOptions) (*x509.Certificate, *Refusal) {
	if ess.hash == crypto.SHA1 && !o.AllowESSv1 {
		return nil, refuse(RuleESS, "only ESSCertID v1 (SHA-1) names the signer, which is not allowed for this authority")
	}
	der := findBySum(ess, sd.certs, o.ExtraCerts)
	if der == nil {
		return nil, refuse(RuleESS, "no certificate at hand has the hash that the signer signed")
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, refuse(RuleUnsupported, "the signer's certificate cannot be read: %s", shown([]byte(err.Error())))
	}
	return cert, matchSigner(cert, sd.signer, ess)
}

func findBySum(ess certID, sets ...[][]byte) []byte {
	for _, set := range sets {
		for _, der := range set {
			if bytes.Equal(digest(ess.hash, der), ess.sum) {
				return der
			}
		}
	}
	return nil
}

// matchSigner compares the found certificate with the SignerIdentifier and with
// the rest of the ESS entry.
func matchSigner(cert *x509.Certificate, s signerInfo, ess certID) *Refusal {
	serial := serialBody(cert)
	switch {
	case s.keyID != nil && !bytes.Equal(s.keyID, cert.SubjectKeyId):
		return refuse(RuleSigner, "the signer's key identifier is another certificate's")
	case s.keyID == nil && !(bytes.Equal(s.issuer, cert.RawIssuer) && bytes.Equal(s.serial, serial)):
		return refuse(RuleSigner, "the signer's issuer and serial number are another certificate's")
	case ess.serial != nil && !(bytes.Equal(ess.issuer, cert.RawIssuer) && bytes.Equal(ess.serial, serial)):
		return refuse(RuleESS, "issuer and serial number in ESSCertID are another certificate's")
	case ess.v1 != nil && !bytes.Equal(ess.v1, digest(crypto.SHA1, cert.Raw)):
		return refuse(RuleESS, "ESSCertID v1 and v2 name different certificates")
	}
	return nil
}

// serialBody is the INTEGER body of the certificate's serial number.
func serialBody(cert *x509.Certificate) []byte {
	tbs := cursor{rest: cert.RawTBSCertificate}
	outer, _ := tbs.take(tagSequence)
	c := outer.inside()
	c.option(tagContext0)
	serial, _ := c.take(tagInteger)
	return serial.body
}

// checkUsage requires a leaf for timestamping alone: one extended key usage,
// critical (RFC 3161 section 2.3), not a CA, and key usage for signing only.
func checkUsage(cert *x509.Certificate) *Refusal {
	if cert.IsCA {
		return refuse(RuleUsage, "the signer's certificate is a CA's")
	}
	if !onlyTimeStamping(cert) {
		return refuse(RuleUsage, "the signer's extended key usage is not exactly timeStamping, critical")
	}
	const signing = x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment
	if cert.KeyUsage != 0 && (cert.KeyUsage&signing == 0 || cert.KeyUsage&^signing != 0) {
		return refuse(RuleUsage, "the signer's key usage is not for signatures alone")
	}
	return nil
}

func onlyTimeStamping(cert *x509.Certificate) bool {
	for _, e := range cert.Extensions {
		if e.Id.String() != oidExtKeyUsage {
			continue
		}
		value := cursor{rest: e.Value}
		list, ok := value.only(tagSequence)
		if !ok {
			return false
		}
		oid, ok := list.inside().only(tagOID)
		return ok && e.Critical && string(oid.body) == oidTimeStamping
	}
	return false
}

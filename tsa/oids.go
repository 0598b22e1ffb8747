package tsa

import "crypto"

// OBJECT IDENTIFIER bodies, compared as encoded.
const (
	oidSignedData = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"         // 1.2.840.113549.1.7.2
	oidTSTInfo    = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04" // 1.2.840.113549.1.9.16.1.4

	oidContentType   = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03"         // 1.2.840.113549.1.9.3
	oidMessageDigest = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04"         // 1.2.840.113549.1.9.4
	oidESSCertID     = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x02\x0c" // 1.2.840.113549.1.9.16.2.12
	oidESSCertIDv2   = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x02\x2f" // 1.2.840.113549.1.9.16.2.47

	oidSHA1   = "\x2b\x0e\x03\x02\x1a"
	oidMD5    = "\x2a\x86\x48\x86\xf7\x0d\x02\x05"
	oidSHA256 = "\x60\x86\x48\x01\x65\x03\x04\x02\x01"
	oidSHA384 = "\x60\x86\x48\x01\x65\x03\x04\x02\x02"
	oidSHA512 = "\x60\x86\x48\x01\x65\x03\x04\x02\x03"

	oidRSA           = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"
	oidMGF1          = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x08"
	oidRSAPSS        = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a"
	oidRSAWithSHA256 = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"
	oidRSAWithSHA384 = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c"
	oidRSAWithSHA512 = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d"
	oidECWithSHA256  = "\x2a\x86\x48\xce\x3d\x04\x03\x02"
	oidECWithSHA384  = "\x2a\x86\x48\xce\x3d\x04\x03\x03"
	oidECWithSHA512  = "\x2a\x86\x48\xce\x3d\x04\x03\x04"
	oidEd25519       = "\x2b\x65\x70"
)

// sha2 returns the accepted digest algorithm of an AlgorithmIdentifier: SHA-2
// of 256 bits and more, nothing else.
func sha2(a algorithm) (crypto.Hash, bool) {
	if !a.plain() {
		return 0, false
	}
	switch a.oid {
	case oidSHA256:
		return crypto.SHA256, true
	case oidSHA384:
		return crypto.SHA384, true
	case oidSHA512:
		return crypto.SHA512, true
	}
	return 0, false
}

// hashOID is the inverse of sha2.
func hashOID(h crypto.Hash) (string, bool) {
	switch h {
	case crypto.SHA256:
		return oidSHA256, true
	case crypto.SHA384:
		return oidSHA384, true
	case crypto.SHA512:
		return oidSHA512, true
	}
	return "", false
}

// name is for people: the usual name of a digest, or the dotted OID.
func (a algorithm) name() string {
	switch a.oid {
	case oidSHA1:
		return "SHA-1"
	case oidMD5:
		return "MD5"
	}
	if text, ok := dotted([]byte(a.oid)); ok {
		return text
	}
	return "an unreadable algorithm"
}

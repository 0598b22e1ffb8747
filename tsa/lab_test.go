package tsa

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"testing"
	"time"
)

// labTime is when everything in the lab happens.
var labTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// lab is a root with one signer, made new for each test.
type lab struct {
	t       testing.TB
	root    *x509.Certificate
	rootKey *ecdsa.PrivateKey
	signer  *x509.Certificate
	key     *ecdsa.PrivateKey
}

func newLab(t testing.TB, edit ...func(*x509.Certificate)) *lab {
	t.Helper()
	l := &lab{t: t, rootKey: labKey(t), key: labKey(t)}
	l.root = l.certify(rootTemplate(labTime), rootTemplate(labTime), l.rootKey, l.rootKey)
	leaf := signerTemplate(labTime)
	for _, e := range edit {
		e(leaf)
	}
	l.signer = l.certify(leaf, l.root, l.key, l.rootKey)
	return l
}

func labKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (l *lab) certify(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	l.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		l.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		l.t.Fatal(err)
	}
	return cert
}

var labDigest = [32]byte{1, 2, 3}

func (l *lab) statement() statement {
	return statement{policy: "1.2.3.4", imprint: SHA256Imprint(labDigest), serial: big.NewInt(7), at: labTime, nonce: big.NewInt(99)}
}

// issue signs what s says.
func (l *lab) issue(s statement) []byte {
	l.t.Helper()
	content, err := s.der()
	if err != nil {
		l.t.Fatal(err)
	}
	return l.sign(content)
}

// sign signs any content as TSTInfo.
func (l *lab) sign(content []byte) []byte {
	l.t.Helper()
	token, err := encodeToken(content, l.signer, l.key, true)
	if err != nil {
		l.t.Fatal(err)
	}
	return token
}

// options accept what issue(statement()) gives.
func (l *lab) options() VerifyOptions {
	roots := x509.NewCertPool()
	roots.AddCert(l.root)
	return VerifyOptions{Digest: labDigest, Roots: roots, Nonce: big.NewInt(99), Policies: []string{"1.2.3.4"}, Now: labTime}
}

// revoke makes the root's list with one entry for cert. A negative reason
// leaves the reason code out. The list is encoded here because
// x509.CreateRevocationList cannot state reason 0.
func (l *lab) revoke(cert *x509.Certificate, at time.Time, reason int) []byte {
	l.t.Helper()
	entry := [][]byte{encodeInteger(cert.SerialNumber), labUTC(at)}
	if reason >= 0 {
		code := tlv(tagOctetString, tlv(0x0a, []byte{byte(reason)}))
		entry = append(entry, sequence(sequence(tlv(tagOID, []byte("\x55\x1d\x15")), code)))
	}
	method := sequence(tlv(tagOID, []byte(oidECWithSHA256)))
	tbs := sequence(encodeSmall(1), method, l.root.RawSubject,
		labUTC(labTime), labUTC(labTime.Add(time.Hour)), sequence(sequence(entry...)))
	signature, err := ecdsa.SignASN1(rand.Reader, l.rootKey, digest(crypto.SHA256, tbs))
	if err != nil {
		l.t.Fatal(err)
	}
	return sequence(tbs, method, tlv(tagBitString, append([]byte{0}, signature...)))
}

func labUTC(at time.Time) []byte { return tlv(0x17, []byte(at.Format("060102150405Z"))) }

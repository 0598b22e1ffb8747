package tsa

import (
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"slices"
	"time"
)

// maxIntermediates bounds the certificates that chain building may try, and so
// its cost.
const maxIntermediates = 16

// buildChain finds a chain from the signer to a pinned root that was valid at
// the given time. Embedded and extra certificates are only stepping stones;
// those that cannot be read are skipped.
func buildChain(signer *x509.Certificate, sd signedData, o VerifyOptions, at time.Time) ([]*x509.Certificate, *Refusal) {
	roots := o.Roots
	if roots == nil {
		roots = x509.NewCertPool() // a nil pool would mean the system's roots
	}
	pool, unreadable := intermediates(signer, sd.certs, o.ExtraCerts)
	chains, err := signer.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: pool,
		CurrentTime:   at,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping},
	})
	if err != nil {
		return nil, chainRefusal(err, unreadable, at)
	}
	return slices.MinFunc(chains, func(a, b []*x509.Certificate) int { return len(a) - len(b) }), nil
}

func intermediates(signer *x509.Certificate, sets ...[][]byte) (pool *x509.CertPool, unreadable int) {
	pool = x509.NewCertPool()
	room := maxIntermediates
	for _, set := range sets {
		for _, der := range set {
			cert, err := x509.ParseCertificate(der)
			switch {
			case err != nil:
				unreadable++
			case room > 0 && !cert.Equal(signer) && !oversized(cert):
				pool.AddCert(cert)
				room--
			}
		}
	}
	return pool, unreadable
}

func oversized(cert *x509.Certificate) bool {
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	return ok && key.N.BitLen() > maxRSA
}

// chainRefusal turns what chain building says into a rule. With an unreadable
// certificate in the set the missing link may be that one: unsupported, not
// unknown.
func chainRefusal(err error, unreadable int, at time.Time) *Refusal {
	var invalid x509.CertificateInvalidError
	if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return refuse(RuleValidity, "%s was not valid at %s", shown([]byte(invalid.Cert.Subject.String())), at.Format(time.RFC3339))
	}
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) && unreadable > 0 {
		return refuse(RuleUnsupported, "no chain to a pinned root, and %d certificates of the set cannot be read", unreadable)
	}
	return refuse(RuleRoot, "no chain to a pinned root: %s", shown([]byte(err.Error())))
}

// expiredSince reports whether a certificate of the chain has expired by now.
func expiredSince(chain []*x509.Certificate, now time.Time) bool {
	return slices.ContainsFunc(chain, func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
}

package tsa

import (
	"bytes"
	"crypto/x509"
	"time"
)

// maxLists bounds the revocation lists that are looked at, embedded ones last.
const maxLists = 32

// checkRevocation judges every certificate of the chain by the lists at hand.
// A list counts only when the certificate's own issuer signed it; others are
// skipped, so that a forged or foreign list neither ends a token nor saves it.
// It returns the thisUpdate of the newest list that speaks for the signer.
func checkRevocation(chain []*x509.Certificate, genTime time.Time, sets ...[][]byte) (asOf time.Time, _ *Refusal) {
	for _, list := range readLists(sets) {
		for i := range len(chain) - 1 {
			if !speaksFor(list, chain[i+1]) {
				continue
			}
			if r := judgeList(list, chain[i], genTime); r != nil {
				return time.Time{}, r
			}
			if i == 0 && list.ThisUpdate.After(asOf) {
				asOf = list.ThisUpdate
			}
		}
	}
	return asOf, nil
}

func readLists(sets [][][]byte) (lists []*x509.RevocationList) {
	for _, set := range sets {
		for _, der := range set {
			if len(lists) == maxLists {
				return lists
			}
			if list, err := x509.ParseRevocationList(der); err == nil && !partial(list) {
				lists = append(lists, list)
			}
		}
	}
	return lists
}

// partial reports a delta or otherwise special list: an unknown critical
// extension changes what its entries mean (RFC 5280 section 5.2). The issuing
// distribution point (2.5.29.28) is critical on ordinary lists too and only
// narrows what is absent.
func partial(list *x509.RevocationList) bool {
	for _, e := range list.Extensions {
		if e.Critical && e.Id.String() != "2.5.29.28" {
			return true
		}
	}
	return false
}

func speaksFor(list *x509.RevocationList, issuer *x509.Certificate) bool {
	return bytes.Equal(list.RawIssuer, issuer.RawSubject) && list.CheckSignatureFrom(issuer) == nil
}

// judgeList applies RFC 3161 section 4: with one of the reasons unspecified,
// affiliationChanged, superseded or cessationOfOperation stated, tokens from
// before the revocation stay valid; any other reason, and none at all, ends
// every token.
func judgeList(list *x509.RevocationList, cert *x509.Certificate, genTime time.Time) *Refusal {
	for _, e := range list.RevokedCertificateEntries {
		if e.SerialNumber == nil || e.SerialNumber.Cmp(cert.SerialNumber) != 0 {
			continue
		}
		if !statesReason(e) {
			return refuse(RuleRevoked, "a certificate of the chain was revoked at %s without a reason, which ends every token", e.RevocationTime.Format(time.RFC3339))
		}
		switch e.ReasonCode {
		case 0, 3, 4, 5:
			if genTime.Before(e.RevocationTime) {
				continue
			}
			return refuse(RuleRevoked, "a certificate of the chain was revoked at %s, not after genTime", e.RevocationTime.Format(time.RFC3339))
		}
		return refuse(RuleRevoked, "a certificate of the chain was revoked for reason %d, which ends every token", e.ReasonCode)
	}
	return nil
}

// statesReason tells an absent reasonCode (2.5.29.21) from a stated 0.
func statesReason(e x509.RevocationListEntry) bool {
	for _, x := range e.Extensions {
		if x.Id.String() == "2.5.29.21" {
			return true
		}
	}
	return false
}

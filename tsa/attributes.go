package tsa

import (
	"bytes"
	"crypto"
)

// maxAttributes bounds the signed attributes; real tokens have four to seven.
const maxAttributes = 32

// attribute is one signed attribute.
type attribute struct {
	oid    string
	values element // the SET OF values
}

// signedAttributes are what the signature covers (RFC 5652 section 5.4).
type signedAttributes struct {
	digest []byte // message-digest
	ess    certID
}

// certID is the first entry of ESSCertID (RFC 2634) or ESSCertIDv2 (RFC 5816).
// Only the first entry identifies the signer.
type certID struct {
	hash           crypto.Hash // SHA1 for v1
	sum            []byte
	issuer, serial []byte // DER of the issuer Name, INTEGER body; nil when absent
	v1             []byte // the v1 sum where v1 and v2 are both present
}

// readAttributes checks form and order, then reads the attributes that RFC 3161
// requires.
func readAttributes(e element) (signedAttributes, *Refusal) {
	list, r := listAttributes(e)
	if r != nil {
		return signedAttributes{}, r
	}
	contentType, ok := single(list, oidContentType, tagOID)
	if !ok || string(contentType.body) != oidTSTInfo {
		return signedAttributes{}, refuse(RuleAttributes, "content-type is not one TSTInfo")
	}
	digest, ok := single(list, oidMessageDigest, tagOctetString)
	if !ok {
		return signedAttributes{}, refuse(RuleAttributes, "not one message-digest")
	}
	id, r := readESS(list)
	return signedAttributes{digest: digest.body, ess: id}, r
}

// listAttributes requires the order of a DER SET OF and no attribute twice.
func listAttributes(e element) ([]attribute, *Refusal) {
	var list []attribute
	var last []byte
	c := e.inside()
	for !c.done() {
		a, ok := c.take(tagSequence)
		if !ok || len(list) == maxAttributes {
			return nil, refuse(RuleAttributes, "unreadable signed attribute, or more than %d", maxAttributes)
		}
		if bytes.Compare(last, a.full) >= 0 {
			return nil, refuse(RuleAttributes, "signed attributes not in DER order")
		}
		last = a.full
		in := a.inside()
		oid, okOID := in.take(tagOID)
		values, okSet := in.only(tagSet)
		if !okOID || !okSet {
			return nil, refuse(RuleAttributes, "unreadable signed attribute")
		}
		if _, twice := find(list, string(oid.body)); twice {
			return nil, refuse(RuleAttributes, "a signed attribute is repeated")
		}
		list = append(list, attribute{oid: string(oid.body), values: values})
	}
	return list, nil
}

func find(list []attribute, oid string) (attribute, bool) {
	for _, a := range list {
		if a.oid == oid {
			return a, true
		}
	}
	return attribute{}, false
}

// single returns the only value of an attribute.
func single(list []attribute, oid string, tag byte) (element, bool) {
	a, ok := find(list, oid)
	if !ok {
		return element{}, false
	}
	return a.values.inside().only(tag)
}

// readESS prefers v2 and keeps the v1 sum so that the two can be compared.
func readESS(list []attribute) (certID, *Refusal) {
	_, hasV1 := find(list, oidESSCertID)
	_, hasV2 := find(list, oidESSCertIDv2)
	var v1, v2 certID
	okV1, okV2 := true, true
	if hasV1 {
		v1, okV1 = firstCertID(list, oidESSCertID)
	}
	if hasV2 {
		v2, okV2 = firstCertID(list, oidESSCertIDv2)
	}
	switch {
	case !hasV1 && !hasV2:
		return certID{}, refuse(RuleAttributes, "no ESSCertID names the signer")
	case !okV1 || !okV2:
		return certID{}, refuse(RuleESS, "unreadable ESSCertID, or its digest is not SHA-2")
	case hasV2:
		v2.v1 = v1.sum
		return v2, nil
	}
	return v1, nil
}

// firstCertID reads SigningCertificate or SigningCertificateV2.
func firstCertID(list []attribute, oid string) (certID, bool) {
	value, ok := single(list, oid, tagSequence)
	if !ok {
		return certID{}, false
	}
	c := value.inside()
	ids, ok := c.take(tagSequence)
	if !ok {
		return certID{}, false
	}
	if c.option(tagSequence); !c.done() {
		return certID{}, false
	}
	first, ok := ids.inside().take(tagSequence)
	if !ok {
		return certID{}, false
	}
	id := certID{hash: crypto.SHA1}
	in := first.inside()
	if oid == oidESSCertIDv2 {
		if id.hash, ok = essHash(in); !ok {
			return certID{}, false
		}
	}
	return id, id.readSum(in)
}

// essHash reads the optional hash algorithm of ESSCertIDv2, SHA-256 by default.
func essHash(c *cursor) (crypto.Hash, bool) {
	if !c.peek(tagSequence) {
		return crypto.SHA256, true
	}
	e, ok := c.take(tagSequence)
	if !ok {
		return 0, false
	}
	a, ok := readAlgorithm(e.inside())
	if !ok {
		return 0, false
	}
	return sha2(a)
}

// readSum reads the certificate hash and the optional IssuerSerial.
func (id *certID) readSum(c *cursor) bool {
	sum, ok := c.take(tagOctetString)
	if !ok || len(sum.body) != id.hash.Size() {
		return false
	}
	id.sum = sum.body
	if c.done() {
		return true
	}
	e, ok := c.only(tagSequence)
	if !ok {
		return false
	}
	in := e.inside()
	names, okNames := in.take(tagSequence)
	serial, okSerial := in.only(tagInteger)
	name, okName := names.inside().only(tagContext4)
	id.issuer, id.serial = name.body, serial.body
	return okNames && okSerial && okName
}

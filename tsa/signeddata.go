package tsa

// signedData is a TimeStampToken taken apart (RFC 5652 section 5.1). All slices
// point into the token.
type signedData struct {
	content []byte   // DER of TSTInfo
	certs   [][]byte // embedded X.509 certificates, unverified
	crls    [][]byte // embedded X.509 revocation lists, unverified
	signer  signerInfo
}

// signerInfo is RFC 5652 section 5.3.
type signerInfo struct {
	issuer, serial []byte // DER of the issuer Name, INTEGER body; nil with keyID
	keyID          []byte
	digest         algorithm
	attrs          element // signed attributes, tagged [0]
	method         algorithm
	signature      []byte
}

// parseSignedData takes apart bytes that passed checkDER.
func parseSignedData(token []byte) (signedData, *Refusal) {
	var sd signedData
	c, ok := openContentInfo(token)
	if !ok {
		return sd, refuse(RuleContentType, "not a SignedData ContentInfo")
	}
	version, ok := c.take(tagInteger)
	if n, small := small(version.body); !ok || !small || n < 1 || n > 5 {
		return sd, refuse(RuleContentType, "SignedData of an unknown version")
	}
	if _, ok = c.take(tagSet); !ok {
		return sd, refuse(RuleContentType, "no digest algorithms")
	}
	if sd.content, ok = openContent(c); !ok {
		return sd, refuse(RuleContentType, "the signed content is not TSTInfo")
	}
	sd.certs = collect(c, tagContext0)
	sd.crls = collect(c, tagContext1)
	infos, ok := c.only(tagSet)
	if !ok {
		return sd, refuse(RuleSigners, "no SignerInfos at the end of SignedData")
	}
	return sd, sd.readSigner(infos)
}

// openContentInfo returns a cursor inside SignedData.
func openContentInfo(token []byte) (*cursor, bool) {
	outer := cursor{rest: token}
	info, ok := outer.only(tagSequence)
	if !ok {
		return nil, false
	}
	c := info.inside()
	oid, ok := c.take(tagOID)
	if !ok || string(oid.body) != oidSignedData {
		return nil, false
	}
	explicit, ok := c.only(tagContext0)
	if !ok {
		return nil, false
	}
	sd, ok := explicit.inside().only(tagSequence)
	return sd.inside(), ok
}

// openContent reads EncapsulatedContentInfo and returns the OCTET STRING.
func openContent(c *cursor) ([]byte, bool) {
	encap, ok := c.take(tagSequence)
	if !ok {
		return nil, false
	}
	e := encap.inside()
	oid, ok := e.take(tagOID)
	if !ok || string(oid.body) != oidTSTInfo {
		return nil, false
	}
	explicit, ok := e.only(tagContext0)
	if !ok {
		return nil, false
	}
	octets, ok := explicit.inside().only(tagOctetString)
	return octets.body, ok
}

// maxEmbedded bounds how many certificates or lists of a token are looked at;
// the rest is skipped as if absent.
const maxEmbedded = 32

// collect gathers the plain SEQUENCEs of an optional implicit SET. Tagged
// members (attribute certificates, OCSP responses of archive tokens) and
// anything else are skipped.
func collect(c *cursor, tag byte) (found [][]byte) {
	set, ok := c.option(tag)
	if !ok {
		return nil
	}
	members := set.inside()
	for len(found) < maxEmbedded {
		e, ok := members.next()
		if !ok {
			break
		}
		if e.tag == tagSequence {
			found = append(found, e.full)
		}
	}
	return found
}

// readSigner reads the one SignerInfo.
func (sd *signedData) readSigner(infos element) *Refusal {
	set := infos.inside()
	info, ok := set.take(tagSequence)
	if !ok {
		return refuse(RuleSigners, "no signer")
	}
	if !set.done() {
		return refuse(RuleSigners, "more than one signer")
	}
	c := info.inside()
	version, ok := c.take(tagInteger)
	if n, small := small(version.body); !ok || !small || n != 1 && n != 3 {
		return refuse(RuleSigners, "SignerInfo of an unknown version")
	}
	s := &sd.signer
	if !s.readID(c) {
		return refuse(RuleSigners, "unreadable SignerIdentifier")
	}
	digest, ok := c.take(tagSequence)
	if !ok {
		return refuse(RuleSigners, "no digest algorithm")
	}
	if s.digest, ok = readAlgorithm(digest.inside()); !ok {
		return refuse(RuleAlgorithm, "unreadable digest algorithm")
	}
	if s.attrs, ok = c.option(tagContext0); !ok {
		return refuse(RuleAttributes, "no signed attributes")
	}
	return s.readSignature(c)
}

// readID reads issuer and serial, or a subject key identifier.
func (s *signerInfo) readID(c *cursor) bool {
	if id, ok := c.option(tagPrimitive0); ok {
		s.keyID = id.body
		return len(id.body) > 0
	}
	sid, ok := c.take(tagSequence)
	if !ok {
		return false
	}
	in := sid.inside()
	issuer, okIssuer := in.take(tagSequence)
	serial, okSerial := in.only(tagInteger)
	s.issuer, s.serial = issuer.full, serial.body
	return okIssuer && okSerial
}

// readSignature reads what follows the signed attributes. Unsigned attributes
// may follow and say nothing.
func (s *signerInfo) readSignature(c *cursor) *Refusal {
	method, ok := c.take(tagSequence)
	if !ok {
		return refuse(RuleSigners, "no signature algorithm")
	}
	if s.method, ok = readAlgorithm(method.inside()); !ok {
		return refuse(RuleAlgorithm, "unreadable signature algorithm")
	}
	signature, ok := c.take(tagOctetString)
	if !ok {
		return refuse(RuleSigners, "no signature")
	}
	s.signature = signature.body
	c.option(tagContext1)
	if !c.done() {
		return refuse(RuleSigners, "bytes after the signature")
	}
	return nil
}

package tsa

import "fmt"

// Rule names the reason of a refusal. The names are stable and may be shown,
// stored and compared.
type Rule string

// The rules, in about the order in which they are judged: form first, then what
// is cheap, one public key operation, the chain, and last what the token states.
const (
	RuleSize        Rule = "size"         // more than MaxToken bytes, or none
	RuleDER         Rule = "der"          // not DER, too deep, or bytes after the end
	RuleResponse    Rule = "response"     // not a TimeStampResp (RFC 3161 section 2.4.2)
	RuleStatus      Rule = "status"       // the authority did not grant, or status and token disagree
	RuleContentType Rule = "content-type" // not SignedData over TSTInfo
	RuleSigners     Rule = "signers"      // not exactly one SignerInfo
	RuleAttributes  Rule = "attributes"   // signed attributes missing, repeated, unsorted or wrong
	RuleESS         Rule = "ess"          // the signed certificate hash names no certificate at hand
	RuleSigner      Rule = "signer"       // the named certificate is not the one of the SignerIdentifier
	RuleAlgorithm   Rule = "algorithm"    // a digest or signature algorithm we do not accept
	RuleKey         Rule = "key"          // the signer's key is too small or of an unaccepted kind
	RuleUnsupported Rule = "unsupported"  // a certificate that cannot be read: not judged, not called forged
	RuleDigest      Rule = "digest"       // message-digest is not the content's
	RuleSignature   Rule = "signature"    // the signature does not verify
	RuleTSTInfo     Rule = "tst-info"     // TSTInfo malformed or of another version
	RuleGenTime     Rule = "gen-time"     // genTime not in the form of RFC 3161 section 2.4.2
	RuleUsage       Rule = "usage"        // extended key usage, key usage or CA flag of the signer
	RuleValidity    Rule = "validity"     // a certificate of the chain was not valid at the time judged
	RuleRoot        Rule = "root"         // no chain to a pinned root
	RulePolicy      Rule = "policy"       // policy not allowed
	RuleImprint     Rule = "imprint"      // not the data's imprint, or its algorithm is not accepted
	RuleNonce       Rule = "nonce"        // nonce absent or another than the request's
	RuleExtension   Rule = "extension"    // an unknown critical TSTInfo extension
	RuleClock       Rule = "clock"        // genTime further from our clock than the skew allows
	RuleRevoked     Rule = "revoked"      // revoked, judged by RFC 3161 section 4
)

// Refusal is the error of every response, token or request that is refused.
type Refusal struct {
	Rule   Rule
	Detail string // one line, safe to print
}

// Error names the rule and the detail.
func (r *Refusal) Error() string {
	return fmt.Sprintf("timestamp refused (%s): %s", r.Rule, r.Detail)
}

func refuse(rule Rule, format string, args ...any) *Refusal {
	return &Refusal{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

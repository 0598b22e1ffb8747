// Package tsa asks for, verifies and issues RFC 3161 timestamp tokens.
//
// # What it guarantees
//
// [Verify] says yes only to a token that is DER to the last byte, carries one
// signature by a certificate that the signed ESS attribute names, whose chain
// ends at a root the caller pinned and was valid at the token's own time, and
// whose imprint is the caller's. Each refusal is a [*Refusal] naming one rule.
// Nothing inside a token is trusted because it lies there: embedded
// certificates only help to build a chain, embedded revocation lists count only
// when signed by the issuer they speak for.
//
// Hostile bytes cost a bounded walk before any parser sees them: at most
// [MaxToken] bytes and a bounded depth. No input makes the package panic.
//
// [Client] returns only tokens it has verified, asks each authority at most
// once a call, and never loops. [Authority] is a small authority of our own
// that verifies each answer before releasing it.
//
// # What it does not
//
// A token proves that data existed no later than genTime + accuracy, nothing
// else. Tokens of [Authority] are self-issued: they are no independent evidence
// of time, and [Token.SelfIssued] says so. OCSP answers are carried, not judged.
//
// # In a crash
//
// [Authority] writes the second it is about to state, and syncs it, before the
// token leaves; after a crash it may have recorded a second it never stated,
// never the other way round. [Client] keeps its rests and stops in memory only.
package tsa

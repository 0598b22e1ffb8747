// Package receipts is the receipt: what it states, how it is written, signed
// and read, and the commitments inside it.
//
// One receipt is one line: a DSSE envelope around an in-toto statement
// (https://in-toto.io/Statement/v1), signed with Ed25519. A program that
// records builds a Receipt with the constructor of its kind and hands it to a
// chain, which calls Seal with the receipt's place. A program that checks calls
// ParseLine, Envelope.Verify with the key in force, then ParseStatement.
//
// Guarantees: the bytes that were signed are the bytes that are verified,
// nothing is ever encoded again to be checked; nothing that Seal signs is
// refused by ParseStatement; every byte of a line is either fixed by the
// template or covered by the signature; arguments and results never stand in a
// receipt, only the SHA-256 of an opening that holds a random salt. Strings a
// client or a server chose are cut to 128 bytes, and the cut is told.
//
// Not guaranteed here: that receipts follow each other (package chain), that
// they existed at a time or were not replaced (package anchor), or that the tool
// told the truth.
//
// The package holds no state and touches no file, so a crash leaves nothing
// behind: what a caller has not made durable was never recorded.
package receipts

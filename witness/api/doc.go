// Package api is the wire of the witness: the bodies both ends speak, the one
// table between errors and HTTP statuses, the leaves of the witness log, and a
// client.
//
// It guarantees that what it parses is what it would have written: every body
// is parsed, encoded again and compared, so two readers cannot disagree about
// the same bytes. It guarantees nothing about truth: signatures, proofs and
// indices that come back from a witness are hints until the caller has checked
// them against keys it pinned. Nothing here keeps state, so a crash loses
// nothing.
package api

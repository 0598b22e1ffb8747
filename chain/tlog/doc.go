// Package tlog holds the formats and the mathematics of a transparency log,
// as C2SP and RFC 6962 write them: signed notes, checkpoints, cosignatures,
// tiles, proofs, trust policies, and the framed sections of our own files.
//
// # What it guarantees
//
// Every parser is strict: what it accepts, the matching writer writes back to
// the same bytes, so two verifiers never read one file differently. (A policy
// file is the exception; white space and comments are free in it.) No bytes,
// keys or proofs from outside make it panic, and every input has a bound.
//
// A proof is believed only along RFC 6962's own path. Trees of size 0 are
// judged here and never handed on: they have one root and an empty proof.
//
// An Ed25519 signature counts only by [ValidSeal]: canonical key, not of small
// order, S below the group's order.
//
// # What it does not
//
// Parsing verifies nothing. [ParseSignedCheckpoint] and [Proof.Verify] return a
// note that is worth what [Note.Verify] or [Policy.Check] says of it under keys
// the caller trusts for other reasons. [TreeRoot] and the Prove functions
// compute from whatever tiles they are given; compare the root before use.
// ML-DSA-44 (type 06) keys are read and reported, their signatures neither
// made nor verified. Checkpoints with extension lines are refused.
//
// # In a crash
//
// The package writes only in [CreateKeyFile], which returns after the key and
// its name are synced. [Grow] returns tiles and leaves writing to the caller:
// a wider tile begins with the narrower one's bytes, so tiles written before
// their size is announced need no undoing.
package tlog

// Package spill is the archive behind the output ladder: what was left out of
// a result can be read back by its id.
//
// An original is kept as three files that nobody but their owner can read:
// <id>.txt, its text; <id>.raw, the whole result as it came; <id>.json, what is
// known of it. The id is "sp_" and the first 12 hex digits of the SHA-256 of
// <id>.raw, so the same result has the same id, and sha256sum checks it.
//
// Several routers may share a folder. What Put returns an id for is there,
// whole, when it returns, and no other process removes it at that moment: the
// oldest go first, under a lock, until Keep originals and MaxBytes are left.
// Two results whose ids clash are both safe: the second is refused.
//
// It does not sync: after a power cut an original may be gone or damaged,
// which Read says. In any other crash there is the whole original or none, and
// perhaps a temporary file, which a later Put removes.
package spill

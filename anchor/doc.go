// Package anchor ties a chain on one host to witnesses on others, and judges
// what comes of it.
//
// A Streamer submits heads of a chain to the witnesses it is enrolled at, and
// keeps what they answer only after checking it: cosignature, consistency with
// the checkpoint kept before, inclusion of the head's leaf. BuildProof makes a
// container that proves one receipt. Verify judges a chain folder or a
// container, offline, by what the auditor pinned.
//
// # What it guarantees
//
// Verify is one function over bytes and pinned keys: no network, no clock but
// Trust.Now, no trust in anything because it lies in what is being verified. It
// finds every edit, deletion, reordering and replacement of receipts below a
// witnessed head, and names it by one word of a closed list. It reads a million
// receipts in bounded memory.
//
// # What it does not
//
// It cannot tell that a tool told the truth, that no call went around the
// router, or who a person was; every report says so. Receipts after the last
// witnessed head are signed and linked only: whoever holds the keys can still
// replace them. A witness that shows an old head hides what came later; a kept
// checkpoint, a second witness or an anchor file shows that.
//
// # In a crash
//
// A witness's state is one file, replaced whole: written aside, synced,
// renamed, folder synced. A crash between a witness's answer and that write
// loses only the answer: the next submission is a conflict that tells the size
// to go on from. A torn line of an anchor file is skipped, never fused.
package anchor

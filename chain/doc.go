// Package chain keeps one append-only chain of signed receipts on one host:
// lines in segments, their salts beside them, and an RFC 6962 tree over the
// lines whose signed heads a witness can hold against the chain.
//
// # What it guarantees
//
//   - [Chain.Append] returns after the line and its salts are on disk, by a
//     sync that began after both were written.
//   - All processes that have the folder open write one linear chain: a lock
//     covers catching up, signing and writing; syncs run after its release and
//     are shared.
//   - [Chain.Head] signs durable lines only, and never two heads of one size
//     with different roots.
//   - [Chain.Rotate] puts new keys in force by a line that the old ones signed;
//     [Chain.KeyNotes] tells witnesses. [Chain.Erase] destroys salts only after
//     receipts that say so are durable. [Chain.Prune] removes lines only after
//     their hashes and a receipt are durable: roots, heads and proofs of all
//     other lines stay.
//   - A chain is never continued past a break. Where lines that were durable
//     are gone, the chain is closed as it is found and a successor with new
//     keys, hence a new origin, opens: see [Predecessor].
//
// # What it does not
//
// Whoever owns the host can delete the folder or write another chain with
// keys of their own: that shows only against heads that somebody else holds.
// A disk that loses what it reported as synced is noticed only where tiles,
// or heads that a witness accepted, reach further than the lines.
//
// Between a sync that fails in one process and that process's rewrite of its
// lines, a process that opens the folder for the first time may append behind
// them: a machine that stops in that moment can lose what both wrote, and the
// next Open then finds the chain rolled back. Writing the lines over themselves
// at every Open would close this and put acknowledged lines at risk instead.
//
// Erasing overwrites salts in their file. Snapshots, backups, copy-on-write file
// systems and a disk's own remapping may keep them.
//
// # In a crash
//
// A process that is killed, or a machine that loses power, leaves at most a
// torn tail behind the last acknowledged line. The next Open, or another
// process at its next append, copies it to quarantine/, and a "recovered"
// receipt is written over it. A line whose salt was lost is told by an
// erasure receipt with reason "crash". A last line that lacks only its "\n"
// counts. [Inspect] tells what Open would mend and changes nothing.
//
// A rotation, an erasure or a prune that was cut off is finished by the next
// Open, or, where its line never became durable, was never begun.
//
// After a failed sync nothing is signed until the lines behind the synced
// offset stand, synced, in a new segment; if that cannot be done the chain
// has ended ([ErrEnded]). After a full disk ([ErrNoSpace]) it goes on by
// itself.
//
// # The folder
//
//	FORMAT              tool-guardian/evidence/1
//	lock                who may write; "<pid> <generation>"
//	keys/               head.key, receipt.key: 0600; notes/<from-size>.note
//	chain/              <20-digit first seq>.jsonl, tiles/ (rebuildable while the
//	                    lines are there), PRUNED (what lies in tiles alone)
//	salts/              <20-digit first seq>.bin, people.bin; ERASE (begun)
//	openings/ anchor/   of other packages, and of this chain
//	quarantine/         <segment>.<offset>.<n>.jsonl, and .bin for its salts
//	next/               a chain being opened, until its folders are in place
//	closed/<origin>/    FORMAT and the folders of a chain that was closed
package chain

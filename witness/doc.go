// Package witness is the server that cosigns the heads of agents' chains and
// keeps them in a Merkle log of its own.
//
// A request travels through four states, each with its own type. A worker
// admits it: signature, proof and sizes are judged, and the cosignature is
// made (admitted). The sequencer, one goroutine, puts it in order with what
// else waits (accepted) and commits the batch together with the signed
// checkpoint of the log that contains it (durable). Readers are served from
// snapshots of the store, and see it from then on (published).
//
// What it guarantees: no cosignature leaves before the leaf that holds it, and
// the checkpoint over that leaf, are on disk. For one origin no two heads of a
// size with different roots, and no smaller head after a larger one, are ever
// cosigned. The log's own checkpoint never shows two roots for a size.
//
// What it does not: a witness that is restored from an old copy of its folder
// would contradict itself; Options.HeadFile and the cosigners of its checkpoint
// (Options.Cosigners) detect it. A dishonest witness can refuse or delay, and is
// convicted by its own signatures if it lies.
//
// Nothing continues past a break. A log that was rolled back, has lost a key or
// is convicted is closed, and Recover opens its next shard: NAME/2 with new keys
// in the folder shards/2, beginning with what is known of the shard before. The
// former shards are read under /shards/ and never written. A clock that was set
// stops the signing until ConfirmClock.
//
// Backup copies a log in use, checks the copy and writes its size and root
// beside it; it never holds a key. Restore makes a new folder of it.
//
// A refused head that the key in force signed is compared with every recorded
// head of its chain first: two histories under one key become a fork leaf, and
// a file that convicts by itself. The same holds against us: shown a signature
// of ours over what the log does not hold, the server signs nothing more, now
// or after a restart (ErrMisbehaved).
//
// The web page (GET /) tells people the same from one snapshot: the log, its
// time, every chain with its state, a chain's heads over time, a leaf, a search
// by hash. It needs no script, loads nothing and proves nothing; it links to
// what does.
//
// In a crash a batch is there with its checkpoint or not at all, and nobody was
// told. A full disk fails the batch, and reading goes on. When a commit's
// outcome is unknown, nothing more is signed and Run returns ErrFatal: the
// process must end and start again, because after a failed sync the page cache
// no longer tells what the disk holds. The start after it reads the store into a
// new file and rebuilds every hash before it serves.
package witness

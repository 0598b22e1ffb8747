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
// would contradict itself; Options.HeadFile detects it. A dishonest witness can
// refuse or delay, and is convicted by its own signatures if it lies.
//
// In a crash a batch is there with its checkpoint or not at all, and nobody was
// told. A full disk fails the batch, and reading goes on. When a commit's
// outcome is unknown, nothing more is signed and Run returns ErrFatal: the
// process must end and start again, because after a failed sync the page cache
// no longer tells what the disk holds.
package witness

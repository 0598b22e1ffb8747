// Package bolt keeps a witness log in one bbolt file, the embedded engine.
//
// A commit is one bbolt transaction with two waits for the disk: the new pages,
// then the meta page that names them. bbolt shows a transaction to readers
// before the second wait is over; this package holds readers back until it is,
// so that nothing is seen that a power cut could take away.
//
// bbolt does not checksum values, and reads the file through a memory map:
// damage shows as a wrong hash, a panic or a fault. Faults and panics become
// store.ErrDamaged; wrong hashes are witness.Fsck's business.
//
// One process at a time: the lock file beside the store names the holder. The
// kernel drops the lock when the holder dies, so no crash leaves it behind.
package bolt

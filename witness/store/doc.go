// Package store is the contract between the witness and what keeps its log.
//
// A Store guarantees three things. A commit is a compare-and-swap on (size,
// epoch): it lands only on the state its writer read. It is all or nothing. It
// is durable when it returns nil, and no View sees it before it is.
//
// After a crash a store holds the state of the last commit that returned nil,
// or of the one that was under way, never anything between. A store does not
// promise that its bytes are the ones written: who reads recomputes the tree
// (see witness.Fsck).
//
// Package storetest holds the suite that every engine must pass.
package store

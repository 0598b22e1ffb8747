// Package journal keeps what one run of the router leaves to the next, in
// files that several routers share under a lock.
//
// State guarantees that a reader sees a whole file of one writer, that members
// it does not know survive an update, and that a file of a newer format is
// read and never written. It does not make the file durable before it returns:
// what it holds can be found out again.
//
// In a crash either the old or the new file is there, and the lock is free.
package journal

package chain

import (
	"errors"
	"fmt"
)

// What a caller decides on.
var (
	// ErrLocked: another process held the chain longer than LockTimeout. The
	// text names its pid. Try again, or take the mode's failure path.
	ErrLocked = errors.New("chain is locked")
	// ErrNoSpace: the disk is full. Nothing was added; the chain goes on when
	// there is space again.
	ErrNoSpace = errors.New("no space left for the chain")
	// ErrEnded: nothing more is ever added through this Chain. Open again: it
	// recovers, or opens a successor.
	ErrEnded = errors.New("chain has ended")
	// ErrRolledBack: lines that were once durable are gone. Wrapped together
	// with ErrEnded.
	ErrRolledBack = errors.New("chain was rolled back")
	// ErrClosed: Close was called.
	ErrClosed = errors.New("chain is closed")
	// ErrNoChain: the folder holds no chain.
	ErrNoChain = errors.New("no chain here")
	// ErrNotFound: no such line or salt.
	ErrNotFound = errors.New("not in the chain")
	// ErrErased: the salt's record is zeroed.
	ErrErased = errors.New("salt is erased")
	// ErrChanged: the folder was rewritten under a Reader. Open a new one.
	ErrChanged = errors.New("chain changed while it was read")
	// ErrNetwork: the folder lies on a file system whose locks and syncs
	// cannot be relied on.
	ErrNetwork = errors.New("network file system")
	// ErrKey: a key file is missing, empty, not ours, or open to others.
	ErrKey = errors.New("key file refused")
	// ErrFormat: a newer version wrote this folder.
	ErrFormat = errors.New("unknown evidence format")
)

// noSpace marks the errors that pass when space returns.
func noSpace(err error) error {
	if isNoSpace(err) {
		return fmt.Errorf("%w: %w: free some space, the chain goes on by itself", ErrNoSpace, err)
	}
	return err
}

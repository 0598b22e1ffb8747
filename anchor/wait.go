package anchor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNoWitness: the chain is enrolled at no witness.
var ErrNoWitness = errors.New("no witness is enrolled")

// waitLook is how often a wait looks at what was kept.
const waitLook = 5 * time.Millisecond

// WaitWitnessed waits until one witness has cosigned a head of at least that
// size of the chain origin in the evidence folder dir, whichever process
// streams. A tail that is longer than maxTail when it is asked is an error at
// once: the witness has been away, and waiting would not be short.
func WaitWitnessed(ctx context.Context, dir, origin string, size, maxTail uint64) error {
	tick := time.NewTicker(waitLook)
	defer tick.Stop()
	for first := true; ; first = false {
		kept, err := cosignedSize(dir, origin)
		switch {
		case err != nil:
			return err
		case kept >= size:
			return nil
		case first && size-kept > maxTail:
			return fmt.Errorf("%d receipts are not witnessed yet, more than %d: anchor status tells why", size-kept, maxTail)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d receipts are not witnessed yet: %w: anchor status tells why", size-kept, context.Cause(ctx))
		}
	}
}

// cosignedSize is the largest size that a witness of the chain cosigned.
func cosignedSize(dir, origin string) (uint64, error) {
	witnesses, err := Witnesses(dir, origin)
	if len(witnesses) == 0 {
		return 0, errors.Join(ErrNoWitness, err)
	}
	size := uint64(0)
	for _, w := range witnesses {
		s, err := loadState(w.folder(dir))
		if err != nil {
			return 0, err
		}
		size = max(size, s.size.Size)
	}
	return size, nil
}

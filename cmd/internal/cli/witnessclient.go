package cli

import (
	"context"
	"net/http"
	"time"

	"toolguardian/anchor"
	"toolguardian/witness/api"
)

// A witness that is asked by hand may be a liar: it gets so long for one answer
// and for all of them, and it cannot send us to somebody else.
const (
	answerTime = 15 * time.Second
	fetchTime  = 2 * time.Minute
)

// askWitness fetches what the witness at url has of an origin, in bounded time.
func askWitness(ctx context.Context, url, origin string, since uint64) (*anchor.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	return anchor.Fetch(ctx, api.New(url, witnessClient(answerTime)), url, origin, since)
}

func witnessClient(each time.Duration) *http.Client {
	return &http.Client{Timeout: each}
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"

	fnote "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/witness/persistence/inmemory"
	"github.com/transparency-dev/witness/witness"
	"golang.org/x/mod/sumdb/note"
)

// serveWitness runs transparency-dev/witness with a new key and an empty
// memory, for one chain.
func serveWitness(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("witness", flag.ContinueOnError)
	chain := flags.String("chain", "", "the chain's vkey, type 01")
	name := flags.String("name", "witness.invalid/second", "the witness's key name")
	listen := flags.String("listen", "127.0.0.1:0", "address to listen on")
	lifetime := flags.Duration("for", 10*time.Minute, "stop by itself after this long")
	if err := flags.Parse(args); err != nil {
		return err
	}
	handler, vkey, err := newWitness(ctx, *chain, *name)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Printf("url http://%s\nvkey %s\n", listener.Addr(), vkey)
	ctx, cancel := context.WithTimeout(ctx, *lifetime)
	defer cancel()
	return serve(ctx, &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}, listener)
}

func newWitness(ctx context.Context, chain, name string) (http.Handler, string, error) {
	verifier, err := note.NewVerifier(chain)
	if err != nil {
		return nil, "", fmt.Errorf("--chain: %w", err)
	}
	skey, vkey, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return nil, "", err
	}
	signer, err := fnote.NewSignerForCosignatureV1(skey)
	if err != nil {
		return nil, "", err
	}
	if vkey, err = fnote.VKeyToCosignatureV1(vkey); err != nil {
		return nil, "", err
	}
	w, err := witness.New(ctx, witness.Opts{
		Persistence: inmemory.New(),
		Signers:     []note.Signer{signer},
		VerifierForLog: func(_ context.Context, origin string) (note.Verifier, bool, error) {
			return verifier, origin == verifier.Name(), nil
		},
	})
	if err != nil {
		return nil, "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", witness.NewHTTPHandler(w).AddCheckpoint)
	return mux, vkey, nil
}

// serve stops when ctx ends.
func serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		stopped <- server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

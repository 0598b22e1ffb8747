package bench

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"toolguardian/witness"
)

const witnessName = "bench.invalid/witness"

// newWitness makes a witness that knows the chains of vkeys.
func newWitness(ctx context.Context, o witness.Options, vkeys ...string) error {
	if err := witness.Init(o.Dir, witnessName, o.Engine); err != nil {
		return err
	}
	operator, err := witness.Operate(ctx, o)
	if err != nil {
		return err
	}
	for _, v := range vkeys {
		if _, err := operator.AddAgent(ctx, v); err != nil {
			return errors.Join(err, operator.Close())
		}
	}
	return operator.Close()
}

// withWitness runs a witness, and its HTTP server on a free port of loopback,
// while do runs. Requests end before the witness does.
func withWitness(o witness.Options, do func(s *witness.Server, url string) error) error {
	s, err := witness.New(o)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, s.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ran, served := make(chan error, 1), make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	web := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { served <- web.Serve(ln) }()
	err = errors.Join(do(s, "http://"+ln.Addr().String()), web.Close())
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	stop()
	return errors.Join(err, <-ran, s.Close())
}

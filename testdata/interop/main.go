// Interop holds Tool Guardian's log and chains against programs written by
// others: tessera's client and fsck read the witness's log, and
// transparency-dev/witness cosigns a chain's heads. It is a module of its own,
// so that their dependencies stay out of the product's.
//
//	interop log --url URL --vkey VKEY [--cosigner VKEY] [--old FILE] [--save FILE]
//
// reads the log at URL, checks it, prints a line per check, and exits 1 at the
// first that fails. Run it twice, with --save and then, when the log has grown,
// with --old, to check consistency between two checkpoints.
//
//	interop witness --chain VKEY [--name NAME] [--listen ADDR] [--for DURATION]
//
// prints the lines "url URL" and "vkey VKEY" once it listens, then serves as a
// witness for that chain until SIGTERM, SIGINT or the end of that time, and
// exits 0.
//
//	interop bench [--witness EXE] [--dir DIR] [--turns N] [--turn DURATION]
//
// appends to tessera's POSIX driver and to our witness in turns, at 1 and 64
// writers, and prints what each takes a second.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("want: interop log|witness|bench FLAGS")
	}
	switch args[0] {
	case "log":
		return checkLog(ctx, args[1:])
	case "witness":
		return serveWitness(ctx, args[1:])
	case "bench":
		return benchLogs(ctx, args[1:])
	}
	return fmt.Errorf("%q is none of log, witness and bench", args[0])
}

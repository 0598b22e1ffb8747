package cli

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/cmd/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	return group("bench", "Measure this machine: ratios, each taken in one run",
		a.benchCalls(), a.benchWitness(), a.benchVerify(), a.benchEcho(), a.benchRelay(),
		a.benchSearch(), a.benchTokens(), a.benchReplay(), a.benchLadder())
}

// printBench prints a report. A missed aim is shown and fails nothing.
func (a *app) printBench(r bench.Report) error {
	if a.json {
		a.printJSON(r)
		return nil
	}
	return r.WriteText(a.Out)
}

// benchProgress shows how far it is to a person, and nothing to a file.
func (a *app) benchProgress() *bench.Progress {
	if !terminal(a.Err) {
		return nil
	}
	return bench.NewProgress(a.Err)
}

func (a *app) benchCalls() *cobra.Command {
	var o bench.CallsOptions
	c := &cobra.Command{
		Use: "calls", Short: "What the router and its evidence add to a tool call", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Exe, err = os.Executable(); err != nil {
				return err
			}
			o.Progress = a.benchProgress()
			r, err := bench.Calls(c.Context(), o)
			o.Progress.Done()
			if err != nil {
				return err
			}
			return a.printBench(r)
		},
	}
	c.Flags().StringVar(&o.Dir, "dir", "", "where the temporary folder is made: measure the disk that matters")
	c.Flags().IntVar(&o.Turns, "turns", 8, "turns of each side")
	c.Flags().DurationVar(&o.Turn, "turn", 250*time.Millisecond, "how long a turn lasts")
	return c
}

func (a *app) benchWitness() *cobra.Command {
	var o bench.WitnessOptions
	c := &cobra.Command{
		Use: "witness", Short: "How many heads a witness takes, beside what its disk and its signatures allow", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Progress = a.benchProgress()
			r, err := bench.Witness(c.Context(), o)
			o.Progress.Done()
			if err != nil {
				return err
			}
			return a.printBench(r)
		},
	}
	c.Flags().StringVar(&o.Dir, "dir", "", "where the temporary folder is made: measure the disk that matters")
	c.Flags().IntVar(&o.Turns, "turns", 8, "turns of each measurement")
	c.Flags().IntVar(&o.Heads, "heads", 50, "heads of each writer in a turn")
	c.Flags().IntVar(&o.Origins, "origins", 2000, "origins that send a head a second each, over HTTP (0: none)")
	c.Flags().DurationVar(&o.Load, "load", 10*time.Second, "how long they do, at most 20s")
	c.Flags().IntVar(&o.Open, "open", 200_000, "heads of the log that is opened, and that proofs are made from (0: none)")
	c.Flags().IntVar(&o.Proofs, "proofs", 100_000, "how many")
	return c
}

func (a *app) benchVerify() *cobra.Command {
	var o bench.VerifyOptions
	c := &cobra.Command{
		Use: "verify", Short: "How fast a chain is verified, and in how much memory", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Exe, err = os.Executable(); err != nil {
				return err
			}
			o.Progress = a.benchProgress()
			r, err := bench.Verify(c.Context(), o)
			o.Progress.Done()
			if err != nil {
				return err
			}
			return a.printBench(r)
		},
	}
	c.Flags().StringVar(&o.Dir, "dir", "", "where the temporary folder is made")
	c.Flags().IntVar(&o.Receipts, "receipts", 1_000_000, "receipts to generate")
	return c
}

// benchEcho is the server that the other side of bench calls measures.
func (a *app) benchEcho() *cobra.Command {
	return &cobra.Command{
		Use: "echo", Short: "Serve the echo tool of bench calls over stdio", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return bench.Echo(a.In, a.Out) },
	}
}

// benchRelay is what bench calls measures beside the router.
func (a *app) benchRelay() *cobra.Command {
	return &cobra.Command{
		Use: "relay", Short: "Copy bytes to and from the echo server", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			return bench.Relay(c.Context(), exe, a.In, a.Out)
		},
	}
}

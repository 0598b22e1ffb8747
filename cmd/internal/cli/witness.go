package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/witness"
	"toolguardian/witness/store/bolt"
)

// witnessOptions are the flags of every witness command.
type witnessOptions struct{ data string }

func (w *witnessOptions) flags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&w.data, "data", "", "the witness's data folder")
	must(c.MarkFlagRequired("data"))
	return c
}

func (a *app) witnessCommand() *cobra.Command {
	return group("witness", "Run a witness: cosign chain heads and log them",
		a.witnessInit(), a.witnessServe(), a.witnessToken(), a.witnessAgents(), a.witnessStatus(), a.witnessFsck(), a.witnessBackup(), a.witnessRestore(), a.witnessRecover())
}

func (a *app) witnessInit() *cobra.Command {
	var w witnessOptions
	var origin string
	c := w.flags(&cobra.Command{
		Use: "init", Short: "Make a witness: its keys and an empty log", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := witness.Init(w.data, origin, bolt.OpenDir); err != nil {
				return err
			}
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				st, err := op.Status(ctx)
				if err != nil {
					return err
				}
				a.print("log       %s\ncosigner  %s\n", st.Log, st.Cosigner)
				a.say("auditors pin these two keys; the private keys lie in %s, mode 0600", w.data)
				a.say("next: tool-guardian witness serve --data %s --listen 127.0.0.1:8790", w.data)
				return nil
			})
		},
	})
	c.Flags().StringVar(&origin, "origin", "", "the log's name, such as witness.example.com/log")
	must(c.MarkFlagRequired("origin"))
	return c
}

// operate runs one act of the operator, on the running server or the folder.
func (a *app) operate(ctx context.Context, w witnessOptions, act func(context.Context, witness.Operator) error) error {
	op, err := witness.Operate(ctx, witness.Options{Dir: w.data, Engine: bolt.OpenDir, Now: a.Now, Logger: a.logger()})
	if err != nil {
		return err
	}
	return errors.Join(act(ctx, op), op.Close())
}

func (a *app) witnessToken() *cobra.Command {
	var w witnessOptions
	return w.flags(&cobra.Command{
		Use: "token", Short: "Make an enrolment token: one use, 24 hours", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				token, err := op.NewToken(ctx)
				if err != nil {
					return err
				}
				a.print("%s\n", token)
				a.say("next, on the agent's host: tool-guardian anchor enroll --witness URL --token TOKEN")
				return nil
			})
		},
	})
}

func (a *app) witnessStatus() *cobra.Command {
	var w witnessOptions
	return w.flags(&cobra.Command{
		Use: "status", Short: "Show the log's size, keys and newest timestamp", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				st, err := op.Status(ctx)
				if err != nil {
					return err
				}
				if a.json {
					a.printJSON(st)
					return nil
				}
				a.printWitnessStatus(st)
				return nil
			})
		},
	})
}

func (a *app) printWitnessStatus(st witness.Status) {
	a.print("log       %s\ncosigner  %s\nsize      %d\nroot      %s\nagents    %d\n",
		st.Log, st.Cosigner, st.Size, st.Root.Base64(), st.Agents)
	a.printTime(st.Time)
	a.printCosigning(st)
	if st.Audit != nil {
		a.print("audit     %d faults at size %d, %s\n", st.Audit.Faults, st.Audit.Size, st.Audit.At.Format(time.RFC3339))
	}
	if st.Unhealthy != "" {
		a.print("unhealthy %s\n", st.Unhealthy)
	}
}

// printCosigning shows who cosigns us, and whom we cosign.
func (a *app) printCosigning(st witness.Status) {
	if c := st.Cosigned; c != nil {
		a.print("cosigned  size %d\n", c.Size)
		for _, w := range c.Cosigners {
			a.print("cosigner  %s has seen size %d %s\n", w.Name, w.Size, w.Error)
		}
	}
	for _, l := range st.Logs {
		a.print("log       %s at size %d: cosigned, recorded, not logged\n", l.Origin, l.Size)
	}
}

// printTime shows what time is attested, and what of it is lacking.
func (a *app) printTime(st witness.TimeStatus) {
	stamped := "never"
	if !st.At.IsZero() {
		stamped = fmt.Sprintf("size %d at %s by %d of %d operators", st.Size, st.At.UTC().Format(time.RFC3339), st.Operators, st.Quorum)
	}
	if st.SelfIssued {
		stamped += ": self-issued, no independent evidence"
	}
	a.print("stamped   %s\n", stamped)
	if st.Unstamped > 0 {
		a.print("unstamped %d leaves wait for a timestamp\n", st.Unstamped)
	}
	for _, authority := range st.Authorities {
		if authority.Error != "" {
			a.print("authority %s: %s\n", authority.Name, authority.Error)
		}
	}
}

func (a *app) witnessFsck() *cobra.Command {
	var w witnessOptions
	return w.flags(&cobra.Command{
		Use: "fsck", Short: "Rebuild every hash of the log and locate damage", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				r, err := op.Fsck(ctx)
				if err != nil {
					return err
				}
				return a.printFsck(r)
			})
		},
	})
}

func (a *app) printFsck(r witness.FsckReport) error {
	code := OK
	if !r.OK() {
		code = Failed
	}
	if a.json {
		a.printJSON(r)
		return verdict(code)
	}
	for _, f := range r.Faults {
		a.print("FAULT %s: %s\n", f.Where, f.Detail)
	}
	if r.More > 0 {
		a.print("… and %d more\n", r.More)
	}
	a.print("%d entries, %d checkpoints, root %s: %s\n", r.Size, r.Checkpoints, r.Root.Base64(),
		map[bool]string{true: "all hashes hold", false: "damaged"}[r.OK()])
	return verdict(code)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
		a.witnessInit(), a.witnessServe(), a.witnessToken(), a.witnessAgents(), a.witnessStatus(), a.witnessFsck(), a.witnessRecover())
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

func (a *app) witnessServe() *cobra.Command {
	var w witnessOptions
	var l listenOptions
	var headFile string
	var every time.Duration
	c := w.flags(&cobra.Command{
		Use: "serve", Short: "Serve the witness over HTTP until interrupted", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := witness.New(witness.Options{Dir: w.data, Engine: bolt.OpenDir, HeadFile: headFile,
				StampEvery: every, Now: a.Now, Logger: a.logger()})
			if err != nil {
				return err
			}
			a.say("time comes from the built-in authority: self-issued, no independent evidence; its root is %s",
				filepath.Join(w.data, "tsa", "root.pem"))
			return errors.Join(a.serveWitness(c.Context(), s, l), s.Close())
		},
	})
	c.Flags().StringVar(&headFile, "head-file", "", "where to keep the newest checkpoint, outside the data folder")
	c.Flags().DurationVar(&every, "stamp-every", time.Minute, "how often new checkpoints are timestamped")
	l.flags(c)
	return c
}

// serveWitness runs the sequencer beside the HTTP server. Requests end first,
// so that each gets the answer it was promised; then the sequencer.
func (a *app) serveWitness(ctx context.Context, s *witness.Server, l listenOptions) error {
	runCtx, stopRun := context.WithCancel(context.WithoutCancel(ctx))
	httpCtx, stopHTTP := context.WithCancel(ctx)
	defer stopHTTP()
	ran := make(chan error, 1)
	go func() {
		defer stopHTTP()
		ran <- s.Run(runCtx)
	}()
	err := a.listenAndServe(httpCtx, l, s.Handler())
	stopRun()
	return errors.Join(err, <-ran)
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

func (a *app) witnessAgents() *cobra.Command {
	return group("agents", "The chains that this witness knows", a.witnessAgentsAdd(), a.witnessAgentsList())
}

func (a *app) witnessAgentsAdd() *cobra.Command {
	var w witnessOptions
	return w.flags(&cobra.Command{
		Use: "add VKEY", Short: "Enrol a chain by its first head key, as the operator", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				index, err := op.AddAgent(ctx, args[0])
				if err != nil {
					return err
				}
				a.print("enrolled at leaf %d\n", index)
				return nil
			})
		},
	})
}

func (a *app) witnessAgentsList() *cobra.Command {
	var w witnessOptions
	return w.flags(&cobra.Command{
		Use: "list", Short: "List the enrolled chains with their last heads", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				agents, err := op.Agents(ctx)
				if err != nil {
					return err
				}
				if a.json {
					a.printJSON(agents)
					return nil
				}
				return a.printAgents(agents)
			})
		},
	})
}

func (a *app) printAgents(agents []witness.Agent) error {
	t := a.table("origin", "head", "leaf", "last head", "state")
	for _, g := range agents {
		last := "never"
		if !g.HeadTime.IsZero() {
			last = g.HeadTime.UTC().Format(time.DateTime)
		}
		t.row(g.Origin, g.HeadSize, g.HeadAt, last, string(g.State))
	}
	t.flush()
	return nil
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
	stamped := "never"
	if !st.StampedAt.IsZero() {
		stamped = fmt.Sprintf("size %d at %s", st.Stamped, st.StampedAt.UTC().Format(time.RFC3339))
	}
	a.print("log       %s\ncosigner  %s\nsize      %d\nroot      %s\nagents    %d\nstamped   %s\n",
		st.Log, st.Cosigner, st.Size, st.Root.Base64(), st.Agents, stamped)
	if st.Unhealthy != "" {
		a.print("unhealthy %s\n", st.Unhealthy)
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

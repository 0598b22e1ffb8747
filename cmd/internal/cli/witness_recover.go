package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store/bolt"
)

type recoverFlags struct {
	witnessOptions
	headFile, reason string
	known            []string
	clock            bool
}

func (a *app) witnessRecover() *cobra.Command {
	var f recoverFlags
	c := f.flags(&cobra.Command{
		Use:   "recover --reason WORD|--clock",
		Short: "Open the next shard of the log with new keys, or tell that the clock is right",
		Long: `With --reason the log in the folder is closed and its next shard opened: new keys, which
auditors and agents must pin anew, the key leaves and last heads of every chain, and what is
known of the old shard. Old proofs stay valid against the old shard. Stop the server first.

With --clock a witness that refuses because its clock moved, or disagrees with what it has
signed, is told that the clock is right now. The server may be running.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.clock {
				return a.confirmClock(c.Context(), f.witnessOptions)
			}
			return a.recoverShard(f)
		},
	})
	c.Flags().StringVar(&f.reason, "reason", "", "rollback, lost-key, algorithm, damage or growth")
	c.Flags().StringVar(&f.headFile, "head-file", "", "the head file: what it knows goes into the new shard")
	c.Flags().StringArrayVar(&f.known, "checkpoint", nil, "a file with a checkpoint of the old shard that somebody kept; repeats")
	c.Flags().BoolVar(&f.clock, "clock", false, "the clock is right now: sign again")
	c.MarkFlagsOneRequired("reason", "clock")
	c.MarkFlagsMutuallyExclusive("reason", "clock")
	return c
}

func (a *app) confirmClock(ctx context.Context, w witnessOptions) error {
	return a.operate(ctx, w, func(_ context.Context, op witness.Operator) error {
		if err := op.ConfirmClock(); err != nil {
			return err
		}
		a.say("the clock counts as right from now on")
		return nil
	})
}

func (a *app) recoverShard(f recoverFlags) error {
	why := api.ShardReason(f.reason)
	if !slices.Contains(api.ShardReasons(), why) {
		return usagef("--reason %q is none of %v", f.reason, api.ShardReasons())
	}
	var known [][]byte
	for _, name := range f.known {
		b, err := readInput(name)
		if err != nil {
			return err
		}
		known = append(known, b)
	}
	got, err := witness.Recover(witness.Options{Dir: f.data, Engine: bolt.OpenDir, HeadFile: f.headFile, Now: a.Now, Logger: a.logger()},
		why, known...)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(got)
		return nil
	}
	a.print("shard     %s\nlog       %s\ncosigner  %s\nchains    %d carried over\n", got.Origin, got.Log, got.Cosigner, got.Agents)
	a.print("former    %s, size %d, highest reported %d\n", got.Former, got.FormerSize, got.KnownSize)
	a.say("auditors and agents pin the two new keys; the old shard stays readable under /shards/%d/", got.Shard-1)
	return nil
}

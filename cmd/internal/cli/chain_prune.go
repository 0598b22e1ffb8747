package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/anchor"
	"toolguardian/chain"
)

// pruneRange says which receipts may go, in one of three ways.
type pruneRange struct {
	before, keep uint64
	olderThan    time.Duration
}

func (a *app) chainPrune() *cobra.Command {
	var f chainFlag
	var r pruneRange
	var apply bool
	c := f.flags(&cobra.Command{
		Use:   "prune --before SEQ | --keep N | --older-than AGE",
		Short: "Remove old receipts that every witness holds, and keep their hashes",
		Long: "Remove receipts from the beginning of the chain. Only those go that every witness of the chain has\n" +
			"cosigned; genesis and rotations stay, and so do all hashes: heads, proofs and verify go on. What the\n" +
			"removed receipts said is gone from here, so export or archive them first. A receipt tells of it.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := a.chainDir(f.dir)
			if err != nil {
				return err
			}
			before, witnessed, err := a.prunable(dir, r)
			if err != nil {
				return err
			}
			if !apply {
				a.print("receipts before %d would go: %d are witnessed by all\n", min(before, witnessed), witnessed)
				a.say("--apply removes them; there is no way back")
				return nil
			}
			return a.changeChain(c.Context(), f, func(ch *chain.Chain) error { return a.prune(c.Context(), ch, before, witnessed) })
		},
	})
	c.Flags().Uint64Var(&r.before, "before", 0, "remove the receipts before this one")
	c.Flags().Uint64Var(&r.keep, "keep", 0, "keep the newest N")
	c.Flags().DurationVar(&r.olderThan, "older-than", 0, "remove what is older, by the receipts' own clock, such as 8760h")
	c.Flags().BoolVar(&apply, "apply", false, "remove them; without this nothing is changed")
	c.MarkFlagsOneRequired("before", "keep", "older-than")
	c.MarkFlagsMutuallyExclusive("before", "keep", "older-than")
	return c
}

func (a *app) prune(ctx context.Context, ch *chain.Chain, before, witnessed uint64) error {
	first, pos, err := ch.Prune(ctx, before, witnessed)
	if err != nil {
		return err
	}
	a.print("receipts before %d are gone, their hashes are kept; receipt %d tells of it\n", first, pos.Seq)
	return nil
}

// prunable turns a range into a seq, and tells how far all witnesses follow.
func (a *app) prunable(dir string, r pruneRange) (before, witnessed uint64, err error) {
	witnessed, err = anchor.WitnessedByAll(dir)
	if err != nil {
		return 0, 0, err
	}
	if witnessed == 0 {
		return 0, 0, fmt.Errorf("nothing may be pruned: no witness holds this chain, or one has seen nothing of it; anchor status tells")
	}
	reader, err := chain.OpenReader(dir)
	if err != nil {
		return 0, 0, err
	}
	defer reader.Close()
	switch {
	case r.before > 0:
		before = r.before
	case r.keep > 0:
		size, err := reader.Size()
		if err != nil {
			return 0, 0, err
		}
		before = size - min(size, r.keep)
	default:
		if before, err = firstSince(reader, a.Now().Add(-r.olderThan)); err != nil {
			return 0, 0, err
		}
	}
	if min(before, witnessed) <= reader.Pruned() {
		return 0, 0, fmt.Errorf("nothing to prune: %d receipts are witnessed by all, receipts before %d are gone already", witnessed, reader.Pruned())
	}
	return before, witnessed, nil
}

// firstSince is the seq of the first receipt of that time or later.
func firstSince(r *chain.Reader, since time.Time) (uint64, error) {
	seq := uint64(0)
	for line, err := range r.Lines(r.Pruned()) {
		if err != nil {
			return 0, err
		}
		wall, err := time.Parse(time.RFC3339Nano, readEntry(line).Time)
		if err == nil && !wall.Before(since) {
			return line.Seq, nil
		}
		seq = line.Seq
	}
	return seq, nil
}

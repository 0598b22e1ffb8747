package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/witness"
	"toolguardian/witness/api"
)

func (a *app) witnessAgents() *cobra.Command {
	return group("agents", "The chains that this witness knows", a.witnessAgentsAdd(), a.witnessAgentsList(), a.witnessAgentsRevoke(), a.witnessAgentsRotate())
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

func (a *app) witnessAgentsRevoke() *cobra.Command {
	var w witnessOptions
	var since uint64
	c := w.flags(&cobra.Command{
		Use: "revoke ORIGIN", Short: "End a chain's head key, as the operator", Args: cobra.ExactArgs(1),
		Long: "End a chain's head key: the witness takes nothing more by it.\n" +
			"With --since its heads from that leaf of the log on, the leaf included, are doubtful to every auditor.",
		RunE: func(c *cobra.Command, args []string) error {
			from := api.Ref{}
			if c.Flags().Changed("since") {
				from = api.At(since)
			}
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				index, err := op.RevokeAgent(ctx, args[0], from)
				if err != nil {
					return err
				}
				a.print("revoked at leaf %d\n", index)
				a.say("the chain goes on with: tool-guardian witness agents rotate VKEY --from-size N --data %s, or as a successor", w.data)
				return nil
			})
		},
	})
	c.Flags().Uint64Var(&since, "since", 0, "the first leaf of the log whose head is doubtful (default: none is)")
	return c
}

func (a *app) witnessAgentsRotate() *cobra.Command {
	var w witnessOptions
	var from uint64
	c := w.flags(&cobra.Command{
		Use: "rotate VKEY --from-size N", Short: "Put a chain's new head key in force, as the operator", Args: cobra.ExactArgs(1),
		Long: "Put a new head key of an enrolled chain in force by the operator's word, where the old key is lost or revoked.\n" +
			"The key's name is the chain's origin. Auditors see that the chain's old key did not consent, and pin the new one.",
		RunE: func(c *cobra.Command, args []string) error {
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				index, err := op.RotateAgent(ctx, args[0], from)
				if err != nil {
					return err
				}
				a.print("rotated at leaf %d\n", index)
				return nil
			})
		},
	})
	c.Flags().Uint64Var(&from, "from-size", 0, "the smallest head it signs: the seq of the chain's rotation receipt plus 1")
	must(c.MarkFlagRequired("from-size"))
	return c
}

func (a *app) printAgents(agents []witness.Agent) error {
	t := a.table("origin", "head", "leaf", "last head", "state", "key", "forks", "conflicts")
	for _, g := range agents {
		last := "never"
		if !g.HeadTime.IsZero() {
			last = g.HeadTime.UTC().Format(time.DateTime)
		}
		t.row(g.Origin, g.HeadSize, g.HeadAt, last, string(g.State), keyState(g), len(g.Forks), g.Conflicts)
	}
	t.flush()
	return nil
}

func keyState(g witness.Agent) string {
	switch {
	case g.Revoked != nil:
		return fmt.Sprintf("revoked since leaf %d", g.Revoked.Since)
	case g.KeyFrom > 0:
		return fmt.Sprintf("rotated, from size %d", g.KeyFrom)
	}
	return "first"
}

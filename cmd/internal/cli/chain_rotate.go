package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"toolguardian/chain"
	"toolguardian/receipts"
)

// chainRotate puts new keys in force.
func (a *app) chainRotate() *cobra.Command {
	var f chainFlag
	return f.flags(&cobra.Command{
		Use: "rotate", Short: "Put new keys in force; the old ones sign that and are gone", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.changeChain(c.Context(), f, func(ch *chain.Chain) error {
				was := ch.HeadKey()
				pos, err := ch.Rotate(c.Context())
				if err != nil {
					return err
				}
				a.print("receipt %d puts new keys in force\nwas  %s\nis   %s\n", pos.Seq, was, ch.HeadKey())
				a.say("witnesses are told with the next head; auditors who pinned the old key keep it pinned and see the rotation")
				return nil
			})
		},
	})
}

// changeChain opens an existing chain for writing.
func (a *app) changeChain(ctx context.Context, f chainFlag, act func(*chain.Chain) error) error {
	dir, err := a.chainDir(f.dir)
	if err != nil {
		return err
	}
	r, err := chain.OpenReader(dir) // a chain that is not there is not made
	if err != nil {
		return err
	}
	if err := r.Close(); err != nil {
		return err
	}
	o := a.chainOptions(dir)
	o.Capture = receipts.CaptureCLI
	c, err := chain.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(act(c), c.Close())
}

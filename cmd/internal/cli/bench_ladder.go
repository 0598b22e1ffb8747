package cli

import (
	"github.com/spf13/cobra"

	"toolguardian/cmd/internal/bench"
)

func (a *app) benchLadder() *cobra.Command {
	var o bench.LadderOptions
	c := &cobra.Command{
		Use: "ladder", Short: "How short the output ladder makes results, and what that costs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Progress = a.benchProgress()
			r, err := bench.Ladder(c.Context(), o)
			o.Progress.Done()
			if err != nil {
				return err
			}
			return a.printBench(r)
		},
	}
	c.Flags().StringVar(&o.Results, "results", "", "folder of recorded results to shape as well")
	c.Flags().IntVar(&o.Bytes, "bytes", 34<<20, "length of the giant lines")
	c.Flags().IntVar(&o.Turns, "turns", 8, "turns of each giant line")
	return c
}

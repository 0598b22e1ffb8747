package cli

import (
	"os"

	"github.com/spf13/cobra"

	"toolguardian/cmd/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	var keep string
	c := &cobra.Command{
		Use: "demo", Short: "See the whole story on this machine, in under a minute", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			return demo.Run(c.Context(), demo.Options{Exe: exe, Keep: keep, Out: a.Out, Now: a.Now})
		},
	}
	c.Flags().StringVar(&keep, "keep", "", "leave everything in this new folder, to look at")
	return c
}

package cli

import (
	"github.com/spf13/cobra"
)

// root builds the command tree. Called without a subcommand it is the router.
func (a *app) root() *cobra.Command {
	var o routeOptions
	var named aliases
	root := &cobra.Command{
		Use:   "tool-guardian",
		Short: "Route an agent's tool calls and prove afterwards what happened",
		Long: "One MCP server in front of all your others. Without a subcommand it speaks MCP over stdio;\n" +
			"every call it routes becomes a signed receipt in a local chain that a witness can hold you to.",
		Args:          named.args,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.version {
				return a.version()
			}
			if ran, err := a.alias(c.Context(), c, &named, o); ran {
				return err
			}
			return a.route(c.Context(), o)
		},
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON for machines")
	o.flags(root)
	named.flags(root.Flags())
	root.Flags().BoolVar(&o.version, "version", false, "print the version")
	root.AddCommand(
		a.receiptsCommand(), a.chainCommand(), a.anchorCommand(), a.verifyCommand(), a.hookCommand(),
		a.witnessCommand(), a.tsaCommand(), a.demoCommand(), a.benchCommand(), a.versionCommand(), a.filesCommand(),
		a.skillsCommand(), a.selftestCommand(), a.usageCommand(), a.setupCommand(), a.manCommand(),
	)
	return root
}

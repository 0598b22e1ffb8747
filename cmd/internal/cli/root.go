package cli

import (
	"github.com/spf13/cobra"
)

// root builds the command tree. Called without a subcommand it is the router.
func (a *app) root() *cobra.Command {
	var o routeOptions
	root := &cobra.Command{
		Use:   "tool-guardian",
		Short: "Route an agent's tool calls and prove afterwards what happened",
		Long: "One MCP server in front of all your others. Without a subcommand it speaks MCP over stdio;\n" +
			"every call it routes becomes a signed receipt in a local chain that a witness can hold you to.",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.version:
				return a.version()
			case o.skillsReport:
				return a.skillsReport(o)
			}
			return a.route(c.Context(), o)
		},
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON for machines")
	root.Flags().StringVar(&o.config, "config", "", "the file with mcpServers (default ~/.tool-guardian/mcp.json)")
	root.Flags().StringVar(&o.envFile, "env-file", "", "the .env to read (default: searched upward from the config)")
	root.Flags().BoolVar(&o.version, "version", false, "print the version")
	root.Flags().BoolVar(&o.skillsReport, "skills-report", false, "print what loading every skill up front would cost")
	root.AddCommand(
		a.receiptsCommand(), a.chainCommand(), a.anchorCommand(), a.verifyCommand(), a.hookCommand(),
		a.witnessCommand(), a.tsaCommand(), a.demoCommand(), a.benchCommand(), a.versionCommand(), a.filesCommand(),
		a.skillsCommand(),
	)
	return root
}

package cli

import (
	"github.com/spf13/cobra"

	"toolguardian/cmd/internal/files"
)

// filesCommand serves a folder over MCP: the demo's backend, and the smallest
// server to try the router with.
func (a *app) filesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "files DIR", Short: "Serve one folder as a small MCP server over stdio", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return files.Serve(c.Context(), args[0], Version, a.In, a.Out)
		},
	}
}

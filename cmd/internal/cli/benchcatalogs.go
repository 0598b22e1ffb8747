package cli

import (
	"os"

	"github.com/spf13/cobra"

	"toolguardian/cmd/internal/bench"
)

// defaultCatalogs lies beside a checkout of this repository.
const defaultCatalogs = "../shared/catalogs"

func (a *app) benchSearch() *cobra.Command {
	var o bench.SearchOptions
	c := &cobra.Command{
		Use: "search", Short: "How often a search finds the right tool, by words alone", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := bench.Search(o)
			if err != nil {
				return err
			}
			return a.printBench(r)
		},
	}
	c.Flags().StringVar(&o.Catalogs, "catalogs", defaultCatalogs, "folder with recorded tools/list answers")
	c.Flags().StringVar(&o.Queries, "queries", "", "a file of queries over all of them: `QUERY => server.tool, …` a line, QUERY alone where nothing should be listed")
	return c
}

func (a *app) benchTokens() *cobra.Command {
	var o bench.TokensOptions
	c := &cobra.Command{
		Use: "tokens", Short: "What tool schemas cost on every request, without the router and with it", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Exe, err = os.Executable(); err != nil {
				return err
			}
			r, err := bench.Tokens(c.Context(), o)
			if err != nil {
				return err
			}
			return a.printBench(r)
		},
	}
	c.Flags().StringVar(&o.Catalogs, "catalogs", defaultCatalogs+"/reference", "folder with recorded tools/list answers")
	c.Flags().StringVar(&o.Dir, "dir", "", "where the temporary folder is made")
	return c
}

// benchReplay is a server with the tools of a recorded catalogue.
func (a *app) benchReplay() *cobra.Command {
	return &cobra.Command{
		Use: "replay FILE", Short: "Serve a recorded catalogue over stdio", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error { return bench.Replay(args[0], a.In, a.Out) },
	}
}

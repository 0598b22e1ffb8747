package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"toolguardian/witness"
	"toolguardian/witness/store/bolt"
)

func (a *app) witnessBackup() *cobra.Command {
	var w witnessOptions
	var out string
	c := w.flags(&cobra.Command{
		Use: "backup", Short: "Copy the log, never a key, while the server goes on", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.operate(c.Context(), w, func(ctx context.Context, op witness.Operator) error {
				path, err := filepath.Abs(out)
				if err != nil {
					return err
				}
				info, err := op.Backup(ctx, path)
				if err != nil {
					return err
				}
				a.printBackup(info, path)
				a.say("size and root stand beside it in %s.json; keep the key files apart, they are not in it", path)
				return nil
			})
		},
	})
	c.Flags().StringVar(&out, "out", "", "the new file; FILE.json with size and root is written beside it")
	must(c.MarkFlagRequired("out"))
	return c
}

func (a *app) witnessRestore() *cobra.Command {
	var w witnessOptions
	var from string
	c := w.flags(&cobra.Command{
		Use: "restore", Short: "Make a data folder from a backup, never over another log", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			info, err := witness.Restore(c.Context(), w.data, from, bolt.OpenDir)
			if err != nil {
				return err
			}
			a.printBackup(info, from)
			a.say("%s has no private keys. The newest heads may be missing in it, so open the next shard:", w.data)
			a.say("next: tool-guardian witness recover --data %s --reason rollback --head-file F --checkpoint F…", w.data)
			return nil
		},
	})
	c.Flags().StringVar(&from, "from", "", "the backup; its FILE.json must lie beside it")
	must(c.MarkFlagRequired("from"))
	return c
}

func (a *app) printBackup(info witness.BackupInfo, path string) {
	if a.json {
		a.printJSON(info)
		return
	}
	a.print("backup    %s\nlog       %s\nsize      %d\nroot      %s\nsha256    %s\n", path, info.Origin, info.Size, info.Root.Base64(), info.SHA256)
}

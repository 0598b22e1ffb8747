package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/receipts"
)

func (a *app) receiptsProof() *cobra.Command {
	var f chainFlag
	var url, out string
	c := f.flags(&cobra.Command{
		Use: "proof SEQ", Short: "Write a file that proves one receipt without its neighbours", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			seq, err := parseSeq(args[0])
			if err != nil {
				return err
			}
			dir, err := a.chainDir(f.dir)
			if err != nil {
				return err
			}
			return a.proveReceipt(c.Context(), dir, seq, url, out)
		},
	})
	c.Flags().StringVar(&url, "witness", "", "the witness to ask (default: the first that the chain is enrolled at)")
	c.Flags().StringVarP(&out, "out", "o", "", "where the proof goes (default SEQ.proof)")
	return c
}

func (a *app) proveReceipt(ctx context.Context, dir string, seq uint64, url, out string) error {
	origin, err := anchor.OriginOf(dir)
	if err != nil {
		return noChain(dir, err)
	}
	if url == "" {
		if url, err = firstWitness(dir, origin); err != nil {
			return err
		}
	}
	snapshot, err := askWitness(ctx, url, origin, 0)
	if err != nil {
		if unreached(err) {
			err = fmt.Errorf("%w; %s", err, seeThatItRuns)
		}
		return fmt.Errorf("the witness at %s did not give its evidence: %w", url, err)
	}
	proof, err := buildProof(dir, seq, snapshot)
	if err != nil {
		return err
	}
	if out == "" {
		out = fmt.Sprintf("%d.proof", seq)
	}
	if err := os.WriteFile(out, proof.Bytes(), 0o644); err != nil {
		return err
	}
	a.print("%s\n", out)
	a.say("anyone with the keys checks it offline: tool-guardian verify %s --witness-key … --chain-key …", out)
	return nil
}

func firstWitness(dir, origin string) (string, error) {
	all, err := anchor.Witnesses(dir, origin)
	if err != nil {
		return "", err
	}
	for _, w := range all {
		if w.Log != nil {
			return w.URL, nil
		}
	}
	return "", usagef("the chain is enrolled at no witness with a log: name one with --witness, or enrol")
}

func buildProof(dir string, seq uint64, s *anchor.Snapshot) (anchor.Container, error) {
	r, err := chain.OpenReader(dir)
	if err != nil {
		return anchor.Container{}, err
	}
	defer r.Close()
	size, err := r.Size()
	if err != nil {
		return anchor.Container{}, err
	}
	if err := within(r, seq); err != nil {
		return anchor.Container{}, err
	}
	tree, err := anchor.ReadTree(r, size)
	if err != nil {
		return anchor.Container{}, err
	}
	before := func(nb receipts.NotBefore) (note, token []byte) { return anchor.Before(dir, nb) }
	return anchor.BuildProof(tree, seq, s, before)
}

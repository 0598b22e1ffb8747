package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/transparency-dev/formats/log"
	fnote "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
)

const bundleWidth = 256

// logCheck is one log as tessera's client sees it.
type logCheck struct {
	src      *client.HTTPFetcher
	verifier note.Verifier // the log's key; its name is the origin
	cosigner note.Verifier // nil when not asked for
	cp       *log.Checkpoint
	raw      []byte
}

func checkLog(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("log", flag.ContinueOnError)
	base := flags.String("url", "", "the log's URL")
	vkey := flags.String("vkey", "", "the log's vkey, type 01")
	cosigner := flags.String("cosigner", "", "a cosigner's vkey, type 04, that must have signed the note in the head leaf")
	old := flags.String("old", "", "file of an older checkpoint, which the log must have outgrown consistently")
	save := flags.String("save", "", "file to write the checkpoint to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c, err := newLogCheck(*base, *vkey, *cosigner)
	if err != nil {
		return err
	}
	if c.cp, c.raw, _, err = client.FetchCheckpoint(ctx, c.src.ReadCheckpoint, c.verifier, c.verifier.Name()); err != nil {
		return err
	}
	fmt.Printf("checkpoint: size %d, root %x\n", c.cp.Size, c.cp.Hash)
	if err := c.headLeaf(ctx); err != nil {
		return fmt.Errorf("head leaf: %w", err)
	}
	if *old != "" {
		if err := c.consistency(ctx, *old); err != nil {
			return fmt.Errorf("consistency: %w", err)
		}
	}
	if err := fsck.New(c.verifier.Name(), c.verifier, c.src, leafHashes, fsck.Opts{N: 2}).Check(ctx); err != nil {
		return fmt.Errorf("fsck: %w", err)
	}
	fmt.Println("fsck: every tile and bundle is right")
	if *save != "" {
		return os.WriteFile(*save, c.raw, 0o600)
	}
	return nil
}

func newLogCheck(base, vkey, cosigner string) (*logCheck, error) {
	u, err := url.Parse(strings.TrimSuffix(base, "/") + "/")
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("--url %q is not a URL: %v", base, err)
	}
	c := new(logCheck)
	if c.src, err = client.NewHTTPFetcher(u, nil); err != nil {
		return nil, err
	}
	if c.verifier, err = note.NewVerifier(vkey); err != nil {
		return nil, fmt.Errorf("--vkey: %w", err)
	}
	if cosigner != "" {
		if c.cosigner, err = fnote.NewVerifierForCosignatureV1(cosigner); err != nil {
			return nil, fmt.Errorf("--cosigner: %w", err)
		}
	}
	return c, nil
}

// headLeaf proves that the newest head leaf is in the tree.
func (c *logCheck) headLeaf(ctx context.Context) error {
	leaf, index, err := c.newestHead(ctx)
	if err != nil {
		return err
	}
	builder, err := client.NewProofBuilder(ctx, c.cp.Size, c.src.ReadTile)
	if err != nil {
		return err
	}
	path, err := builder.InclusionProof(ctx, index)
	if err != nil {
		return err
	}
	hash := rfc6962.DefaultHasher.HashLeaf(leaf)
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, index, c.cp.Size, hash, path, c.cp.Hash); err != nil {
		return err
	}
	fmt.Printf("inclusion: head leaf %d, %d hashes\n", index, len(path))
	if c.cosigner == nil {
		return nil
	}
	_, body, _ := bytes.Cut(leaf, []byte("\n\n"))
	if _, err := note.Open(body, note.VerifierList(c.cosigner)); err != nil {
		return fmt.Errorf("cosignature in leaf %d: %w", index, err)
	}
	fmt.Printf("cosignature: %s on the head in leaf %d\n", c.cosigner.Name(), index)
	return nil
}

// newestHead looks from the end for a leaf of type head.
func (c *logCheck) newestHead(ctx context.Context) (leaf []byte, index uint64, err error) {
	for end := c.cp.Size; end > 0; {
		bundle := (end - 1) / bundleWidth
		b, err := client.GetEntryBundle(ctx, c.src.ReadEntryBundle, bundle, c.cp.Size)
		if err != nil {
			return nil, 0, err
		}
		for i := len(b.Entries) - 1; i >= 0; i-- {
			if bytes.HasPrefix(b.Entries[i], []byte("tool-guardian/head/v1\n")) {
				return b.Entries[i], bundle*bundleWidth + uint64(i), nil
			}
		}
		end = bundle * bundleWidth
	}
	return nil, 0, errors.New("the log holds none")
}

// consistency lets tessera's tracker move from the old checkpoint to the
// newest; it checks the proof between them.
func (c *logCheck) consistency(ctx context.Context, file string) error {
	oldRaw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	consensus := client.UnilateralConsensus(c.src.ReadCheckpoint)
	tracker, err := client.NewLogStateTracker(ctx, c.src.ReadTile, oldRaw, c.verifier, c.verifier.Name(), consensus)
	if err != nil {
		return err
	}
	from := tracker.Latest().Size
	_, path, _, err := tracker.Update(ctx)
	if err != nil {
		return err
	}
	to := tracker.Latest().Size
	if from == 0 || from >= to {
		return fmt.Errorf("from size %d to %d: nothing was proved; let the log grow first", from, to)
	}
	fmt.Printf("consistency: size %d to %d, %d hashes\n", from, to, len(path))
	return nil
}

// leafHashes hashes the entries of a bundle for fsck.
func leafHashes(bundle []byte) ([][]byte, error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	hashes := make([][]byte, 0, len(b.Entries))
	for _, e := range b.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(e))
	}
	return hashes, nil
}

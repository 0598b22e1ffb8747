package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/receipts"
)

func (a *app) chainCommand() *cobra.Command {
	return group("chain", "The local chain of receipts", a.chainStatus(), a.chainVerify(), a.chainRepair(), a.chainRotate(), a.chainPrune())
}

func (a *app) chainStatus() *cobra.Command {
	var f chainFlag
	return f.flags(&cobra.Command{
		Use: "status", Short: "Show where the chain lies, its origin, keys and size", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.chainDir(f.dir)
			if err != nil {
				return err
			}
			st, err := readStatus(dir)
			if err != nil {
				return err
			}
			if a.json {
				a.printJSON(st)
				return nil
			}
			a.print("folder    %s\norigin    %s\nhead key  %s\nreceipts  %d\n", st.Dir, st.Origin, st.HeadKey, st.Size)
			if st.Rotated > 0 {
				a.print("rotated   by receipt %d\n", st.Rotated)
			}
			if st.Pruned > 0 {
				a.print("pruned    before %d\n", st.Pruned)
			}
			if st.Repair != "" {
				a.print("repair    %s\n", st.Repair)
			}
			return nil
		},
	})
}

// chainState is what `chain status` shows.
type chainState struct {
	Dir     string `json:"dir"`
	Origin  string `json:"origin"`
	HeadKey string `json:"headKey"`           // in force
	Rotated uint64 `json:"rotated,omitempty"` // the receipt that put it in force, 0 for the genesis
	Pruned  uint64 `json:"pruned,omitempty"`  // receipts before this one are hashes alone
	Size    uint64 `json:"size"`
	Repair  string `json:"repair,omitempty"`
}

func readStatus(dir string) (chainState, error) {
	r, err := chain.OpenReader(dir)
	if err != nil {
		return chainState{}, err
	}
	defer r.Close()
	st := chainState{Dir: dir}
	if st.Size, err = r.Size(); err != nil {
		return st, err
	}
	keys, err := keysInForce(r, st.Size)
	if err != nil {
		return st, err
	}
	st.Origin, st.HeadKey, st.Rotated, st.Pruned = keys.Origin, keys.HeadKey, keys.Seq, r.Pruned()
	if fix, err := chain.Inspect(chain.Options{Dir: dir}); err == nil && fix.Needed() {
		st.Repair = "needed: tool-guardian chain repair shows what it would do"
	}
	return st, nil
}

// keysInForce is the genesis or rotation that the newest receipt names; the
// genesis where that one cannot be read.
func keysInForce(r *chain.Reader, size uint64) (*receipts.Statement, error) {
	if last, err := readStatement(r, max(size, 1)-1); err == nil {
		if last.Kind.BringsKeys() {
			return last, nil
		}
		if keys, err := readStatement(r, last.KeySeq); err == nil && keys.Kind.BringsKeys() {
			return keys, nil
		}
	}
	return readStatement(r, 0)
}

func (a *app) chainVerify() *cobra.Command {
	var f chainFlag
	return f.flags(&cobra.Command{
		Use: "verify", Short: "Check signatures, links and tree of the chain alone, without any witness", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := a.chainDir(f.dir)
			if err != nil {
				return err
			}
			return a.verify(c.Context(), []string{dir}, verifyOptions{})
		},
	})
}

func (a *app) chainRepair() *cobra.Command {
	var f chainFlag
	var apply bool
	c := f.flags(&cobra.Command{
		Use: "repair", Short: "Show what a crash left, and mend it with --apply", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := a.chainDir(f.dir)
			if err != nil {
				return err
			}
			o := a.chainOptions(dir)
			fix, err := chain.Inspect(o)
			if err != nil {
				return err
			}
			a.printRepair(fix)
			if !fix.Needed() || !apply {
				return nil
			}
			ch, err := chain.Open(c.Context(), o)
			if err != nil {
				return err
			}
			a.say("mended; receipts say so")
			return ch.Close()
		},
	})
	c.Flags().BoolVar(&apply, "apply", false, "mend it; without this nothing is changed")
	return c
}

func (a *app) printRepair(r chain.Repair) {
	a.print("%d good receipts, the last segment is %s\n", r.Lines, r.Segment)
	switch {
	case r.Ends != "":
		a.print("the chain may not go on: %s\n", r.Ends)
	case r.Torn > 0:
		a.print("TORN TAIL at byte %d: %d bytes would move to quarantine, and a receipt would say so\n", r.Offset, r.Torn)
	case r.Newline:
		a.print("the last receipt is whole and lacks its newline\n")
	}
	if len(r.Lost) > 0 {
		a.print("%d salts were lost; an erasure receipt would say so\n", len(r.Lost))
	}
	if !r.Needed() {
		a.print("nothing to repair\n")
	} else {
		a.say("--apply mends it; the next start of the router does the same")
	}
}

// chainOptions are how this program opens a chain for writing.
func (a *app) chainOptions(dir string) chain.Options {
	return chain.Options{Dir: dir, Version: Version, Now: a.Now, Logger: a.logger(),
		KeptHeads: func() (uint64, []byte, error) { return anchor.KeptHead(dir) }}
}

// isFatal tells whether a chain cannot be opened until a person acts.
func isFatal(err error) bool {
	for _, sentinel := range []error{chain.ErrKey, chain.ErrFormat, chain.ErrNetwork} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

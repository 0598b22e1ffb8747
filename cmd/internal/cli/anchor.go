package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
)

func (a *app) anchorCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use: "anchor", Short: "Stream the chain's heads to witnesses, or to a file", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if to == "" {
				return c.Help()
			}
			return a.anchorTo(c.Context(), to)
		},
	}
	c.Flags().StringVar(&to, "to", "", "append a signed head to this flat file, to be kept elsewhere")
	c.AddCommand(a.anchorEnroll(), a.anchorStatus(), a.anchorPush())
	return c
}

// withChain opens the user's chain, makes it on first use, and closes it after.
func (a *app) withChain(ctx context.Context, act func(c *chain.Chain, dir string) error) error {
	dir, err := a.evidenceDir()
	if err != nil {
		return err
	}
	c, err := chain.Open(ctx, a.chainOptions(dir))
	if err != nil {
		return err
	}
	return errors.Join(act(c, dir), c.Close())
}

func (a *app) anchorTo(ctx context.Context, path string) error {
	return a.withChain(ctx, func(c *chain.Chain, _ string) error {
		note, cp, err := c.Head(ctx)
		if err != nil {
			return err
		}
		if err := anchor.AppendFlat(path, note); err != nil {
			return err
		}
		a.print("%s %d %s\n", cp.Origin, cp.Size, cp.Root.Base64())
		a.say("appended to %s; keep it where this host cannot change it", path)
		return nil
	})
}

func (a *app) anchorEnroll() *cobra.Command {
	var url, token, tsaCA string
	var keys []string
	c := &cobra.Command{
		Use: "enroll --witness URL --token T", Short: "Make this chain known to a witness", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			pinned, err := parseVkeys("--witness-key", keys)
			if err != nil {
				return err
			}
			if token == "" && len(pinned) == 0 {
				return usagef("give --token from `tool-guardian witness token`, or --witness-key for each key of the witness")
			}
			if !isURL(url) {
				return usagef("--witness %q: the address of a witness begins with http:// or https://", url)
			}
			if tsaCA != "" { // before the token is spent
				if _, err := readRoots(tsaCA); err != nil {
					return err
				}
			}
			return a.withChain(c.Context(), func(ch *chain.Chain, dir string) error {
				w, err := anchor.Enroll(c.Context(), ch, anchor.Enrolment{Dir: dir, URL: url, Token: token, Keys: pinned})
				if err != nil && unreached(err) {
					return fmt.Errorf("%w; %s", err, seeThatItRuns)
				}
				if err != nil {
					return err
				}
				a.printEnrolled(ch, w)
				return keepRoots(dir, tsaCA)
			})
		},
	}
	c.Flags().StringVar(&url, "witness", "", "the witness's address")
	c.Flags().StringVar(&token, "token", "", "the token that its operator made")
	c.Flags().StringArrayVar(&keys, "witness-key", nil, "a key of the witness, where there is no token; repeats")
	c.Flags().StringVar(&tsaCA, "tsa-ca", "", "PEM file with the root of its timestamp authority: receipts then say \"not before\"")
	must(c.MarkFlagRequired("witness"))
	return c
}

func (a *app) printEnrolled(ch *chain.Chain, w anchor.Witness) {
	a.print("chain    %s\n", ch.HeadKey())
	if w.Log != nil {
		a.print("witness  %s\n", w.Log)
	}
	a.print("witness  %s\n", w.Cosigner)
	a.say("auditors pin these keys; the router streams heads from its next start")
}

func (a *app) anchorStatus() *cobra.Command {
	var f chainFlag
	return f.flags(&cobra.Command{
		Use: "status", Short: "Show how far each witness follows the chain", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.chainDir(f.dir)
			if err != nil {
				return err
			}
			st, err := anchor.ReadStatus(dir, a.Now())
			if err != nil {
				return noChain(dir, err)
			}
			if a.json {
				a.printJSON(st)
				return nil
			}
			a.printAnchorStatus(st)
			return nil
		},
	})
}

func (a *app) printAnchorStatus(st anchor.Status) {
	a.print("chain %s, %d receipts\n", st.Origin, st.Size)
	if len(st.Witnesses) == 0 {
		a.print("no witness: tool-guardian anchor enroll --witness URL --token T\n")
		return
	}
	t := a.table("witness", "witnessed", "lag", "cosigned", "log", "last error")
	for _, w := range st.Witnesses {
		cosigned := "never"
		if w.Cosigned != nil {
			cosigned = w.Cosigned.UTC().Format(time.DateTime)
		}
		t.row(w.Name, w.Size, fmt.Sprintf("%d receipts, %.0f s", w.Lag, w.LagSeconds), cosigned, logged(w),
			strings.Join(append(w.Alarms, w.LastError), " "))
	}
	t.flush()
}

func logged(w anchor.WitnessStatus) string {
	switch {
	case w.Logged:
		return fmt.Sprintf("size %d", w.LogSize)
	case w.Cosigned == nil:
		return "nothing yet"
	}
	return "cosigned, not logged"
}

func (a *app) anchorPush() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use: "push", Short: "Send the newest head to every witness now and wait for the answers", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withChain(c.Context(), func(ch *chain.Chain, dir string) error { return a.push(c.Context(), ch, dir, timeout) })
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait")
	return c
}

// push streams until no witness lags. Where a router streams already, it waits
// for that one.
func (a *app) push(ctx context.Context, ch *chain.Chain, dir string, timeout time.Duration) error {
	s, err := a.streamer(ch, dir, 0, 0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	st, behind := a.untilWitnessed(ctx, dir)
	cancel()
	err = <-ran
	if !a.json {
		a.printAnchorStatus(st)
	} else {
		a.printJSON(st)
	}
	return errors.Join(behind, err)
}

// streamer is the one way in which this program streams a chain. A beat of 0
// promises the witness no signs of life.
func (a *app) streamer(ch *chain.Chain, dir string, beat, interval time.Duration) (*anchor.Streamer, error) {
	roots, err := keptRoots(dir)
	if err != nil {
		return nil, err
	}
	return anchor.NewStreamer(anchor.Options{Chain: ch, Dir: dir, Heartbeat: beat, Interval: interval, Roots: roots, Now: a.Now, Logger: a.logger()})
}

func (a *app) untilWitnessed(ctx context.Context, dir string) (anchor.Status, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := anchor.ReadStatus(dir, a.Now())
		if err != nil {
			return st, err
		}
		lag := uint64(0)
		for _, w := range st.Witnesses {
			lag = max(lag, w.Lag)
		}
		if lag == 0 {
			return st, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return st, fmt.Errorf("%d receipts are still not witnessed; anchor status tells why", lag)
		}
	}
}

// parseVkeys reads verifier keys from the command line.
func parseVkeys(flag string, lines []string) ([]tlog.Vkey, error) {
	var keys []tlog.Vkey
	for _, l := range lines {
		k, err := tlog.ParseVkey(strings.TrimSpace(l))
		if err != nil {
			return nil, usagef("%s %q: %v", flag, l, err)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

package cli

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/witness"
	"toolguardian/witness/store/bolt"
)

// serveFlags are the flags of witness serve.
type serveFlags struct {
	witnessOptions
	listenOptions
	headFile  string
	readToken string // file
	logs      string
	every     time.Duration
	audit     time.Duration
	rate      float64
	tsa       []string
	quorum    int

	cosigners  string   // file
	cosignLogs []string // vkeys
}

func (a *app) witnessServe() *cobra.Command {
	var f serveFlags
	c := f.witnessOptions.flags(&cobra.Command{
		Use: "serve", Short: "Serve the witness over HTTP until interrupted", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := a.serveOptions(f)
			if err != nil {
				return err
			}
			s, err := witness.New(o)
			if err != nil {
				return err
			}
			if len(o.Authorities) == 0 {
				a.say("time comes from the built-in authority: self-issued, no independent evidence; its root is %s",
					filepath.Join(f.data, "tsa", "root.pem"))
			}
			return errors.Join(a.serveWitness(c.Context(), s, f.listenOptions), s.Close())
		},
	})
	flags := c.Flags()
	flags.StringVar(&f.headFile, "head-file", "", "where to keep the newest checkpoint, outside the data folder")
	flags.StringArrayVar(&f.tsa, "tsa", nil, "NAME=URL[,ca=PEM][,ess-v1]: an authority of time; repeats; none: the built-in one, self-issued")
	flags.IntVar(&f.quorum, "tsa-quorum", 1, "how many distinct operators must stamp a checkpoint")
	flags.DurationVar(&f.every, "stamp-every", time.Minute, "how often new checkpoints are timestamped")
	flags.StringVar(&f.cosigners, "cosigners", "", "a C2SP tlog-policy with the witnesses, and their URLs, that cosign our checkpoint")
	flags.StringArrayVar(&f.cosignLogs, "cosign-log", nil, "VKEY of another log whose checkpoints are cosigned and recorded, not logged; repeats")
	flags.DurationVar(&f.audit, "audit-every", 24*time.Hour, "how often the whole log is checked against itself; 0: never")
	flags.StringVar(&f.readToken, "read-token-file", "", "a file with the token that readers must send; none: reading is open")
	flags.Float64Var(&f.rate, "rate", 0, "heads and events a second that one origin may send; 0: 20, negative: any number")
	flags.StringVar(&f.logs, "log", "text", "the log on stderr: text or json")
	f.listenOptions.flags(c)
	return c
}

// serveOptions turns words and files into the witness's options.
func (a *app) serveOptions(f serveFlags) (o witness.Options, err error) {
	logger, err := a.serverLog(f.logs)
	if err != nil {
		return o, err
	}
	began := a.Now()
	o = witness.Options{Dir: f.data, Engine: bolt.OpenDir, HeadFile: f.headFile, StampEvery: f.every, TimeQuorum: f.quorum, RatePerSecond: f.rate,
		AuditEvery: f.audit, Now: a.Now, Mono: func() time.Duration { return time.Since(began) }, Logger: logger}
	if f.audit == 0 {
		o.AuditEvery = -1
	}
	if f.readToken != "" {
		if o.ReadToken, err = readSecret(f.readToken); err != nil {
			return o, err
		}
	}
	if f.quorum < 1 || f.quorum > max(1, len(f.tsa)) {
		return o, usagef("--tsa-quorum %d of %d authorities", f.quorum, max(1, len(f.tsa)))
	}
	if err := f.cosigning(&o); err != nil {
		return o, err
	}
	if o.Authorities, err = a.authorities(f, logger); err != nil {
		return o, err
	}
	return o, nil
}

// readSecret reads a token of one line.
func readSecret(name string) (string, error) {
	b, err := readInput(name)
	if err != nil {
		return "", err
	}
	const least = 16
	secret := strings.TrimSpace(string(b))
	if len(secret) < least || strings.ContainsAny(secret, " \t\r\n") {
		return "", usagef("%s: want one word of at least %d characters", name, least)
	}
	return secret, nil
}

// serverLog is more talkative than a command's: a server's log is read later.
func (a *app) serverLog(form string) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if a.Getenv("TOOL_GUARDIAN_DEBUG") == "1" {
		o.Level = slog.LevelDebug
	}
	switch form {
	case "text":
		return slog.New(slog.NewTextHandler(a.Err, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.Err, o)), nil
	}
	return nil, usagef("--log %q: want text or json", form)
}

// serveWitness runs the sequencer beside the HTTP server. Requests end first,
// so that each gets the answer it was promised; then the sequencer.
func (a *app) serveWitness(ctx context.Context, s *witness.Server, l listenOptions) error {
	runCtx, stopRun := context.WithCancel(context.WithoutCancel(ctx))
	httpCtx, stopHTTP := context.WithCancel(ctx)
	defer stopHTTP()
	ran := make(chan error, 1)
	go func() {
		defer stopHTTP()
		ran <- s.Run(runCtx)
	}()
	err := a.listenAndServe(httpCtx, l, s.Handler())
	stopRun()
	return errors.Join(err, <-ran)
}

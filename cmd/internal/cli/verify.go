package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/witness/api"
)

// verifyOptions are the flags of verify: what is checked against what, and
// what the auditor trusts.
type verifyOptions struct {
	against              string
	witnessKeys          []string
	policy               string
	chainKeys            []string
	chainPolicy, origin  string
	tsaCA                string
	requireTime, offline bool
	maxLag, from, to     *uint64 // nil: not given
	maxAge               time.Duration
}

// given is the value of a flag that was set, nil where it was not.
func given(c *cobra.Command, flag string, value uint64) *uint64 {
	if !c.Flags().Changed(flag) {
		return nil
	}
	return &value
}

func (a *app) verifyCommand() *cobra.Command {
	var o verifyOptions
	var lag, from, to uint64
	c := &cobra.Command{
		Use:   "verify [TARGET] --against WITNESS",
		Short: "Judge a chain or a proof against a witness, with keys you pin",
		Long: "Judge a chain's folder (default: yours) or a proof file.\n" +
			"--against is a witness's URL, a checkpoint file or a flat anchor file.\n" +
			"Nothing is trusted because it lies in what is verified: pin keys with --witness-key and --chain-key.\n" +
			"Exit 0 PASS, 1 FAIL, 2 INCOMPLETE or UNPINNED, 3 usage.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o.maxLag, o.from, o.to = given(c, "max-lag", lag), given(c, "from", from), given(c, "to", to)
			return a.verify(c.Context(), args, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.against, "against", "", "a witness's URL, a checkpoint file, or a flat anchor file")
	f.StringArrayVar(&o.witnessKeys, "witness-key", nil, "a key of the witness (vkey line); repeats")
	f.StringVar(&o.policy, "policy", "", "a C2SP tlog-policy file for the witness's checkpoint")
	f.StringArrayVar(&o.chainKeys, "chain-key", nil, "the chain's head key (vkey line); repeats")
	f.StringVar(&o.chainPolicy, "chain-policy", "", "a C2SP tlog-policy file for the chain's head")
	f.StringVar(&o.origin, "origin", "", "the chain's origin, which names its first key")
	f.StringVar(&o.tsaCA, "tsa-ca", "", "PEM file with roots of timestamp authorities; asks for time")
	f.BoolVar(&o.requireTime, "require-timestamp", false, "ask for time even without --tsa-ca")
	f.Uint64Var(&lag, "max-lag", 0, "how many receipts may follow the last witnessed head (default: not judged)")
	f.DurationVar(&o.maxAge, "max-age", 0, "how old the newest dated head may be, as 36h (default: not judged)")
	f.Uint64Var(&from, "from", 0, "judge a chain from this receipt on (seq)")
	f.Uint64Var(&to, "to", 0, "judge a chain up to this receipt (seq)")
	f.BoolVar(&o.offline, "offline", false, "ask nobody: --against must be a file")
	return c
}

func (a *app) verify(ctx context.Context, args []string, o verifyOptions) error {
	trust, err := o.trust(a)
	if err != nil {
		return err
	}
	target, err := a.chainDir(strings.Join(args, ""))
	if err != nil {
		return err
	}
	src := anchor.Source{Target: target, Against: o.against}
	if err := o.limits(&src); err != nil {
		return err
	}
	closeTarget, origin, err := openTarget(&src, target, trust)
	if err != nil {
		return err
	}
	defer closeTarget()
	if src.Chain == nil && src.Container == nil {
		a.say("tool-guardian: %s holds no chain: is that the path you meant?", target)
	}
	if src.Container != nil && (src.From != nil || src.To != nil) {
		return usagef("--from and --to choose receipts of a chain; %s proves one receipt", target)
	}
	if err := a.openAgainst(ctx, &src, o.against, origin); err != nil {
		return err
	}
	return a.judge(src, trust)
}

// limits reads what limits the question, and refuses what contradicts itself.
func (o verifyOptions) limits(src *anchor.Source) error {
	src.From, src.To = o.from, o.to
	switch {
	case o.from != nil && o.to != nil && *o.from > *o.to:
		return usagef("--from %d lies after --to %d", *o.from, *o.to)
	case o.maxAge < 0:
		return usagef("--max-age %s is less than nothing", o.maxAge)
	case o.offline && isURL(o.against):
		return usagef("--offline asks nobody, and --against %s is a URL: name a checkpoint file or an anchor file", o.against)
	}
	return nil
}

func isURL(s string) bool { return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") }

// judge verifies, prints the report and ends with the verdict's exit code.
func (a *app) judge(src anchor.Source, trust anchor.Trust) error {
	bar := a.progress("receipts checked")
	src.Progress = bar.set
	report := anchor.Verify(src, trust)
	bar.done()
	if a.json {
		a.printJSON(report)
	} else if err := report.WriteText(a.Out); err != nil {
		return err
	}
	return verdict(Code(report.Exit))
}

func (o verifyOptions) trust(a *app) (t anchor.Trust, err error) {
	t.Now, t.Origin, t.RequireTime, t.MaxAge = a.Now(), o.origin, o.requireTime, o.maxAge
	if t.WitnessKeys, err = parseVkeys("--witness-key", o.witnessKeys); err != nil {
		return t, err
	}
	if t.ChainKeys, err = parseVkeys("--chain-key", o.chainKeys); err != nil {
		return t, err
	}
	if t.Policy, err = readPolicy(o.policy); err != nil {
		return t, err
	}
	if t.ChainPolicy, err = readPolicy(o.chainPolicy); err != nil {
		return t, err
	}
	if o.tsaCA != "" {
		if t.TSARoots, err = readRoots(o.tsaCA); err != nil {
			return t, err
		}
	}
	t.MaxLag = o.maxLag
	return t, nil
}

func readPolicy(name string) (*tlog.Policy, error) {
	if name == "" {
		return nil, nil
	}
	b, err := readInput(name)
	if err != nil {
		return nil, err
	}
	p, err := tlog.ParsePolicy(b)
	if err != nil {
		return nil, usagef("policy %s: %v", name, err)
	}
	return p, nil
}

// openTarget opens a chain folder or reads a proof, and says whose chain it is.
// A folder without a chain stays nil in the source: that is a finding, not an
// error of the call, where the auditor knows which chain should be there.
func openTarget(src *anchor.Source, target string, t anchor.Trust) (closer func(), origin string, err error) {
	none := func() {}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		origin, err = missing(target, t)
		return none, origin, err
	case err != nil:
		return none, "", usagef("%v", err)
	case !info.IsDir():
		src.Container, origin, err = readProof(target)
		return none, origin, err
	}
	r, err := chain.OpenReader(target)
	if errors.Is(err, chain.ErrNoChain) || errors.Is(err, fs.ErrNotExist) {
		origin, err = missing(target, t)
		return none, origin, err
	}
	if err != nil {
		return none, "", err
	}
	src.Chain = r
	if !forAuditor(target) {
		src.Salts = r
	}
	origin, err = anchor.OriginOf(target)
	if err != nil {
		origin = expected(t)
	}
	return func() { r.Close() }, origin, nil
}

// forAuditor tells a copy that was made for an auditor, with neither the keys nor
// the salts, from a chain that has lost its salts where it is written.
func forAuditor(target string) bool {
	for _, private := range []string{"keys", "salts"} {
		if _, err := os.Stat(filepath.Join(target, private)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// missing is the origin of a chain that should be in the target and is not, or
// says that nobody knows which. A folder above a chain is a slip of the hand.
func missing(target string, t anchor.Trust) (origin string, err error) {
	below := filepath.Join(target, "evidence")
	if _, err := os.Stat(below); err == nil {
		return "", usagef("%s holds no chain; did you mean %s?", target, below)
	}
	if origin = expected(t); origin == "" {
		return "", usagef("%s holds no chain: name a chain's folder or a proof file", target)
	}
	return origin, nil
}

// expected is the origin that the auditor's pins name, empty when they name none.
func expected(t anchor.Trust) string {
	if t.Origin != "" || len(t.ChainKeys) == 0 {
		return t.Origin
	}
	return t.ChainKeys[0].Name
}

// noEvidence ends a command that asked a witness in vain. One that cannot be
// reached says nothing about the chain: that is no FAIL.
func noEvidence(against string, err error) error {
	err = fmt.Errorf("the witness at %s did not give its evidence: %w", against, err)
	if unreached(err) {
		return &exitError{Incomplete, fmt.Errorf("INCOMPLETE: %w; %s", err, seeThatItRuns)}
	}
	return err
}

const seeThatItRuns = "see that it runs and can be reached from here"

// unreached tells an answer that is lacking from one that is wrong.
func unreached(err error) bool {
	return errors.As(err, new(*url.Error)) || errors.As(err, new(api.ErrRateLimited)) || errors.Is(err, api.ErrUnavailable)
}

func readProof(name string) (b []byte, origin string, err error) {
	if b, err = readInput(name); err != nil {
		return nil, "", err
	}
	if !bytes.HasPrefix(b, []byte("tool-guardian/")) {
		return nil, "", usagef("%s is no chain folder and no proof file of ours", name)
	}
	c, err := anchor.ParseContainer(b)
	if err != nil {
		return b, "", nil // Verify says what is wrong with it
	}
	if env, err := receipts.ParseLine(c.Receipt); err == nil {
		if st, err := receipts.ParseStatement(env.Payload); err == nil {
			origin = st.Origin
		}
	}
	return b, origin, nil
}

// openAgainst fetches or reads what the target is held against.
func (a *app) openAgainst(ctx context.Context, src *anchor.Source, against, origin string) error {
	switch {
	case against == "":
		return nil
	case isURL(against):
		if origin == "" {
			return usagef("which chain is it? The target does not say: add --origin or --chain-key")
		}
		s, err := askWitness(ctx, against, origin, anchor.LogSize(src.Container))
		if err != nil {
			return noEvidence(against, err)
		}
		src.Witness = s
		return nil
	}
	b, err := readInput(against)
	if u, bad := url.Parse("http://" + against); err != nil && bad == nil && u.Port() != "" {
		return usagef("--against %s is no file here; the address of a witness begins with http:// or https://", against)
	}
	if err != nil {
		return err
	}
	if _, err := tlog.ParseNote(b); err == nil {
		src.Checkpoint = b
	} else {
		src.Flat = b
	}
	return nil
}

package cli

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/tsa"
)

func (a *app) tsaCommand() *cobra.Command {
	return group("tsa", "RFC 3161 timestamps: serve, request, verify", a.tsaServe(), a.tsaRequest(), a.tsaVerify())
}

func (a *app) tsaServe() *cobra.Command {
	var dir string
	var l listenOptions
	c := &cobra.Command{
		Use: "serve", Short: "Run the built-in timestamp authority (self-issued time)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			authority, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: dir, Now: a.Now, Logger: a.logger()})
			if err != nil {
				return err
			}
			root := filepath.Join(dir, "root.pem")
			a.say("time is self-issued; verifiers pin the root in %s", root)
			return a.listenAndServe(c.Context(), l, authority.Handler())
		},
	}
	c.Flags().StringVar(&dir, "data", "", "folder for the authority's keys; made on first use")
	l.flags(c)
	must(c.MarkFlagRequired("data"))
	return c
}

func (a *app) tsaRequest() *cobra.Command {
	var url, ca, out string
	var essV1 bool
	c := &cobra.Command{
		Use: "request FILE", Short: "Ask an authority to timestamp a file", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			roots, err := readRoots(ca)
			if err != nil {
				return err
			}
			digest, err := hashFile(args[0])
			if err != nil {
				return err
			}
			client, err := tsa.New(tsa.ClientOptions{Now: a.Now, Logger: a.logger(),
				Authorities: []tsa.Remote{{Name: "authority", URL: url, Roots: roots, AllowESSv1: essV1}}})
			if err != nil {
				return err
			}
			token, err := client.Stamp(c.Context(), digest)
			if err != nil {
				return err
			}
			if out == "" {
				out = args[0] + ".token"
			}
			if err := os.WriteFile(out, token.DER, 0o644); err != nil {
				return err
			}
			a.printToken(token)
			a.say("wrote the token to %s", out)
			return nil
		},
	}
	c.Flags().StringVar(&url, "url", "", "the authority's address")
	c.Flags().StringVar(&ca, "ca", "", "PEM file with the root that the token must chain to")
	c.Flags().StringVar(&out, "out", "", "where the token goes (default FILE.token)")
	c.Flags().BoolVar(&essV1, "allow-ess-v1", false, "accept a SHA-1 certificate hash from this authority")
	must(c.MarkFlagRequired("url"))
	must(c.MarkFlagRequired("ca"))
	return c
}

func (a *app) tsaVerify() *cobra.Command {
	var o tokenFlags
	c := &cobra.Command{
		Use: "verify --token F --data F --ca PEM", Short: "Judge a timestamp token or response", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.verifyToken(o) },
	}
	f := c.Flags()
	f.StringVar(&o.token, "token", "", "the token, or the response around it (DER)")
	f.StringVar(&o.data, "data", "", "the file that was stamped")
	f.StringVar(&o.ca, "ca", "", "PEM file with the trusted roots")
	f.StringVar(&o.request, "request", "", "the kept request (DER): its nonce and policy must match")
	f.StringSliceVar(&o.policies, "policy", nil, "allowed policy, dotted; repeats")
	f.BoolVar(&o.essV1, "allow-ess-v1", false, "accept a SHA-1 certificate hash (ESSCertID)")
	f.StringVar(&o.at, "at", "", "judge the chain at this time (RFC 3339) instead of the token's own")
	for _, name := range []string{"token", "data", "ca"} {
		must(c.MarkFlagRequired(name))
	}
	return c
}

type tokenFlags struct {
	token, data, ca, request, at string
	policies                     []string
	essV1                        bool
}

// verifyToken exits 0 for a valid token, 1 for a refused one with the rule,
// 3 where a file or word of the call is wrong.
func (a *app) verifyToken(f tokenFlags) error {
	raw, err := readInput(f.token)
	if err != nil {
		return err
	}
	o, err := f.options(a.Now())
	if err != nil {
		return err
	}
	token, err := judgeToken(raw, o)
	var refusal *tsa.Refusal
	switch {
	case errors.As(err, &refusal):
		return a.refuseToken(refusal)
	case err != nil:
		return err
	}
	a.printToken(token)
	return nil
}

func judgeToken(raw []byte, o tsa.VerifyOptions) (tsa.Token, error) {
	der, err := tsa.SplitToken(raw)
	if err != nil {
		return tsa.Token{}, err
	}
	return tsa.Verify(der, o)
}

func (f tokenFlags) options(now time.Time) (o tsa.VerifyOptions, err error) {
	if o.Data, err = readInput(f.data); err != nil {
		return o, err
	}
	if o.Data == nil {
		o.Data = []byte{}
	}
	if o.Roots, err = readRoots(f.ca); err != nil {
		return o, err
	}
	if f.at != "" {
		if o.At, err = time.Parse(time.RFC3339, f.at); err != nil {
			return o, usagef("--at %q is not an RFC 3339 time such as 2026-01-02T15:04:05Z", f.at)
		}
	}
	o.Policies, o.AllowESSv1, o.Now = f.policies, f.essV1, now
	if f.request != "" {
		err = f.bindRequest(&o)
	}
	return o, err
}

func (f tokenFlags) bindRequest(o *tsa.VerifyOptions) error {
	raw, err := readInput(f.request)
	if err != nil {
		return err
	}
	req, err := tsa.ParseRequest(raw)
	if err != nil {
		return usagef("--request %s: %v", f.request, err)
	}
	o.Nonce = req.Nonce
	if req.Policy != "" {
		o.Policies = append(o.Policies, req.Policy)
	}
	return nil
}

type tokenJSON struct {
	Verdict    string   `json:"verdict"`
	Rule       tsa.Rule `json:"rule,omitempty"`
	Detail     string   `json:"detail,omitempty"`
	Time       string   `json:"time,omitempty"`
	Accuracy   string   `json:"accuracy,omitempty"`
	Serial     *big.Int `json:"serial,omitempty"`
	Policy     string   `json:"policy,omitempty"`
	Authority  string   `json:"authority,omitempty"`
	SelfIssued bool     `json:"selfIssued,omitempty"`
	Expired    bool     `json:"signerExpired,omitempty"`
}

func (a *app) refuseToken(r *tsa.Refusal) error {
	if a.json {
		a.printJSON(tokenJSON{Verdict: "refused", Rule: r.Rule, Detail: r.Detail})
	} else {
		a.print("REFUSED %s: %s\n", r.Rule, r.Detail)
	}
	return verdict(Failed)
}

func (a *app) printToken(t tsa.Token) {
	accuracy := "not stated"
	if t.AccuracyStated {
		accuracy = t.Accuracy.String()
	}
	if a.json {
		a.printJSON(tokenJSON{Verdict: "valid", Time: t.Time.Format(time.RFC3339Nano), Accuracy: accuracy,
			Serial: t.Serial, Policy: t.Policy, Authority: t.Authority, SelfIssued: t.SelfIssued, Expired: t.SignerExpired})
		return
	}
	a.print("VALID: the data existed at %s (accuracy %s)\n", t.Time.Format(time.RFC3339Nano), accuracy)
	a.print("authority  %s\npolicy     %s\nserial     %s\n", t.Authority, t.Policy, t.Serial)
	if t.SelfIssued {
		a.print("note       self-issued time: no independent evidence\n")
	}
	if t.SignerExpired {
		a.print("note       a certificate has expired since; the token is judged at its own time\n")
	}
}

func readRoots(name string) (*x509.CertPool, error) {
	b, err := readInput(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, usagef("%s holds no certificate in PEM", name)
	}
	return pool, nil
}

// hashFile is the SHA-256 of a file of any size.
func hashFile(name string) (digest [32]byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return digest, usagef("%v: check the path", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return digest, err
	}
	return [32]byte(h.Sum(nil)), nil
}

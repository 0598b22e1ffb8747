package cli

import (
	"crypto/x509"
	"log/slog"
	"path/filepath"
	"strings"

	"toolguardian/tsa"
	"toolguardian/witness"
	"toolguardian/witness/api"
)

// authorities reads the --tsa words. Each authority has a client of its own, so
// that one which rests or drips keeps none of the others.
func (a *app) authorities(f serveFlags, logger *slog.Logger) (all []witness.Authority, err error) {
	kept := witness.NewQuarantine(filepath.Join(f.data, "tsa-refused"), logger)
	lists := witness.NewRevocationLists(nil, a.Now, logger)
	names := map[string]bool{}
	for _, word := range f.tsa {
		remote, err := parseAuthority(word)
		if err != nil {
			return nil, err
		}
		if names[remote.Name] {
			return nil, usagef("--tsa: the name %s is there twice", remote.Name)
		}
		names[remote.Name] = true
		if remote.Roots == nil {
			a.say("--tsa %s has no ca=: its tokens are kept in %s and do not count until its root is given", remote.Name, kept.Dir())
		}
		client, err := tsa.New(tsa.ClientOptions{Authorities: []tsa.Remote{remote}, Now: a.Now, Logger: logger, Report: kept.Keep})
		if err != nil {
			return nil, usagef("--tsa %s: %v", word, err)
		}
		all = append(all, witness.Authority{Name: remote.Name, Timestamper: client, Revocation: lists.Of,
			Verify: tsa.VerifyOptions{Roots: orEmpty(remote.Roots), AllowESSv1: remote.AllowESSv1}})
	}
	return all, nil
}

func orEmpty(roots *x509.CertPool) *x509.CertPool {
	if roots == nil {
		return x509.NewCertPool()
	}
	return roots
}

// parseAuthority reads NAME=URL[,ca=PEM][,ess-v1].
func parseAuthority(word string) (r tsa.Remote, err error) {
	name, rest, ok := strings.Cut(word, "=")
	if !ok || api.CheckAuthority(name) != nil {
		return r, usagef("--tsa %q: want NAME=URL[,ca=PEM][,ess-v1], the name of a-z, 0-9, dot and dash", word)
	}
	parts := strings.Split(rest, ",")
	r.Name, r.URL = name, parts[0]
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		switch {
		case key == "ca" && r.Roots == nil:
			if r.Roots, err = readRoots(value); err != nil {
				return r, err
			}
		case p == "ess-v1":
			r.AllowESSv1 = true
		default:
			return r, usagef("--tsa %s: %q is neither ca=PEM nor ess-v1", name, p)
		}
	}
	return r, nil
}

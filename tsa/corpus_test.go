package tsa_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolguardian/tsa"
)

// forgedRules is the rule that each forgery must be refused by, by the number
// that its file name starts with.
var forgedRules = map[string]tsa.Rule{
	"16": tsa.RuleImprint, "17": tsa.RuleImprint, "18": tsa.RuleImprint,
	"19": tsa.RuleNonce, "20": tsa.RuleNonce, "21": tsa.RulePolicy,
	"22": tsa.RuleSignature, "24": tsa.RuleDigest,
	"25": tsa.RuleRoot, "26": tsa.RuleRoot,
	"28": tsa.RuleUsage, "32": tsa.RuleUsage, "34": tsa.RuleUsage, "36": tsa.RuleUsage,
	"38": tsa.RuleValidity, "39": tsa.RuleValidity,
	"40": tsa.RuleClock, "41": tsa.RuleGenTime, "42": tsa.RuleGenTime,
	"43": tsa.RuleKey, "44": tsa.RuleKey,
	"45": tsa.RuleAlgorithm, "46": tsa.RuleAlgorithm,
	"47": tsa.RuleSigner, "48": tsa.RuleESS, "49": tsa.RuleAttributes,
	"51": tsa.RuleAttributes, "52": tsa.RuleAttributes, "53": tsa.RuleAttributes,
	"54": tsa.RuleContentType, "56": tsa.RuleAttributes,
	"57": tsa.RuleSigners, "58": tsa.RuleSigners, "59": tsa.RuleSigners,
	"60": tsa.RuleTSTInfo, "62": tsa.RuleTSTInfo, "63": tsa.RuleExtension,
	"64": tsa.RuleTSTInfo, "67": tsa.RuleTSTInfo, "68": tsa.RuleESS,
	"70": tsa.RuleDER, "71": tsa.RuleResponse,
	"72": tsa.RuleStatus, "73": tsa.RuleStatus, "74": tsa.RuleStatus, "75": tsa.RuleStatus,
	"78": tsa.RuleDER, "79": tsa.RuleSize, "80": tsa.RuleDER, "81": tsa.RuleDER,
}

// forgedNow is a fixed clock shortly after the genTime of the forged tokens.
var forgedNow = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func forgedOptions(t testing.TB, dir string) tsa.VerifyOptions {
	request, err := tsa.ParseRequest(readFile(t, dir, "q.tsq"))
	if err != nil {
		t.Fatal(err)
	}
	if want := big.NewInt(0x1122334455667788); request.Nonce.Cmp(want) != 0 {
		t.Fatalf("nonce of the request is %x", request.Nonce)
	}
	return tsa.VerifyOptions{
		Data:       readFile(t, dir, "msg"),
		Roots:      pemPool(t, filepath.Join(dir, "root.pem")),
		ExtraCerts: pemCerts(t, filepath.Join(dir, "inter.pem")),
		Nonce:      request.Nonce,
		Policies:   []string{request.Policy},
		Now:        forgedNow,
	}
}

func TestForgedTokens(t *testing.T) {
	dir := filepath.Join(sharedDir(t), "forged")
	o := forgedOptions(t, dir)
	var cases []struct{ File, Case, Want string }
	if err := json.Unmarshal(readFile(t, dir, "cases.json"), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 61 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Case, func(t *testing.T) {
			err := verifyResponse(readFile(t, dir, c.File), o)
			if c.Want == "accept" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantRule(t, err, forgedRules[c.File[:2]])
		})
	}
}

func verifyResponse(response []byte, o tsa.VerifyOptions) error {
	_, token, err := tsa.ParseResponse(response)
	if err != nil {
		return err
	}
	_, err = tsa.Verify(token, o)
	return err
}

func wantRule(t *testing.T, err error, want tsa.Rule) {
	t.Helper()
	var refused *tsa.Refusal
	if !errors.As(err, &refused) {
		t.Fatalf("err = %v, want a refusal by rule %q", err, want)
	}
	if refused.Rule != want || refused.Detail == "" || strings.ContainsAny(refused.Detail, "\n\r\x1b") {
		t.Fatalf("refused by %q (%q), want rule %q", refused.Rule, refused.Detail, want)
	}
}

// realToken is what the verifier must say of a public authority's token, by
// the start of its file name. An empty rule means valid.
type realToken struct {
	prefix   string
	roots    []string
	v1       bool // ESSCertID v1 must be allowed, and is refused where it is not
	rule     tsa.Rule
	accuracy time.Duration // negative: not stated
	lists    string        // revocation lists, one of which speaks for the signer
}

const notStated = -1

var realTokens = []realToken{
	{prefix: "timestamps-DigiCert", roots: []string{"bil-DigiCertCA.pem"}, accuracy: notStated},
	{prefix: "2025-05-21-8499c05-DigiCert", roots: []string{"bil-DigiCertCA.pem"}, lists: "timestamps-DigiCert", accuracy: notStated},
	{prefix: "timestamps-GlobalSign", roots: []string{"bil-GlobalSignCA.pem", "roots-all.pem"}, accuracy: time.Second},
	{prefix: "2025-05-21-8499c05-GlobalSign", roots: []string{"bil-GlobalSignCA.pem"}, lists: "timestamps-GlobalSign", accuracy: time.Second},
	{prefix: "timestamps-Microsoft", roots: []string{"bil-MicrosoftCA.pem"}, accuracy: 500 * time.Millisecond},
	{prefix: "2025-05-21-8499c05-Microsoft", roots: []string{"bil-MicrosoftCA.pem"}, lists: "timestamps-Microsoft", accuracy: 500 * time.Millisecond},
	{prefix: "2024-12-15-0d53888-Microsoft", roots: []string{"bil-MicrosoftCA.pem"}, accuracy: 500 * time.Millisecond},
	{prefix: "2024-12-15-53a3183-Microsoft", roots: []string{"bil-MicrosoftCA.pem"}, accuracy: 500 * time.Millisecond},
	{prefix: "timestamps-Sectigo", roots: []string{"bil-SectigoCA.pem"}, v1: true, accuracy: notStated},
	{prefix: "2025-05-21-8499c05-Sectigo", roots: []string{"bil-SectigoCA.pem"}, v1: true, lists: "timestamps-Sectigo", accuracy: notStated},
	{prefix: "timestamps-IdenTrust", roots: []string{"roots-all.pem"}, v1: true, accuracy: notStated},
	{prefix: "2025-05-21-8499c05-IdenTrust", roots: []string{"bil-IdenTrustCA.pem"}, v1: true, accuracy: notStated},
	{prefix: "rfc3161-client-003", roots: []string{"bil-IdenTrustCA.pem"}, v1: true, accuracy: notStated},
	{prefix: "agentmint-python-001", roots: []string{"freetsa-root.pem"}, v1: true, accuracy: notStated},
	{prefix: "rfc3161-client-002", roots: []string{"freetsa-root.pem"}, v1: true, accuracy: notStated},
	{prefix: "witness-001", roots: []string{"freetsa-root.pem"}, v1: true, accuracy: notStated},
	{prefix: "timestamps-Apple", roots: []string{"bil-AppleCA.pem"}, rule: tsa.RuleAlgorithm},
	{prefix: "2025-05-21-8499c05-Apple", roots: []string{"bil-AppleCA.pem"}, rule: tsa.RuleAlgorithm},
	{prefix: "elabftw-001", roots: []string{"roots-all.pem"}, accuracy: notStated}, // DFN
	{prefix: "elabftw-002", roots: []string{"bil-DigiCertCA.pem"}, accuracy: notStated},
	{prefix: "c2pa-rs-001", roots: []string{"roots-all.pem"}, accuracy: notStated},
	{prefix: "c2pa-rs-006", roots: []string{"roots-all.pem"}, rule: tsa.RuleUnsupported},
	{prefix: "c2pa-rs-018", roots: []string{"roots-all.pem"}, rule: tsa.RuleDigest},
	{prefix: "tspclient-go-001", roots: []string{"roots-all.pem"}, accuracy: time.Second},
	{prefix: "sigstore-conformance-001", roots: []string{"sigstore-tsa-0.pem"}, accuracy: time.Second},
	{prefix: "sigstore-conformance-004", roots: []string{"sigstore-tsa-0.pem"}, accuracy: time.Second},
	{prefix: "cli-001", roots: []string{"roots-all.pem"}, rule: tsa.RuleESS}, // no certificate inside
	{prefix: "rekor-001", roots: []string{"roots-all.pem"}, rule: tsa.RuleESS},
	{prefix: "rekor-002", roots: []string{"roots-all.pem"}, rule: tsa.RuleESS},
	{prefix: "PKI.js-001", roots: []string{"roots-all.pem"}, rule: tsa.RuleAlgorithm},
	{prefix: "pdfsign-001", roots: []string{"roots-all.pem"}, rule: tsa.RuleAlgorithm},
	{prefix: "bc-java-010", roots: []string{"roots-all.pem"}, rule: tsa.RuleKey},
	{prefix: "authproof-sdk-001", roots: []string{"roots-all.pem"}, rule: tsa.RuleRoot},
	{prefix: "libdigidocpp-001", roots: []string{"roots-all.pem"}, rule: tsa.RuleRoot},
	{prefix: "mcpproxy-go-001", roots: []string{"roots-all.pem"}, rule: tsa.RuleRoot},
	{prefix: "bc-java-001", roots: []string{"roots-all.pem"}, v1: true, rule: tsa.RuleRoot},
	{prefix: "bc-java-004", roots: []string{"roots-all.pem"}, rule: tsa.RuleRoot},
	{prefix: "bc-java-007", roots: []string{"roots-all.pem"}, v1: true, rule: tsa.RuleRoot},
	{prefix: "elabftw-003", roots: []string{"roots-all.pem"}, v1: true, rule: tsa.RuleRoot},
}

// TestRealTokens judges every token at its own genTime, with only the named
// roots pinned and with the revocation lists that lie beside it.
func TestRealTokens(t *testing.T) {
	dir := filepath.Join(sharedDir(t), "real")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		ext := filepath.Ext(f.Name())
		if ext != ".tsr" && ext != ".tst" {
			continue
		}
		t.Run(f.Name(), func(t *testing.T) {
			stem := strings.TrimSuffix(f.Name(), ext)
			for _, want := range realTokens {
				if want.prefix == stem {
					testRealToken(t, dir, f.Name(), want)
					return
				}
			}
			t.Fatal("no expectation for this token")
		})
	}
}

func testRealToken(t *testing.T, dir, file string, want realToken) {
	token, err := tsa.SplitToken(readFile(t, dir, file))
	if err != nil {
		t.Fatal(err)
	}
	o := realOptions(t, dir, want, token)
	if want.v1 {
		_, err := tsa.Verify(token, o)
		wantRule(t, err, tsa.RuleESS)
		o.AllowESSv1 = true
	}
	got, err := tsa.Verify(token, o)
	if want.rule != "" {
		wantRule(t, err, want.rule)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	stated := want.accuracy >= 0
	if got.AccuracyStated != stated || stated && got.Accuracy != want.accuracy {
		t.Errorf("accuracy %v (stated %v), want %v", got.Accuracy, got.AccuracyStated, want.accuracy)
	}
	if len(o.CRLs) > 0 && got.RevocationAsOf.IsZero() {
		t.Errorf("none of %d revocation lists speaks for the signer", len(o.CRLs))
	}
	o.Roots = nil
	_, err = tsa.Verify(token, o)
	wantRule(t, err, tsa.RuleRoot)
}

func realOptions(t *testing.T, dir string, want realToken, token []byte) tsa.VerifyOptions {
	var roots []string
	for _, r := range want.roots {
		roots = append(roots, filepath.Join(dir, r))
	}
	o := tsa.VerifyOptions{Roots: pemPool(t, roots...), Now: forgedNow}
	if strings.HasPrefix(want.prefix, "sigstore") {
		o.ExtraCerts = pemCerts(t, roots...)
		o.Roots = lastAsRoot(t, o.ExtraCerts)
	}
	if data, err := os.ReadFile(filepath.Join(dir, want.prefix+".data")); err == nil {
		o.Data = data
	} else if u, err := tsa.Unverified(token); err == nil {
		o.Imprint = u.Imprint
	}
	if want.lists == "" {
		return o
	}
	lists, err := filepath.Glob(filepath.Join(dir, want.lists+".crl*"))
	if err != nil || len(lists) == 0 {
		t.Fatal("no revocation lists", err)
	}
	for _, path := range lists {
		o.CRLs = append(o.CRLs, readFile(t, path))
	}
	return o
}

package anchor

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/tsa"
	"toolguardian/witness/api"
)

// asked reports whether the auditor asked for time.
func (t Trust) asksTime() bool { return t.TSARoots != nil || t.RequireTime }

// times judges the tokens over a log checkpoint. They bound from above when the
// head in it, and every receipt below, existed.
func (v *verdict) times(ev *Evidence, h *headLeaf) {
	if h == nil {
		v.unchecked(AxisTime, "timestamps: the leaf they cover does not hold")
		return
	}
	if len(ev.Times) == 0 {
		v.noTime("no timestamped checkpoint covers a witnessed head yet")
		return
	}
	if v.trust.TSARoots == nil {
		for _, t := range ev.Times {
			v.unchecked(AxisTime, "%s", unpinnedToken(t))
		}
		v.state(AxisTime, StateUnpinned)
		if v.trust.RequireTime {
			v.find(Finding{Reason: Unpinned, Axis: AxisTime, Detail: "tokens are there, no authority is pinned", Next: "pin its root with --tsa-ca"})
		}
		return
	}
	note := stampedNote(h)
	blobs := v.blobs(ev.Times, ev.Blobs)
	var failed []Finding
	var best tsa.Token
	for i, t := range ev.Times {
		tok, err := v.token(t, note, blobs)
		if err != nil {
			failed = append(failed, tokenFinding(i, t.Authority, err))
			continue
		}
		if best.DER == nil || upper(tok).Before(upper(best)) {
			best = tok
		}
	}
	v.timeVerdict(best, len(ev.Times)-len(failed), failed, h)
}

func (v *verdict) noTime(detail string) {
	if v.trust.asksTime() {
		v.find(Finding{Reason: MissingTime, Axis: AxisTime, Detail: detail, Next: "wait for the witness's next timestamp and verify again"})
		return
	}
	v.unchecked(AxisTime, "%s", detail)
}

func unpinnedToken(t TimeEvidence) string {
	tok, err := tsa.Unverified(t.Token)
	if err != nil {
		return fmt.Sprintf("token of %q: unreadable", t.Authority)
	}
	return fmt.Sprintf("token of %q states %s: no authority is pinned (--tsa-ca)", t.Authority, tok.Time.UTC().Format(time.RFC3339))
}

// stampedNote is what a token stamps: text, blank line, the log's one type-01
// line.
func stampedNote(h *headLeaf) []byte {
	line := func(s tlog.Signature) bool { return s.Name == h.log.Origin && len(s.Bytes) == ed25519.SignatureSize }
	return h.sig.Only(line).Bytes()
}

// blobs returns the validation data by kind; each must be named by a token.
func (v *verdict) blobs(times []TimeEvidence, blobs [][]byte) map[api.BlobKind][][]byte {
	kinds := map[tlog.Hash]api.BlobKind{}
	for _, t := range times {
		for _, ref := range t.Blobs {
			kinds[ref.Hash] = ref.Kind
		}
	}
	out := map[api.BlobKind][][]byte{}
	for _, b := range blobs {
		if kind, ok := kinds[sha256.Sum256(b)]; ok {
			out[kind] = append(out[kind], b)
		}
	}
	return out
}

func (v *verdict) token(t TimeEvidence, note []byte, blobs map[api.BlobKind][][]byte) (tsa.Token, error) {
	return tsa.Verify(t.Token, tsa.VerifyOptions{
		Digest: sha256.Sum256(note), Roots: v.trust.TSARoots, Now: v.trust.Now,
		ExtraCerts: blobs[api.BlobCert], CRLs: blobs[api.BlobCRL],
	})
}

// tokenFinding tells a token that is not its data's from one refused by
// another rule.
func tokenFinding(i int, authority string, err error) Finding {
	f := Finding{Reason: BadTime, Axis: AxisTime, Index: at(uint64(i)), Detail: fmt.Sprintf("token of %q: %v", authority, err)}
	var refused *tsa.Refusal
	if !errors.As(err, &refused) {
		return f
	}
	switch refused.Rule {
	case tsa.RuleImprint, tsa.RuleDigest, tsa.RuleSignature:
		f.Reason = Altered
	}
	return f
}

func upper(t tsa.Token) time.Time {
	at, _ := t.UpperBound()
	return at
}

func (v *verdict) timeVerdict(best tsa.Token, good int, failed []Finding, h *headLeaf) {
	for _, f := range failed {
		if best.DER != nil && f.Reason == BadTime {
			f.Exit = ExitIncomplete
		}
		v.find(f)
	}
	if best.DER == nil {
		return
	}
	v.dated(best.Time)
	v.rep.NotAfterBy = boundOf(upper(best), best)
	v.rep.NotAfter = v.rep.NotAfterBy.Time
	v.checked(AxisTime, "receipts below size %d existed by %s: %s verified under the pinned roots", h.head.Size, v.rep.NotAfter, counted(good, "token", "tokens"))
}

func boundText(t tsa.Token) string { return boundOf(upper(t), t).text() }

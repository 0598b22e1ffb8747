package anchor

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"toolguardian/tsa"
)

// TimeBound is one end of the bracket of time, and who vouches for it.
type TimeBound struct {
	Time        string `json:"time"`               // RFC 3339, accuracy included
	Accuracy    string `json:"accuracy,omitempty"` // absent: not stated by the authority
	Authority   string `json:"authority"`          // a label; the certificate is the authority
	Subject     string `json:"subject"`
	Certificate string `json:"certificate"` // SHA-256 of the signer's certificate, hex
	SelfIssued  bool   `json:"selfIssued"`
	Expired     bool   `json:"expired"` // the certificate has expired since
}

func boundOf(at time.Time, t tsa.Token) *TimeBound {
	b := &TimeBound{Time: at.UTC().Format(time.RFC3339Nano), Authority: t.Authority, SelfIssued: t.SelfIssued, Expired: t.SignerExpired}
	if t.AccuracyStated {
		b.Accuracy = t.Accuracy.String()
	}
	if t.Signer != nil {
		sum := sha256.Sum256(t.Signer.Raw)
		b.Subject, b.Certificate = t.Signer.Subject.String(), hexOf(sum)
	}
	return b
}

// text is the bound in a line: when, by whom, and what it is worth.
func (b *TimeBound) text() string {
	accuracy := "accuracy " + b.Accuracy
	if b.Accuracy == "" {
		accuracy = "accuracy not stated"
	}
	s := fmt.Sprintf("%s (%s), authority %q, certificate %s", b.Time, accuracy, b.Authority, short(b.Certificate))
	if b.Expired {
		s += ", expired since and judged at its own time"
	}
	if b.SelfIssued {
		s += "; self-issued: no independent evidence"
	}
	return s
}

// KeyStatus says which head key is in force, and as of what.
type KeyStatus struct {
	Key        string  `json:"key"`                  // vkey
	State      string  `json:"state"`                // of the key axis
	Leaf       *uint64 `json:"leaf,omitempty"`       // key leaf that put it in force
	Checkpoint *uint64 `json:"checkpoint,omitempty"` // size of the log at which that was so
	AsOf       string  `json:"asOf,omitempty"`       // RFC 3339: newest pinned cosignature or token
	AgeSeconds *int64  `json:"ageSeconds,omitempty"` // of AsOf
	Operator   bool    `json:"operator"`             // an operator of the witness rotated it
}

// keyInForce keeps what the newest checkpoint says of the key.
func (v *verdict) keyInForce(ring keyring, ev *Evidence, h *headLeaf) {
	key, ok := ring.inForce(h.head.Size)
	if k := v.rep.Key; !ok || k != nil && k.Checkpoint != nil && *k.Checkpoint >= h.log.Size {
		return
	}
	v.rep.Key = &KeyStatus{Key: key.String(), Leaf: at(ev.Keys[len(ev.Keys)-1].Proof.Index), Checkpoint: at(h.log.Size), Operator: ring.operator}
}

// closeKey completes the key's status with what only the end shows.
func (v *verdict) closeKey(state string) {
	k := v.rep.Key
	if k == nil {
		return
	}
	k.State = state
	if v.newest.IsZero() {
		return
	}
	k.AsOf = v.newest.UTC().Format(time.RFC3339)
	if !v.trust.Now.IsZero() {
		age := int64(v.trust.Now.Sub(v.newest).Seconds())
		k.AgeSeconds = &age
	}
}

// dated remembers the newest moment a pinned cosigner or authority vouched for
// anything of this chain.
func (v *verdict) dated(when time.Time) {
	if when.After(v.newest) {
		v.newest = when
	}
}

// tooOld judges --max-age: what came after the newest dated head is not covered
// by it, and nobody knows whether anything did.
func (v *verdict) tooOld(consulted bool) {
	limit := v.trust.MaxAge
	if limit == 0 || !consulted {
		return
	}
	f := Finding{Reason: Unprotected, Axis: AxisWitness, Next: "get a newer checkpoint from the witness"}
	switch age := v.trust.Now.Sub(v.newest); {
	case v.newest.IsZero():
		f.Detail = "no pinned cosigner or authority dates any head: --max-age cannot be judged"
	case age > limit:
		f.Detail = fmt.Sprintf("the newest dated head is of %s, %s old, more than --max-age %s", v.newest.UTC().Format(time.RFC3339), lasted(age), lasted(limit))
	default:
		v.checked(AxisWitness, "the newest dated head is %s old, within --max-age %s", lasted(age), lasted(limit))
		return
	}
	v.find(f)
}

// sized is one line said of several sizes.
type sized struct {
	at    int // its place among the axis's lines
	sizes []uint64
}

// checkedAt says of each size what is said of all: one line, not one a size.
func (v *verdict) checkedAt(axis AxisName, before string, size uint64, after string) {
	key := string(axis) + before + "\x00" + after
	s := v.sized[key]
	if s == nil {
		s = &sized{at: len(v.axes[axis].Checked)}
		v.sized[key] = s
		v.axes[axis].Checked = append(v.axes[axis].Checked, "")
	}
	if i, found := slices.BinarySearch(s.sizes, size); !found {
		s.sizes = slices.Insert(s.sizes, i, size)
	}
	v.axes[axis].Checked[s.at] = before + " " + listed(s.sizes) + after
}

// listed names sizes in order, or counts them where they are many.
func listed(sizes []uint64) string {
	if n := len(sizes); n > 6 {
		return fmt.Sprintf("%d to %d (%d of them)", sizes[0], sizes[n-1], n)
	}
	words := make([]string, len(sizes))
	for i, n := range sizes {
		words[i] = uintText(n)
	}
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

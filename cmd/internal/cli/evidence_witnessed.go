package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"toolguardian/anchor"
	"toolguardian/proxy"
	"toolguardian/proxy/wire"
	"toolguardian/receipts"
)

// evidenceWitnessed is the mode in which no call runs before a witness has
// cosigned a head over its decision. To the router it is EvidenceRequired with a
// recorder that waits.
const evidenceWitnessed proxy.EvidenceMode = "witnessed"

const (
	modeSetting    = "TOOL_GUARDIAN_EVIDENCE"
	maxTailSetting = "TOOL_GUARDIAN_MAX_TAIL"
	maxLagSetting  = "TOOL_GUARDIAN_MAX_LAG"

	defaultMaxTail = 1000
	defaultMaxLag  = 10 * time.Second
	// witnessedInterval is the shortest time between two heads while calls wait
	// for them.
	witnessedInterval = 50 * time.Millisecond
)

// witnessedBounds says when a call that waits for its witness is refused.
type witnessedBounds struct {
	maxTail uint64        // more receipts than that are not witnessed: at once
	maxLag  time.Duration // the head is not cosigned by then
}

// routerSettings are the settings as the router knows them.
func routerSettings(setting func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := setting(name)
		if name == modeSetting && v == string(evidenceWitnessed) {
			return string(proxy.EvidenceRequired), true
		}
		return v, ok
	}
}

// witnessedMode reports whether the mode is witnessed, by variable or, without
// one, by the config file, and with which bounds.
func witnessedMode(o *proxy.Options) (*witnessedBounds, error) {
	mode, set := o.Config.Setting(modeSetting)
	if !set || mode == "" {
		mode, _ = wire.GetString(o.Config.ToolGuardian, "evidence")
	}
	if mode != string(evidenceWitnessed) {
		return nil, nil
	}
	o.Evidence = proxy.EvidenceRequired
	b := &witnessedBounds{maxTail: defaultMaxTail}
	var err error
	if b.maxLag, err = o.Config.Seconds(maxLagSetting, defaultMaxLag); err != nil || b.maxLag <= 0 {
		return nil, usagef("%s: want the seconds a call may wait for its witness, such as 10", maxLagSetting)
	}
	if v, ok := o.Config.Setting(maxTailSetting); ok && v != "" {
		if b.maxTail, err = strconv.ParseUint(v, 10, 64); err != nil {
			return nil, usagef("%s is %q: want how many receipts may be without a witness, such as 1000", maxTailSetting, v)
		}
	}
	return b, nil
}

// await waits for the witness where the receipt lets a call run.
func (b *witnessedBounds) await(ctx context.Context, dir string, r receipts.Receipt, p receipts.Position) error {
	if b == nil || r.Kind != receipts.KindDecision {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.maxLag, fmt.Errorf("none within %s", b.maxLag))
	defer cancel()
	if err := anchor.WaitWitnessed(ctx, dir, p.Origin, p.Seq+1, b.maxTail); err != nil {
		return fmt.Errorf("the decision is recorded as receipt %d and no witness vouches for it: %w", p.Seq, err)
	}
	return nil
}

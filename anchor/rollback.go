package anchor

import (
	"fmt"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// rollbackFile judges two cosignatures of one key. Only a pinned cosigner is
// convicted: a key that stands in nobody's pins is nobody's.
func (v *verdict) rollbackFile(b []byte) {
	f, err := api.ParseRollbackFile(b)
	var x, y api.Head
	if err == nil {
		x, y, err = f.Heads()
	}
	v.rep.Origin = x.Origin
	if err != nil {
		v.find(Finding{Reason: parseReason(err), Axis: AxisStructure, Detail: fmt.Sprintf("rollback file: %v", err)})
		return
	}
	v.checked(AxisStructure, "rollback file: known frames in order, byte for byte")
	cosigner, ok := v.pinnedCosigner(x.Line())
	if !ok {
		v.find(Finding{Reason: Unpinned, Axis: AxisWitness, Detail: fmt.Sprintf("the heads are cosigned by %.200s, which you have not pinned", x.Line().Name),
			Next: "pin the witness with --witness-key (its 04 line)"})
		return
	}
	for name, h := range map[string]api.Head{"a": x, "b": y} {
		if !v.signedBy(h.Note, cosigner, AxisWitness, h.Size, "head "+name) {
			return
		}
	}
	before, _ := x.Line().Time()
	after, _ := y.Line().Time()
	v.checked(AxisWitness, "both heads cosigned by pinned %s", cosigner.Name)
	v.find(Finding{Reason: WitnessRollback, Axis: AxisWitness, Index: at(y.Size), To: at(x.Size), Have: y.Root.Hex(), Want: x.Root.Hex(),
		Detail: fmt.Sprintf("%s cosigned size %d at %s, and the smaller size %d at %s", cosigner.Name,
			x.Size, before.UTC().Format(time.RFC3339), y.Size, after.UTC().Format(time.RFC3339)),
		Next: "keep this file: it convicts the witness by itself; show it to the witness at /misbehaviour"})
}

func (v *verdict) pinnedCosigner(line tlog.Signature) (tlog.Vkey, bool) {
	for _, c := range v.trust.cosigners() {
		if c.Name == line.Name && c.ID == line.ID {
			return c, true
		}
	}
	return tlog.Vkey{}, false
}

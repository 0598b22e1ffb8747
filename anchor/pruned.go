package anchor

import (
	"encoding/hex"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// PrunedLines is a chain folder from which lines were removed and their hashes
// kept. *chain.Reader is one. Nothing it says is believed by itself: a prune
// receipt must tell of it, and the roots must come out.
type PrunedLines interface {
	// Pruned is the first seq from which no line was removed.
	Pruned() uint64
	// Hashes returns the leaf hashes of n removed lines from seq first on.
	Hashes(first uint64, n int) ([]tlog.Hash, error)
}

// prune is what a chain keeps in place of removed lines, and what its prune
// receipts say of it.
type prune struct {
	lines PrunedLines // nil: none were removed
	first uint64      // as the folder says

	spans []span     // removed lines whose hashes took their place
	root  *tlog.Hash // of the tree at size first
	prev  *[32]byte  // link of line first
	told  []pruneReceipt
}

type pruneReceipt struct {
	seq, first uint64
	prev, root string
}

func newPrune(lines Lines) prune {
	p, ok := lines.(PrunedLines)
	if !ok || p.Pruned() == 0 {
		return prune{}
	}
	return prune{lines: p, first: p.Pruned()}
}

// bridge puts kept hashes in place of the lines from up to but not with seq to;
// false where it cannot.
func (j *lineJudge) bridge(from, to uint64) bool {
	if j.prune.lines == nil || to > j.prune.first || !j.aligned || len(j.pending) > 0 {
		return false
	}
	for at := from; at < to; {
		n := min(to-at, tlog.TileWidth-at%tlog.TileWidth)
		hashes, err := j.prune.lines.Hashes(at, int(n))
		if err != nil || uint64(len(hashes)) != n {
			return false
		}
		for _, h := range hashes {
			j.grow(h)
		}
		at += n
	}
	j.prune.spans = append(j.prune.spans, span{from, to - 1})
	j.linked, j.next = false, to
	return true
}

// reached notes the root where the first kept line begins.
func (p *prune) reached(tree *tlog.Frontier) {
	if p.lines != nil && tree.Size() == p.first {
		root := tree.Root()
		p.root = &root
	}
}

// take reads what a good line says of a prune.
func (p *prune) take(s *receipts.Statement) {
	if p.lines == nil {
		return
	}
	if s.Seq == p.first {
		prev := s.Prev
		p.prev = &prev
	}
	if s.Kind != receipts.KindPrune {
		return
	}
	var first uint64
	if _, err := fmt.Sscan(string(s.Value("kept", "first")), &first); err == nil {
		p.told = append(p.told, pruneReceipt{seq: s.Seq, first: first, prev: s.Text("kept", "prev"), root: s.Text("kept", "root")})
	}
}

// holds reports which receipt tells of the prune, with the link and the root
// that the chain has there.
func (p *prune) holds() (pruneReceipt, bool) {
	for _, r := range p.told {
		if p.root != nil && p.prev != nil && r.first == p.first && r.root == p.root.Hex() && r.prev == hex.EncodeToString(p.prev[:]) {
			return r, true
		}
	}
	return pruneReceipt{}, false
}

func (p *prune) removed() uint64 {
	n := uint64(0)
	for _, s := range p.spans {
		n += s.to - s.from + 1
	}
	return n
}

// judgePrune decides whether lines that are not there were pruned or are missing.
func (j *lineJudge) judgePrune() {
	p := &j.prune
	if len(p.spans) == 0 {
		return
	}
	r, ok := p.holds()
	if !ok {
		for _, s := range p.spans {
			j.find(Finding{Reason: Gap, Axis: AxisChain, Index: at(s.from), To: at(s.to),
				Detail: fmt.Sprintf("receipts %d to %d are missing: hashes stand in their place, and no prune receipt tells of it with this root and link", s.from, s.to)})
		}
		j.broken = true
		return
	}
	removed := p.removed()
	j.rep.Counts["pruned"] = int64(removed)
	j.checked(AxisChain, "%d receipts before %d were pruned, told by receipt %d: their hashes give the root it states", removed, p.first, r.seq)
	j.unchecked(AxisCompleteness, "what the %d pruned receipts said: hashes alone are left of them", removed)
}

// pruneCovered holds a prune against the witnessed size: only witnessed lines
// may go.
func (v *verdict) pruneCovered(j *lineJudge, longest uint64) {
	if len(j.prune.spans) > 0 && longest < j.prune.first {
		v.find(Finding{Reason: Unprotected, Axis: AxisWitness, Index: at(longest), To: at(j.prune.first - 1),
			Detail: fmt.Sprintf("receipts were pruned up to %d, witnessed heads cover %d", j.prune.first, longest),
			Next:   "only what every witness cosigned may be pruned: ask for a copy of the rest"})
	}
}

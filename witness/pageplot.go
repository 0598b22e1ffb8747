package witness

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// The plot of a chain reads at most plotHeads heads, whatever its length, then
// splits the longest intervals at most plotSplits times: a silence is found
// between two neighbours, not between two heads that the sample happened on.
const (
	plotHeads  = 120
	plotSplits = 120
	plotBack   = 16 // leaves read to learn the state a chain was in
	plotGaps   = 20 // silences listed

	plotWidth, plotHeight = 1000, 240
)

// headPoint is one head of a chain.
type headPoint struct {
	Index, Size uint64
	At          time.Time
	leaf        api.Leaf
}

// gap is a time without heads, longer than twice the interval.
type gap struct {
	From, To time.Time
	Length   time.Duration
	State    string // as told when it began; a silence when open
	Silent   bool
	Now      bool    // it goes on
	X, W     float64 // in the plot
}

// plot is size over time, in the units of its view box.
type plot struct {
	Line, Rest, Dots string // SVG paths: the heads, from the last to now, each head
	Gaps             []gap
	Forks            []float64
	From, To         time.Time
	Size             uint64
	Heads            int
	Sampled          bool
}

// Listed are the newest gaps, for the text beside the plot.
func (pl plot) Listed() []gap {
	list := slices.Clone(pl.Gaps[max(0, len(pl.Gaps)-plotGaps):])
	slices.Reverse(list)
	return list
}

// Quiet says whether there is a silence, or a gap that was told of.
func (pl plot) Quiet(silent bool) bool {
	return slices.ContainsFunc(pl.Gaps, func(g gap) bool { return g.Silent == silent })
}

func (p published) plot(rec *originRecord, c chainRow, now time.Time) (*plot, error) {
	points, sampled, err := p.sampleHeads(rec)
	if err != nil || len(points) == 0 {
		return nil, err
	}
	heads := len(points)
	last := points[heads-1]
	if c.HeadAt.After(last.At) { // sent again, and cosigned again
		last.At = c.HeadAt
		points = append(points, last)
	}
	pl := &plot{From: points[0].At, To: later(now, last.At.Add(time.Second)), Size: last.Size, Heads: heads, Sampled: sampled}
	if pl.Gaps, err = p.gaps(points, c, now); err != nil {
		return nil, err
	}
	for i, g := range pl.Gaps {
		pl.Gaps[i].X, pl.Gaps[i].W = pl.x(g.From), pl.x(g.To)-pl.x(g.From)
	}
	if pl.Forks, err = p.forkMarks(rec, pl); err != nil {
		return nil, err
	}
	pl.draw(points)
	return pl, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (pl *plot) x(at time.Time) float64 {
	return plotWidth * at.Sub(pl.From).Seconds() / pl.To.Sub(pl.From).Seconds()
}

func (pl *plot) y(size uint64) float64 {
	return plotHeight - (plotHeight-12)*float64(size)/float64(max(1, pl.Size))
}

func (pl *plot) draw(points []headPoint) {
	var line, dots strings.Builder
	fmt.Fprintf(&line, "M%.1f %d", pl.x(points[0].At), plotHeight)
	for i, pt := range points {
		if i > 0 {
			fmt.Fprintf(&line, "H%.1f", pl.x(pt.At))
		}
		fmt.Fprintf(&line, "V%.1f", pl.y(pt.Size))
		if len(points) <= plotHeads/2 {
			fmt.Fprintf(&dots, "M%.1f %.1fh0", pl.x(pt.At), pl.y(pt.Size))
		}
	}
	last := points[len(points)-1]
	pl.Line, pl.Dots = line.String(), dots.String()
	pl.Rest = fmt.Sprintf("M%.1f %.1fH%d", pl.x(last.At), pl.y(last.Size), plotWidth)
}

// sampleHeads gives heads of a chain in rising order, the first and the newest
// among them. All of them where there are few.
func (p published) sampleHeads(rec *originRecord) (points []headPoint, sampled bool, err error) {
	last := rec.Head.Size
	step := last/plotHeads + 1
	for size := uint64(0); ; {
		pt, err := p.headFrom(rec.Origin, size)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		points = append(points, pt)
		if pt.Size >= last {
			break
		}
		size = min(pt.Size+step, last)
	}
	return p.splitLongest(rec.Origin, points)
}

// splitLongest puts heads between the neighbours that are the farthest apart in
// time.
func (p published) splitLongest(origin string, points []headPoint) ([]headPoint, bool, error) {
	whole := map[uint64]bool{} // by the index of the later head: no head lies before it
	for most := len(points) + plotSplits; ; {
		widest := -1
		for i := 1; i < len(points); i++ {
			if !whole[points[i].Index] && (widest < 0 || points[i].since(points[i-1]) > points[widest].since(points[widest-1])) {
				widest = i
			}
		}
		if widest < 0 {
			return points, false, nil
		}
		between, ok, err := p.headBetween(origin, points[widest-1], points[widest])
		if err != nil {
			return nil, false, err
		}
		if !ok {
			whole[points[widest].Index] = true
			continue
		}
		if len(points) == most {
			return points, true, nil
		}
		points = slices.Insert(points, widest, between)
	}
}

func (h headPoint) since(before headPoint) time.Duration { return h.At.Sub(before.At) }

// headBetween finds a head between two, near the middle by size if it can.
func (p published) headBetween(origin string, a, b headPoint) (headPoint, bool, error) {
	for span := (b.Size - a.Size) / 2; span > 0; span /= 2 {
		index, err := p.headIndexFrom(origin, a.Size+span)
		if err != nil {
			return headPoint{}, false, err
		}
		if index != b.Index {
			pt, err := p.headPoint(index)
			return pt, err == nil, err
		}
	}
	return headPoint{}, false, nil
}

func (p published) headFrom(origin string, size uint64) (headPoint, error) {
	index, err := p.headIndexFrom(origin, size)
	if err != nil {
		return headPoint{}, err
	}
	return p.headPoint(index)
}

// headIndexFrom is the leaf of the first head of at least that size.
func (p published) headIndexFrom(origin string, size uint64) (index uint64, err error) {
	found := false
	err = p.Scan(store.Heads, headKey(origin, size), func(key, value []byte) bool {
		if found = bytes.HasPrefix(key, originKey(origin)); found {
			index = sizeOf(value)
		}
		return false
	})
	if err == nil && !found {
		err = fmt.Errorf("head of size %d or more: %w", size, store.ErrNotFound)
	}
	return index, err
}

func (p published) headPoint(index uint64) (headPoint, error) {
	l, err := p.leaf(index)
	if err != nil {
		return headPoint{}, err
	}
	h, err := api.ParseHeadLeaf(index, l)
	if err != nil {
		return headPoint{}, fmt.Errorf("%w: head leaf %d: %w", store.ErrDamaged, index, err)
	}
	at, _ := headTime(index, l)
	return headPoint{Index: index, Size: h.Head.Size, At: at, leaf: l}, nil
}

// gaps finds what lies farther apart than twice the interval in force, and says
// whether the chain had told that it would be quiet.
func (p published) gaps(points []headPoint, c chainRow, now time.Time) (gaps []gap, err error) {
	if c.Interval == 0 {
		return nil, nil
	}
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		if b.since(a) <= 2*c.Interval || a.Index == b.Index {
			continue
		}
		if _, more, err := p.headBetween(c.Origin, a, b); err != nil || more {
			if err != nil {
				return nil, err
			}
			continue // not neighbours: nothing is known of the time between
		}
		state, err := p.stateBetween(a, b)
		if err != nil {
			return nil, err
		}
		gaps = append(gaps, gap{From: a.At, To: b.At, Length: b.since(a), State: state, Silent: state == string(api.StateOpen)})
	}
	if last := points[len(points)-1]; now.Sub(last.At) > 2*c.Interval {
		gaps = append(gaps, gap{From: last.At, To: now, Length: now.Sub(last.At), State: c.State, Silent: c.Silent, Now: true})
	}
	return gaps, nil
}

// stateBetween is the state that a chain had told of the time between two
// neighbouring heads: that it would not be open in between, or before a without
// a word since.
func (p published) stateBetween(a, b headPoint) (string, error) {
	state := string(api.StateOpen)
	at := b.leaf.Prev
	for range plotBack {
		if !at.Present {
			break
		}
		l, err := p.leaf(at.Index)
		if err != nil {
			return "", err
		}
		if e, _, err := api.ParseEvent(l.Body); l.Type == api.LeafEvent && err == nil {
			if e.State != api.StateOpen {
				return string(e.State), nil
			}
			if at.Index < a.Index {
				break
			}
		}
		at = l.Prev
	}
	return state, nil
}

// forkMarks dates the fork leaves by the heads before them.
func (p published) forkMarks(rec *originRecord, pl *plot) (marks []float64, err error) {
	for _, index := range rec.Forks {
		at := api.At(index)
		for range plotBack {
			l, err := p.leaf(at.Index)
			if err != nil {
				return nil, err
			}
			if when, ok := headTime(at.Index, l); ok {
				marks = append(marks, pl.x(when))
				break
			}
			if at = l.Prev; !at.Present {
				break
			}
		}
	}
	return marks, nil
}

package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Report is what a bench gives.
type Report interface{ WriteText(io.Writer) error }

// Micros is a time in microseconds, rounded to a tenth.
type Micros float64

func micros(d time.Duration) Micros {
	return Micros(math.Round(float64(d)/float64(100*time.Nanosecond)) / 10)
}

// Figure sums up operations of one kind.
type Figure struct {
	Count     int     `json:"count"`
	P50       Micros  `json:"p50Micros"`
	P99       Micros  `json:"p99Micros"`
	PerSecond float64 `json:"perSecond"`
}

// sample gathers operations over several turns.
type sample struct {
	took []time.Duration // of each operation
	wall time.Duration   // of all turns together; less than the sum of took where operations overlap
}

func (s *sample) add(o sample) {
	s.took = append(s.took, o.took...)
	s.wall += o.wall
}

// take adds an operation that overlaps with no other.
func (s *sample) take(d time.Duration) { s.add(sample{took: []time.Duration{d}, wall: d}) }

func (s *sample) figure() Figure {
	slices.Sort(s.took)
	f := Figure{Count: len(s.took), P50: micros(s.percentile(50)), P99: micros(s.percentile(99))}
	if s.wall > 0 {
		f.PerSecond = round(float64(len(s.took)) / s.wall.Seconds())
	}
	return f
}

// percentile is the smallest time that p percent do not exceed; took is sorted.
func (s *sample) percentile(p int) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	rank := (len(s.took)*p + 99) / 100
	return s.took[max(rank, 1)-1]
}

// round keeps three significant digits of what is a measurement anyway, and
// whole numbers above that.
func round(f float64) float64 {
	if f == 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0
	}
	digits := max(2-int(math.Floor(math.Log10(math.Abs(f)))), 0)
	scale := math.Pow(10, float64(digits))
	return math.Round(f*scale) / scale
}

// ratio is 0 where there is nothing to compare with.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Aim is a figure beside the bound that is asked of it.
type Aim struct {
	What  string  `json:"what"`
	Got   float64 `json:"got"`
	Sense string  `json:"sense"` // "<=" or ">="
	Bound float64 `json:"bound"`
	Unit  string  `json:"unit,omitempty"`
	Met   bool    `json:"met"`
}

func atMost(what string, got, bound float64, unit string) Aim {
	return Aim{What: what, Got: round(got), Sense: "<=", Bound: round(bound), Unit: unit, Met: got <= bound}
}

func atLeast(what string, got, bound float64, unit string) Aim {
	return Aim{What: what, Got: round(got), Sense: ">=", Bound: round(bound), Unit: unit, Met: got >= bound}
}

func (a Aim) String() string {
	word := "missed"
	if a.Met {
		word = "met"
	}
	unit := a.Unit
	if unit != "" {
		unit = " " + unit
	}
	return fmt.Sprintf("%-6s  %s: %v%s, aim %s %v%s", word, a.What, a.Got, unit, a.Sense, a.Bound, unit)
}

// Machine is what the figures were taken on.
type Machine struct {
	OS    string `json:"os"`
	Arch  string `json:"arch"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
}

// positive refuses a flag that leaves nothing to measure.
func positive[N int | time.Duration](flag string, n N) error {
	if n <= 0 {
		return fmt.Errorf("--%s is %v: nothing would be measured; give more than 0", flag, n)
	}
	return nil
}

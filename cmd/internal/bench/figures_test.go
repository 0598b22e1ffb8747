package bench

import (
	"testing"
	"time"
)

func TestPercentiles(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i)*time.Microsecond)
	}
	for name, c := range map[string]struct {
		s    sample
		want Figure
	}{
		"none":     {sample{}, Figure{}},
		"one":      {sample{took: []time.Duration{1500}, wall: time.Second}, Figure{1, 1.5, 1.5, 1}},
		"two":      {sample{took: []time.Duration{2000, 1000}, wall: time.Second}, Figure{2, 1, 2, 2}},
		"hundred":  {sample{took: hundred, wall: time.Second}, Figure{100, 50, 99, 100}},
		"no clock": {sample{took: []time.Duration{1000}}, Figure{1, 1, 1, 0}},
	} {
		if got := c.s.figure(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestRound(t *testing.T) {
	for in, want := range map[float64]float64{
		0: 0, 0.123456: 0.123, 1.23456: 1.23, 12.3456: 12.3, 123.456: 123, 123456.7: 123457, 0.000123456: 0.000123, -12.3456: -12.3,
	} {
		if got := round(in); got != want {
			t.Errorf("round(%v) = %v, want %v", in, got, want)
		}
	}
}

func TestAims(t *testing.T) {
	for _, c := range []struct {
		a    Aim
		text string
	}{
		{atMost("cost", 99.96, 100, "µs"), "met     cost: 100 µs, aim <= 100 µs"},
		{atMost("cost", 101, 100, "µs"), "missed  cost: 101 µs, aim <= 100 µs"},
		{atLeast("share", 0.35, 0.35, ""), "met     share: 0.35, aim >= 0.35"},
		{atLeast("share", 0.2, 0.35, ""), "missed  share: 0.2, aim >= 0.35"},
	} {
		if got := c.a.String(); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
	}
}

package witness

import (
	"testing"
	"time"

	"toolguardian/chain/tlog"
)

// A token is renewed after a year, or a month before its chain ends, and not
// more than once a day while the end is near.
func TestRenewable(t *testing.T) {
	const day = 24 * time.Hour
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name    string
		expires time.Duration // after at; 0: never
		age     time.Duration
		want    bool
	}{
		{"new", 0, 0, false},
		{"within the year", 0, 364 * day, false},
		{"after the year", 0, 365 * day, true},
		{"long before the end", 100 * day, 69 * day, false},
		{"a month before the end", 100 * day, 70 * day, true},
		{"made near the end, at once", 10 * day, time.Hour, false},
		{"made near the end, a day later", 10 * day, day, true},
		{"after the end", 10 * day, 20 * day, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := stampRecord{Time: at}
			if test.expires > 0 {
				r.Expires = at.Add(test.expires)
			}
			fresh := stampRecord{Time: at.Add(test.age)}
			if got := (stampRecords{fresh, r}).renewable(at.Add(test.age)); got != test.want {
				t.Errorf("renewable %v, want %v", got, test.want)
			}
		})
	}
	if (stampRecords{}).renewable(at) {
		t.Error("no token is renewable")
	}
}

func TestOperatorsAreCountedByKey(t *testing.T) {
	one, two := tlog.Hash{1}, tlog.Hash{2}
	all := stampRecords{{Authority: "a", Key: one}, {Authority: "b", Key: one}, {Authority: "c", Key: two}}
	if got := all.operators(); got != 2 {
		t.Errorf("%d operators of three names, want 2", got)
	}
	left := all.missing([]Authority{{Name: "c"}, {Name: "d"}})
	if len(left) != 1 || left[0].Name != "d" {
		t.Errorf("missing %v, want d", left)
	}
}
